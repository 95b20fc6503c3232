"""Says a record of ours in Kafka's fields.

One rule for all records: a field of ours is Kafka's field of the same name, without regard to case
and underscores, and a part is a struct of such fields. A field that Kafka's version lacks is left
out. The names come from Kafka's schemas, so no record class needs code of its own (ADR 0071).
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from kafka_listener.wire.messages import message_schema
from kafka_listener.wire.schema import Fields, StructSchema
from metadata.records.record import Part, Record
from metadata.records.schema import FieldSchema, fields_of

ToFields = Callable[[Any], Fields]


class _Field(NamedTuple):
    ours: FieldSchema
    kafkas: str
    part: ToFields | None


@cache
def fields_writer(kind: type[Record], version: int) -> ToFields:
    """Return the function from a record of this class to the fields of Kafka's version.

    The message is the one of the same name. Raises WireError if Kafka has none.
    """
    return _writer(kind, message_schema(kind.__name__).struct, version)


def _writer(owner: type[Record | Part], schema: StructSchema, version: int) -> ToFields:
    names = {name.lower(): name for name in schema.by_name}
    plain: list[tuple[str, str]] = []
    tagged: list[str] = []
    parts: list[_Field] = []
    for field in fields_of(owner):
        name = names.get(field.name.replace("_", ""))
        if name is None or version not in schema.by_name[name].versions:
            continue
        if field.part is None:
            plain.append((field.name, name))
            if field.is_list and version in schema.by_name[name].tagged:
                tagged.append(name)
            continue
        struct = schema.by_name[name].struct
        assert struct is not None, f"{name} of {owner.__name__} is no struct in Kafka"
        parts.append(_Field(field, name, _writer(field.part, struct, version)))
    write = _plain_writer(plain)
    if tagged:
        write = _with_lists(write, tagged)
    return _with_parts(write, parts) if parts else write


def _plain_writer(fields: list[tuple[str, str]]) -> ToFields:
    names = [name for _, name in fields]
    if not fields:
        return lambda _owner: {}
    read = attrgetter(*(ours for ours, _ in fields))
    if len(fields) == 1:
        return lambda owner: {names[0]: read(owner)}
    return lambda owner: dict(zip(names, read(owner), strict=True))


def _with_lists(write: ToFields, tagged: list[str]) -> ToFields:
    """Make lists of tagged tuples: the codec leaves out a field that equals its default, `[]`."""

    def write_all(owner: Any) -> Fields:
        fields = write(owner)
        for name in tagged:
            value = fields[name]
            fields[name] = None if value is None else list(value)
        return fields

    return write_all


def _with_parts(write: ToFields, parts: list[_Field]) -> ToFields:
    def write_all(owner: Any) -> Fields:
        fields = write(owner)
        for ours, name, of_part in parts:
            assert of_part is not None
            value = getattr(owner, ours.name)
            if value is not None:
                value = [of_part(each) for each in value] if ours.is_list else of_part(value)
            fields[name] = value
        return fields

    return write_all
