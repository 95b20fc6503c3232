"""Makes the JSON schemas that kubeconform reads from Kubernetes' own description of its API.

Rule: a field that the description doesn't name is an error, as for `kubectl --validate=strict`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"
_INT_OR_STRING = "int-or-string"


def write_schemas(api: Path, kinds: Iterable[tuple[str, str]], folder: Path) -> str:
    """Write a schema for each `apiVersion` and `kind`; return kubeconform's schema location."""
    definitions = {
        name: _strict(schema) for name, schema in json.loads(api.read_text())["definitions"].items()
    }
    for api_version, kind in kinds:
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "kind": kind, "version": version}
        (name,) = (
            name
            for name, schema in definitions.items()
            if wanted in schema.get("x-kubernetes-group-version-kind", ())
        )
        short = "".join(f"-{part}" for part in (group.partition(".")[0], version) if part)
        document = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": f"#/definitions/{name}",
            "definitions": definitions,
        }
        (folder / f"{kind.lower()}{short}.json").write_text(json.dumps(document))
    return str(folder / LOCATION)


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("format") == _INT_OR_STRING:
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    if "properties" in schema:
        return {"additionalProperties": False, **schema}
    return schema
