"""Writes facts.json from a checkout: `python -m tests.oracles.ocsf.read_schema FOLDER`."""

import json
import sys
from pathlib import Path
from typing import Any

FACTS = Path(__file__).with_name("facts.json")
CLASSES = {"api_activity": "application", "authentication": "iam"}
OF_CLASSES = ("category_uid", "class_uid", "type_uid")
OBJECTS = (
    *("actor", "api", "http_request", "metadata", "network_endpoint", "object", "product"),
    *("request", "resource_details", "response", "service", "url", "user"),
)


class Schema:
    """A checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dictionary = self.read("dictionary.json")["attributes"]
        categories = self.read("categories.json")["attributes"]
        self.categories = {name: each["uid"] for name, each in categories.items()}

    def read(self, path: str) -> Any:
        return json.loads((self.folder / path).read_text())

    def definition(self, path: str, kind: str) -> dict[str, Any]:
        """A class or object with what it inherits."""
        own = self.read(path)
        above: dict[str, Any] = {"attributes": {}}
        if "extends" in own:
            above = self.definition(self.find(own["extends"], kind), kind)
        attributes = {name: dict(each) for name, each in above["attributes"].items()}
        for name, each in own["attributes"].items():
            if name == "$include":
                for profile in each:
                    for key, value in self.read(profile)["attributes"].items():
                        if isinstance(value, dict):
                            # What a profile brings is there only if the event names the profile.
                            attributes.setdefault(key, {**value, "requirement": "profile"})
                continue
            known = attributes.get(name, {})
            enum = {**known.get("enum", {}), **each.get("enum", {})}
            attributes[name] = {**known, **each, **({"enum": enum} if enum else {})}
        constraints = own.get("constraints", above.get("constraints"))
        return {**above, **own, "attributes": attributes, "constraints": constraints}

    def find(self, name: str, kind: str) -> str:
        found = [
            path
            for path in (self.folder / kind).rglob("*.json")
            if json.loads(path.read_text()).get("name") == name
        ]
        return str(found[0].relative_to(self.folder))

    def facts(self, definition: dict[str, Any]) -> dict[str, Any]:
        attributes = {}
        for name, each in sorted(definition["attributes"].items()):
            known = self.dictionary[name]
            enum = {**known.get("enum", {}), **each.get("enum", {})}
            attributes[name] = {
                "required": each.get("requirement") == "required",
                "type": each.get("type", known["type"]),
                "many": bool(known.get("is_array")),
                # The schema's compiler puts the numbers of a class in place of these enums.
                **({"enum": sorted(enum)} if enum and name not in OF_CLASSES else {}),
            }
        found: dict[str, Any] = {"attributes": attributes}
        if definition.get("constraints"):
            found["constraints"] = definition["constraints"]
        return found


def render(folder: Path) -> str:
    schema = Schema(folder)
    facts: dict[str, Any] = {"version": schema.read("version.json")["version"]}
    facts["classes"] = {}
    for name, category in CLASSES.items():
        definition = schema.definition(schema.find(name, "events"), "events")
        uid = schema.categories[category] * 1000 + definition["uid"]
        facts["classes"][str(uid)] = {
            "caption": definition["caption"],
            "category_uid": schema.categories[category],
            **schema.facts(definition),
        }
    facts["objects"] = {
        name: schema.facts(schema.definition(schema.find(name, "objects"), "objects"))
        for name in OBJECTS
    }
    return json.dumps(facts, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FACTS.write_text(render(Path(sys.argv[1])))
