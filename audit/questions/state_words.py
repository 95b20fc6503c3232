"""A state as text: the name and the fields of each entry of each table.

Rule: the output shows what a snapshot's records hold, with their JSON names
(docs/format/records.md), and topic names instead of ids. Secrets are starred unless asked for, but
a changed secret is shown as a change.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from metadata.image import MetadataImage
from metadata.image.families import TABLES
from metadata.image.table import ImageTable
from metadata.messages.records_json import record_to_json
from metadata.records import ScramMechanism, config_kind
from metadata.records.schema import camel
from metadata.uuids import uuid_text

SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "brokers": ("brokers",),
    "topics": ("topics",),
    "partitions": ("partitions",),
    "configs": ("configs",),
    "acls": ("acls",),
    "quotas": ("client_quotas",),
    "users": ("scram",),
    "features": ("features", "migrations"),
    "tokens": ("tokens",),
    "quorum": ("quorum", "epochs", "controllers"),
    "all": tuple(table.name for table in TABLES),
}
"""The tables of `metadata.image.families` that each value of `--show` means."""

TABLE_OF: Final = {table.name: table for table in TABLES}


class Entry(NamedTuple):
    """One entry of a state."""

    table: str
    name: str
    fields: dict[str, Any]


def entries(image: MetadataImage, table: str, *, show_secrets: bool = False) -> Iterator[Entry]:
    """Yield a table's entries, in the order of a snapshot."""
    described = TABLE_OF[table]
    for key, value in image.table(described).items():
        yield Entry(
            table,
            name_of(table, key, image),
            fields_of(described, key, value, show_secrets=show_secrets),
        )


def name_of(table: str, key: Any, *images: MetadataImage) -> str:
    """Return the name of an entry; a topic has the name in the first image that holds it."""
    match table:
        case "topics":
            return _topic(key, images)
        case "partitions":
            return f"{_topic(key[0], images)}-{key[1]}"
        case "configs":
            return f"{config_kind(key[0])}:{key[1] or '<default>'}"
        case "client_quotas":
            return ",".join(f"{kind}={n[0] if n else '<default>'}" for kind, n in key)
        case "scram":
            known = {int(each): each.name.replace("_", "-") for each in ScramMechanism}
            return f"{key[0]} {known.get(key[1], key[1])}"
        case "quorum" | "migrations":
            return str(key).removesuffix("Record")
        case _:
            return uuid_text(key) if isinstance(key, bytes) else str(key)


def fields_of(table: ImageTable, key: Any, value: Any, *, show_secrets: bool) -> dict[str, Any]:
    """Return an entry's fields as plain values, without those that are in its name."""
    records = table.records(key, value)
    shown = [record_to_json(record, show_secrets=show_secrets)["data"] for record in records]
    if table.name in ("configs", "client_quotas"):
        by = "name" if table.name == "configs" else "key"
        return {data[by]: data["value"] for data in shown}
    fields: dict[str, Any] = {}
    for data in shown:
        fields.update(data)
    for name in table.named_by:
        fields.pop(camel(name), None)
    return fields


def counts(image: MetadataImage) -> dict[str, int]:
    """Return the number of entries of each table."""
    return {table.name: len(image.table(table)) for table in TABLES}


def _topic(topic_id: bytes, images: tuple[MetadataImage, ...]) -> str:
    for image in images:
        topic = image.topics.by_id.get(topic_id)
        if topic is not None:
            return str(topic.name)
    return uuid_text(topic_id)
