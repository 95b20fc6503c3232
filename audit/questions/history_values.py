"""Entries of an image in a history: the name of each, and the fields that a change changed.

Rule: an entry's fields come from the records that restore it (`state_words`), defaults included: a
change to a default is a change too.
"""

from functools import cache
from typing import Any

from audit.questions import state_words
from audit.questions.state_words import TABLE_OF, Fields, json_fields, name_of
from metadata.buckets import KeyChange
from metadata.image.metadata_image import MetadataImage
from metadata.records import Record, ScramMechanism, ShutdownOffsetRecord, config_kind
from metadata.records.schema import REQUIRED, fields_of
from metadata.uuids import uuid_text


def called(table: str, key: Any, before: MetadataImage, after: MetadataImage) -> str:
    """Return the name of an entry, in the words of `Record.subjects`."""
    match table:
        case "topics" | "partitions" | "client_quotas" | "entries":
            name = name_of(table, key, after, before)
        case "configs":
            name = f"{config_kind(key[0])}:{key[1]}"
        case "scram":
            known = key[1] in list(ScramMechanism)
            name = f"{key[0]} ({ScramMechanism(key[1]).name if known else key[1]})"
        case _:
            name = uuid_text(key) if isinstance(key, bytes) else str(key)
    return f"{TABLE_OF[table].kind}:{name}"


def differing(
    table: str, change: KeyChange[Any, Any], *, show_secrets: bool = False
) -> dict[str, tuple[Any, Any]]:
    """Return {field: (before, after)} for the fields that differ, as `state_words.differing`."""
    fields = state_words.differing(
        table, change, show_secrets=show_secrets, of_record=_with_defaults
    )
    if table == "partitions":
        fields.pop("topicId", None)
    return fields


def _with_defaults(record: Record, *, show_secrets: bool) -> Fields:
    if isinstance(record, ShutdownOffsetRecord):
        return {"controlledShutdownOffset": record.offset}
    said = json_fields(record, show_secrets=show_secrets)
    return said | {name: value for name, value in _defaults(type(record)) if name not in said}


@cache
def _defaults(kind: type[Record]) -> tuple[tuple[str, Any], ...]:
    """Return the defaults that a record's JSON leaves out."""
    return tuple(
        (field.json_name, field.codes(field.default).name if field.codes else field.default)
        for field in fields_of(kind)
        if field.default not in (REQUIRED, None, ())
    )
