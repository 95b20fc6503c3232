"""A state as text: the name and the fields of each entry of each table.

Rule: the output shows what a snapshot's records hold, with their JSON names
(docs/format/records.md), and topic names instead of ids. Secrets are starred unless asked for, but
a changed secret is shown as a change.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from metadata.buckets import KeyChange
from metadata.image import MetadataImage
from metadata.image.families import TABLES
from metadata.messages.records_json import record_to_json
from metadata.records import Record, ScramMechanism, config_kind
from metadata.records.coordination import resource_word
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
    "credentials": ("access_tokens", "join_tokens", "revocations"),
    "quorum": ("quorum", "epochs", "controllers"),
    "all": tuple(table.name for table in TABLES),
}
"""The tables of `metadata.image.families` that each value of `--show` means."""

TABLE_OF: Final = {table.name: table for table in TABLES}


Fields = dict[str, Any]


class OfRecord(Protocol):
    """Returns the fields of one of the records that restore an entry."""

    def __call__(self, record: Record, *, show_secrets: bool) -> Fields: ...


class Entry(NamedTuple):
    """One entry of a state."""

    table: str
    name: str
    fields: Fields


def entries(image: MetadataImage, table: str, *, show_secrets: bool = False) -> Iterator[Entry]:
    """Yield a table's entries, in the order of a snapshot."""
    for key, value in image.table(TABLE_OF[table]).items():
        fields = fields_of(table, key, value, show_secrets=show_secrets)
        yield Entry(table, name_of(table, key, image), fields)


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
        case "entries":
            return f"{resource_word(*key[:2])}/{key[2]}"
        case "quorum" | "migrations":
            return str(key).removesuffix("Record")
        case _:
            return uuid_text(key) if isinstance(key, bytes) else str(key)


def json_fields(record: Record, *, show_secrets: bool) -> Fields:
    """Return a record's fields as its JSON has them."""
    fields: Fields = record_to_json(record, show_secrets=show_secrets)["data"]
    return fields


def fields_of(
    table: str, key: Any, value: Any, *, show_secrets: bool, of_record: OfRecord = json_fields
) -> Fields:
    """Return an entry's fields as plain values, without those that are in its name.

    They are empty if the entry is not there (`value` None).
    """
    if value is None:
        return {}
    records = TABLE_OF[table].records(key, value)
    return fields_of_records(table, records, show_secrets=show_secrets, of_record=of_record)


def fields_of_records(
    table: str,
    records: Iterable[Record],
    *,
    show_secrets: bool,
    of_record: OfRecord = json_fields,
) -> Fields:
    """Return the fields of the entry that these records restore, as `fields_of` does."""
    shown = [of_record(record, show_secrets=show_secrets) for record in records]
    if table in ("configs", "client_quotas"):
        by = "name" if table == "configs" else "key"
        return {data[by]: data["value"] for data in shown}
    fields: Fields = {}
    for data in shown:
        fields.update(data)
    for name in TABLE_OF[table].named_by:
        fields.pop(camel(name), None)
    return fields


def differing(
    table: str,
    change: KeyChange[Any, Any],
    *,
    show_secrets: bool,
    of_record: OfRecord = json_fields,
) -> dict[str, tuple[Any, Any]]:
    """Return {field: (before, after)} for the fields that differ; None if the field is not there.

    Secrets are compared, but shown starred unless `show_secrets`.
    """

    def both(*, secrets: bool) -> tuple[Fields, ...]:
        return tuple(
            fields_of(table, change.key, value, show_secrets=secrets, of_record=of_record)
            for value in (change.before, change.after)
        )

    before, after = both(secrets=True)
    shown_before, shown_after = both(secrets=show_secrets)
    return {
        name: (shown_before.get(name), shown_after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    }


def counts(image: MetadataImage) -> dict[str, int]:
    """Return the number of entries of each table."""
    return {table.name: len(image.table(table)) for table in TABLES}


def _topic(topic_id: bytes, images: tuple[MetadataImage, ...]) -> str:
    for image in images:
        topic = image.topics.by_id.get(topic_id)
        if topic is not None:
            return str(topic.name)
    return uuid_text(topic_id)
