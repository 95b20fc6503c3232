"""Says what is wrong with an event by the published schema."""

import json
from ipaddress import ip_address
from typing import Any

from tests.oracles.ocsf.read_schema import FACTS

_FACTS = json.loads(FACTS.read_text())
SCALARS = {
    "integer_t": int,
    "long_t": int,
    "timestamp_t": int,
    "boolean_t": bool,
    "string_t": str,
    "ip_t": str,
    "hostname_t": str,
    "username_t": str,
    "url_t": str,
    "uuid_t": str,
    "resource_uid_t": str,
    "path_t": str,
    "file_path_t": str,
    "email_t": str,
    "float_t": float,
}


def problems(event: dict[str, Any]) -> list[str]:
    """Return what is wrong, a sentence each."""
    facts = _FACTS["classes"].get(str(event.get("class_uid")))
    if facts is None:
        return [f"there is no class {event.get('class_uid')}"]
    found = _judged("event", event, facts)
    if event.get("category_uid") != facts["category_uid"]:
        found.append(f"category_uid is {event.get('category_uid')}")
    if event.get("class_name") not in (None, facts["caption"]):
        found.append(f"class_name is {event.get('class_name')}")
    if event.get("type_uid") != event.get("class_uid") * 100 + event.get("activity_id", -1):
        found.append(f"type_uid is {event.get('type_uid')}")
    if event.get("metadata", {}).get("version") != _FACTS["version"]:
        found.append("metadata.version is another")
    if event.get("count", 1) > 1 and event["time"] != event.get("start_time"):
        found.append("the time of an aggregate is not its start")
    return found


def _judged(where: str, value: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    attributes = facts["attributes"]
    found = [
        f"{where}.{name} is required and missing"
        for name, each in attributes.items()
        if each["required"] and name not in value
    ]
    for name, one in value.items():
        if name not in attributes:
            found.append(f"{where} has no attribute {name}")
            continue
        found += _attribute(f"{where}.{name}", one, attributes[name])
    for kind, names in (facts.get("constraints") or {}).items():
        there = sum(name in value for name in names)
        if kind == "at_least_one" and not there:
            found.append(f"{where} has none of {', '.join(names)}")
        if kind == "just_one" and there != 1:
            found.append(f"{where} has {there} of {', '.join(names)}")
    return found


def _attribute(where: str, value: Any, facts: dict[str, Any]) -> list[str]:
    if facts["many"]:
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [line for each in value for line in _one(where, each, facts)]
    return _one(where, value, facts)


def _one(where: str, value: Any, facts: dict[str, Any]) -> list[str]:
    kind = facts["type"]
    if kind in SCALARS:
        if not isinstance(value, SCALARS[kind]) or (
            isinstance(value, bool) and kind != "boolean_t"
        ):
            return [f"{where} is {value!r}, and no {kind}"]
        if kind == "ip_t":
            ip_address(str(value))
        if facts.get("enum") and str(value) not in facts["enum"]:
            return [f"{where} is {value!r}, which is none of its numbers"]
        return []
    known = _FACTS["objects"].get(kind)
    if kind == "object":
        return [] if isinstance(value, dict) else [f"{where} is no object"]
    if known is None or not isinstance(value, dict):
        return [f"{where}: the facts have no object {kind}, or this is none"]
    return _judged(where, value, known)
