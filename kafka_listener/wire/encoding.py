"""Compiles a schema into an encoder for one version.

Rule: a version is compiled once, into closures that know all that the schema says. Neighbouring
fields of fixed length become one call of `struct`. An encoder raises WireError or whatever Python
raises for a value of a wrong type; `messages.py` makes one WireError of both.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from struct import Struct, pack
from typing import Any, Final

from kafka_listener.wire.errors import WireError
from kafka_listener.wire.schema import (
    FIXED,
    STRING_BYTES_MAX,
    Fields,
    FieldSchema,
    StructSchema,
    VersionRange,
)
from kafka_listener.wire.varints import encode_uvarint

StructEncoder = Callable[[bytearray, Fields], None]
ValueEncoder = Callable[[bytearray, Any], None]

_SHORT: Final = Struct(">h")
_LONG: Final = Struct(">i")
_UUID_BYTES: Final = 16


def compile_encoder(schema: StructSchema, version: int, flexible: VersionRange) -> StructEncoder:
    """Return a function that appends a struct's bytes in one version."""
    compact = version in flexible
    steps: list[StructEncoder] = []
    fields = schema.in_order(version, flexible=compact)
    for fixed, group in groupby(fields, key=_packs):
        if fixed:
            steps.append(_packed(list(group)))
        else:
            steps += [_field(field, version, flexible) for field in group]
    if compact:
        steps.append(_tagged(schema.with_tags(version), version, flexible))
    allowed = frozenset(field.name for field in schema.fields if version in field.versions)

    def encode(out: bytearray, values: Fields) -> None:
        if not values.keys() <= allowed:
            _refuse(schema, version, values.keys() - allowed, values)
        for step in steps:
            step(out, values)

    return encode


def _packs(field: FieldSchema) -> bool:
    return not field.array and field.type in FIXED and field.type != "uuid"


def _packed(fields: Sequence[FieldSchema]) -> StructEncoder:
    """Return the step for neighbours that `struct` packs in one call."""
    pack_all = Struct(">" + "".join(FIXED[field.type] for field in fields)).pack
    if len(fields) == 1:
        name, default = fields[0].name, fields[0].default

        def encode_one(out: bytearray, values: Fields) -> None:
            out += pack_all(values.get(name, default))

        return encode_one
    pairs = [(field.name, field.default) for field in fields]

    def encode(out: bytearray, values: Fields) -> None:
        get = values.get
        out += pack_all(*[get(name, default) for name, default in pairs])

    return encode


def _field(field: FieldSchema, version: int, flexible: VersionRange) -> StructEncoder:
    encode_value = _value(field, version, flexible)
    name, fresh = field.name, field.fresh
    default = fresh()

    def encode(out: bytearray, values: Fields) -> None:
        encode_value(out, values.get(name, default))

    return encode


def _value(field: FieldSchema, version: int, flexible: VersionRange) -> ValueEncoder:
    """Return the encoder of a field's value, null included."""
    compact = version in (flexible if field.flexible is None else field.flexible)
    if field.array:
        write, null = _array(field, version, flexible, compact=compact), _null_length(4, compact)
    elif field.struct is not None:
        write, null = _struct(field, version, flexible), b"\xff"
    elif field.type == "string":
        write, null = _compact_string if compact else _string, _null_length(2, compact)
    elif field.type in {"bytes", "records"}:
        write, null = _compact_bytes if compact else _bytes, _null_length(4, compact)
    else:
        return _scalar(field.type)
    if version not in field.nullable:
        return write

    def encode(out: bytearray, value: Any) -> None:
        if value is None:
            out += null
        else:
            write(out, value)

    return encode


def _null_length(size: int, compact: bool) -> bytes:
    return b"\x00" if compact else b"\xff" * size


def _scalar(kind: str) -> ValueEncoder:
    pack_one = Struct(">" + FIXED[kind]).pack

    def encode(out: bytearray, value: Any) -> None:
        out += pack_one(value)

    return _uuid if kind == "uuid" else encode


def _uuid(out: bytearray, value: bytes) -> None:
    if len(value) != _UUID_BYTES:
        raise WireError(f"a uuid has {_UUID_BYTES} bytes, not {len(value)}")
    out += value


def _string(out: bytearray, value: str) -> None:
    data = value.encode()
    out += _SHORT.pack(len(data))
    out += data


def _compact_string(out: bytearray, value: str) -> None:
    data = value.encode()
    if len(data) > STRING_BYTES_MAX:
        raise WireError(f"a string has at most {STRING_BYTES_MAX} bytes, not {len(data)}")
    out += encode_uvarint(len(data) + 1)
    out += data


def _bytes(out: bytearray, value: bytes | memoryview) -> None:
    out += _LONG.pack(len(value))
    out += value


def _compact_bytes(out: bytearray, value: bytes | memoryview) -> None:
    out += encode_uvarint(len(value) + 1)
    out += value


def _struct(field: FieldSchema, version: int, flexible: VersionRange) -> ValueEncoder:
    assert field.struct is not None
    encode_struct = compile_encoder(field.struct, version, flexible)
    if version not in field.nullable:
        return encode_struct

    def encode(out: bytearray, value: Fields) -> None:
        out.append(1)
        encode_struct(out, value)

    return encode


def _array(
    field: FieldSchema, version: int, flexible: VersionRange, *, compact: bool
) -> ValueEncoder:
    length = _compact_length if compact else _LONG.pack
    if field.struct is None and field.type in FIXED and field.type != "uuid":
        code = FIXED[field.type]

        def encode_fixed(out: bytearray, value: Sequence[Any]) -> None:
            out += length(len(value))
            out += pack(f">{len(value)}{code}", *value)

        return encode_fixed
    if field.struct is not None:
        one: ValueEncoder = compile_encoder(field.struct, version, flexible)
    elif field.type == "string":
        one = _compact_string if compact else _string
    elif field.type == "bytes":
        one = _compact_bytes if compact else _bytes
    else:
        one = _scalar(field.type)

    def encode(out: bytearray, value: Sequence[Any]) -> None:
        out += length(len(value))
        for element in value:
            one(out, element)

    return encode


def _compact_length(number: int) -> bytes:
    return encode_uvarint(number + 1)


def _tagged(fields: Sequence[FieldSchema], version: int, flexible: VersionRange) -> StructEncoder:
    """Return the step for the tagged fields: those that are not their default, by tag."""
    known = [
        (
            encode_uvarint(field.tag),
            field.name,
            field.is_default(),
            _value(field, version, flexible),
        )
        for field in fields
    ]

    names = frozenset(field.name for field in fields)

    def encode(out: bytearray, values: Fields) -> None:
        if names.isdisjoint(values):
            out.append(0)
            return
        present = bytearray()
        count = 0
        for tag, name, is_default, write in known:
            if name in values and not is_default(values[name]):
                count += 1
                body = bytearray()
                write(body, values[name])
                present += tag + encode_uvarint(len(body)) + body
        out += encode_uvarint(count)
        out += present

    def encode_none(out: bytearray, _: Fields) -> None:
        out.append(0)

    return encode if known else encode_none


def _refuse(schema: StructSchema, version: int, names: AbstractSet[str], values: Fields) -> None:
    """Check fields that a version lacks: it must be right to leave them out."""
    for name in names:
        field = schema.by_name.get(name)
        if field is None:
            raise WireError(f"there is no field {name} here")
        if not field.ignorable and not field.is_default()(values[name]):
            raise WireError(f"version {version} has no field {name}")
