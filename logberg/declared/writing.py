"""Writes an export as a file that an apply takes.

Rule: an apply of the file on an empty cluster gives the same export. No password is written, and no
value that is never shown: comments name them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from logberg.cli.output import shown
from logberg.declared.declaration import DEFAULT
from metadata.messages.acls import AclDescription
from metadata.messages.declared import ExportReply
from metadata.messages.quotas import EntityQuotas

_WIDE: Final = 2**20
"""Characters of a line: values stay on theirs."""


def yaml_of(export: ExportReply, kinds: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of one file with everything."""
    return lines_of(export, {kind: entries_to_write(export, kind) for kind in kinds})


def entries_to_write(export: ExportReply, kind: str) -> list[dict[str, Any]]:
    """Return the entries of a kind as a file has them."""
    return list(_ENTRIES[kind](export))


def lines_of(
    export: ExportReply, entries: Mapping[str, list[dict[str, Any]]], part: str = ""
) -> Iterator[str]:
    """Yield the lines of a file with these entries, by kind.

    `part`: such as 2/3, if the kind's entries are in several files.
    """
    yield f"# The state at offset {export.offset}. `logberg apply -f` takes this file."
    yield "version: 1"
    if part:
        yield f"part: {part}"
    for kind, some in entries.items():
        yield from _dumped({kind: some})
    written = {(each["type"], each["name"]) for each in entries.get("configs", ())}
    for each in export.configs:
        if (each.resource_type, each.resource_name) in written:
            for key in each.hidden:
                yield shown(f"# not exported: {each.resource_type} {each.resource_name} {key}")
    if entries.get("users"):
        yield "# Passwords are not exported. A user that is created needs `password: {env: NAME}`"
        yield "# or `password: {file: PATH}`."


class _Escaped(str):
    """A text with characters that a terminal would obey."""

    __slots__ = ()


def _dumper() -> Any:
    """Return a dumper that puts such texts into double quotes, where they can be escaped."""
    made: Any = type("_Dumper", (yaml.SafeDumper,), {})
    made.add_representer(
        _Escaped,
        lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'),
    )
    return made


_DUMPER: Final = _dumper()


def _dumped(value: Any) -> Iterator[str]:
    text: str = yaml.dump(
        _marked(value),
        Dumper=_DUMPER,
        sort_keys=False,
        default_flow_style=False,
        width=_WIDE,
        allow_unicode=True,
    )
    for line in text.splitlines():
        yield line if shown(line) == line else "".join(map(_escaped, line))


def _marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {_marked(key): _marked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_marked(each) for each in value]
    return _Escaped(value) if isinstance(value, str) and shown(value) != value else value


def _escaped(character: str) -> str:
    if shown(character) == character:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _topics(export: ExportReply) -> Iterator[dict[str, Any]]:
    for topic in export.topics:
        count = {"partitions": topic.partitions, "replicationFactor": topic.replication_factor}
        rows = {"assignments": [list(row) for row in topic.assignments]}
        yield {
            "name": topic.name,
            **(rows if topic.assignments else count),
            **({"configs": topic.configs} if topic.configs else {}),
        }


def _configs(export: ExportReply) -> Iterator[dict[str, Any]]:
    for each in export.configs:
        yield {"type": each.resource_type, "name": each.resource_name, "configs": each.configs}


def _quotas(export: ExportReply) -> Iterator[dict[str, Any]]:
    for each in export.quotas:
        yield {"entity": _entity(each), "quotas": {k: _number(v) for k, v in each.values.items()}}


def _entity(quotas: EntityQuotas) -> dict[str, str]:
    return {
        part.entity_type: DEFAULT if part.entity_name is None else part.entity_name
        for part in quotas.entity
    }


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _acls(export: ExportReply) -> Iterator[dict[str, Any]]:
    for acl in sorted(export.acls, key=_acl_order):
        yield {
            "principal": acl.principal,
            "permissionType": acl.permission_type,
            "operation": acl.operation,
            "resourceType": acl.resource_type,
            "resourceName": acl.resource_name,
            "patternType": acl.pattern_type,
            "host": acl.host,
        }


def _acl_order(acl: AclDescription) -> tuple[str, ...]:
    """Ids are random: order by what the entries say."""
    return (
        acl.principal,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.operation,
        acl.permission_type,
        acl.host,
    )


def _users(export: ExportReply) -> Iterator[dict[str, Any]]:
    for user in export.users:
        for each in user.credentials:
            yield {"name": user.name, "mechanism": each.mechanism, "iterations": each.iterations}


_ENTRIES: Final = {
    "topics": _topics,
    "configs": _configs,
    "quotas": _quotas,
    "acls": _acls,
    "users": _users,
}
