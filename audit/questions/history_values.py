"""Entries of an image as text: the name of each, and its fields.

Rule: an entry's fields come from the records that restore it (`metadata.image.families`). So
nothing in the state is left out, and secrets are starred where records star them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from metadata.buckets import KeyChange
from metadata.image.families import TABLES
from metadata.image.metadata_image import MetadataImage
from metadata.image.table import ImageTable
from metadata.messages.records_json import record_to_json
from metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    Record,
    ScramMechanism,
    ShutdownOffsetRecord,
    config_kind,
)
from metadata.records.declaring import REDACTED
from metadata.records.schema import REQUIRED, camel, fields_of
from metadata.uuids import uuid_text

Fields = dict[str, Any]

_BY_NAME: Final[dict[str, ImageTable]] = {table.name: table for table in TABLES}


def called(table: str, key: Any, before: MetadataImage, after: MetadataImage) -> str:
    """Return the name of an entry, in the words of `Record.subjects`."""
    own = _CALLED.get(table)
    if own is not None:
        return own(key, before, after)
    return f"{_BY_NAME[table].kind}:{uuid_text(key) if isinstance(key, bytes) else key}"


def fields_of_entry(table: str, key: Any, value: Any, *, show_secrets: bool = False) -> Fields:
    """Return an entry's fields; empty if the entry is not there (`value` None)."""
    fields: Fields = {}
    if value is None:
        return fields
    for record in _BY_NAME[table].records(key, value):
        if isinstance(record, ConfigRecord):
            hidden = record.secret_fields() and not show_secrets
            fields[record.name] = REDACTED if hidden else record.value
        elif isinstance(record, ClientQuotaRecord):
            fields[record.key] = record.value
        elif isinstance(record, ShutdownOffsetRecord):
            fields["controlledShutdownOffset"] = record.offset
        else:
            told = record_to_json(record, show_secrets=show_secrets)["data"]
            fields.update(told | {k: v for k, v in _unsaid(type(record)).items() if k not in told})
    for name in _BY_NAME[table].named_by:
        fields.pop(camel(name), None)
    if table == "partitions":
        fields.pop("topicId", None)
    return fields


@cache
def _unsaid(kind: type[Record]) -> Fields:
    """Return the defaults that a record's JSON leaves out. A change to one is a change too."""
    said = (REQUIRED, None, ())
    return {
        field.json_name: field.codes(field.default).name if field.codes else field.default
        for field in fields_of(kind)
        if field.default not in said
    }


def differing(
    table: str, change: KeyChange[Any, Any], *, show_secrets: bool = False
) -> dict[str, tuple[Any, Any]]:
    """Return {field: (before, after)} for the fields that differ; None if the field is not there.

    Secrets are compared, but shown starred.
    """
    before, after = (
        fields_of_entry(table, change.key, value, show_secrets=True) for value in change[1:]
    )
    shown_before, shown_after = (
        fields_of_entry(table, change.key, value, show_secrets=show_secrets) for value in change[1:]
    )
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (shown_before.get(name), shown_after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    }


def _topic_name(topic_id: bytes, before: MetadataImage, after: MetadataImage) -> str:
    topic = after.topics.by_id.get(topic_id) or before.topics.by_id.get(topic_id)
    return uuid_text(topic_id) if topic is None else topic.name


def _partition(key: Any, before: MetadataImage, after: MetadataImage) -> str:
    return f"partition:{_topic_name(key[0], before, after)}-{key[1]}"


def _topic(key: bytes, before: MetadataImage, after: MetadataImage) -> str:
    return f"topic:{_topic_name(key, before, after)}"


def _config(key: tuple[int, str], _before: MetadataImage, _after: MetadataImage) -> str:
    return f"config:{config_kind(key[0])}:{key[1]}"


def _quota(key: Any, _before: MetadataImage, _after: MetadataImage) -> str:
    return "quota:" + ",".join(f"{kind}={name[0] if name else '<default>'}" for kind, name in key)


def _scram(key: tuple[str, int], _before: MetadataImage, _after: MetadataImage) -> str:
    known = key[1] in list(ScramMechanism)
    return f"user:{key[0]} ({ScramMechanism(key[1]).name if known else key[1]})"


_CALLED: Final[dict[str, Callable[[Any, MetadataImage, MetadataImage], str]]] = {
    "topics": _topic,
    "partitions": _partition,
    "configs": _config,
    "client_quotas": _quota,
    "scram": _scram,
}
"""Tables whose entries are named by more than their kind and their key."""
