"""The fields of a record, read from its class, for the docs, for JSON and for other readers.

Rule: the classes are the only source. Code that derives something from them (the tables in the
docs, the JSON of a dump) uses this module, so that all agree.
"""

from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from metadata.records.record import Part, Record

REQUIRED: Final = msgspec.NODEFAULT
"""`FieldSchema.default` of a field without a default."""

_INTEGERS: Final = {
    (-(2**7), 2**7 - 1): "int8",
    (-(2**15), 2**15 - 1): "int16",
    (0, 2**16 - 1): "uint16",
    (-(2**31), 2**31 - 1): "int32",
    (-(2**63), 2**63 - 1): "int64",
}


class FieldSchema(NamedTuple):
    """One field of a record or of a part of one."""

    name: str
    json_name: str
    """Kafka's name: camelCase."""
    type_name: str
    """bool, int8 … int64, uint16, float64, string, bytes, uuid, sha256, or a part's class name."""
    is_list: bool
    nullable: bool
    default: Any
    """`REQUIRED` if there is none."""
    part: type[Part] | None
    codes: type[IntEnum] | None


@cache
def fields_of(owner: type[Record | Part]) -> tuple[FieldSchema, ...]:
    """Return the fields of a record's class, or of a part's, in the order of the encoding."""
    info = inspect.type_info(owner)
    assert isinstance(info, inspect.StructType)
    return tuple(_field(owner, field) for field in info.fields)


def camel(name: str) -> str:
    """Return a name in camelCase, such as `brokerId` for `broker_id`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _field(owner: type[Record | Part], field: inspect.Field) -> FieldSchema:
    found = field.type
    nullable = is_list = False
    if isinstance(found, inspect.UnionType):
        nullable = found.includes_none
        (found,) = (t for t in found.types if not isinstance(t, inspect.NoneType))
    if isinstance(found, inspect.VarTupleType):
        is_list, found = True, found.item_type
    type_name, part = _named(found)
    codes = owner.CODES.get(field.name)
    return FieldSchema(
        field.name, camel(field.name), type_name, is_list, nullable, field.default, part, codes
    )


def _named(found: inspect.Type) -> tuple[str, type[Part] | None]:
    match found:
        case inspect.BoolType():
            return "bool", None
        case inspect.IntType(ge=low, le=high):
            assert low is not None
            assert high is not None
            return _INTEGERS[low, high], None
        case inspect.FloatType():
            return "float64", None
        case inspect.StrType():
            return "string", None
        case inspect.BytesType(min_length=length):
            return {16: "uuid", 32: "sha256"}.get(length or 0, "bytes"), None
        case inspect.StructType(cls=part) if issubclass(part, Part):
            return part.__name__, part
    raise TypeError(f"a record can't have a field of type {found}")
