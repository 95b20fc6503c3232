"""Compiles a schema into an encoder for one version.

Rule: a version is compiled once, into closures that know all that the schema says. Neighbouring
fields of fixed length become one call of `struct`. An encoder raises WireError or whatever Python
raises for a value of a wrong type; `messages.py` makes one WireError of both.
"""

from collections.abc import Callable, Iterable, Sequence
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
    for fixed, group in groupby(fields, key=is_packed):
        if fixed:
            steps.append(compile_packed(list(group)))
        else:
            steps += [compile_field(field, version, flexible) for field in group]
    if compact:
        steps.append(compile_tagged(schema.with_tags(version), version, flexible))
    allowed = frozenset(field.name for field in schema.fields if version in field.versions)

    def encode(out: bytearray, values: Fields) -> None:
        if not values.keys() <= allowed:
            refuse_absent(schema, version, values.keys() - allowed, values)
        for step in steps:
            step(out, values)

    return encode


def is_packed(field: FieldSchema) -> bool:
    """Return whether `struct` packs a field together with its neighbours."""
    return not field.array and field.type in FIXED and field.type != "uuid"


def compile_packed(fields: Sequence[FieldSchema]) -> StructEncoder:
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


def compile_field(field: FieldSchema, version: int, flexible: VersionRange) -> StructEncoder:
    """Return the step for one field."""
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
        write, null = _array(field, version, flexible, compact=compact), null_length(4, compact)
    elif field.struct is not None:
        write, null = _struct(field, version, flexible), b"\xff"
    elif field.type == "string":
        write, null = _compact_string if compact else _string, null_length(2, compact)
    elif field.type in {"bytes", "records"}:
        write, null = _compact_bytes if compact else _bytes, null_length(4, compact)
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


def null_length(size: int, compact: bool) -> bytes:
    """Return what stands for null in place of a length of `size` bytes."""
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
    length = array_length(compact=compact)
    if field.struct is None and field.type in FIXED and field.type != "uuid":
        code = FIXED[field.type]

        def encode_fixed(out: bytearray, value: Sequence[Any]) -> None:
            out += length(len(value))
            out += pack(f">{len(value)}{code}", *value)

        return encode_fixed
    one = compile_element(field, version, flexible, compact=compact)

    def encode(out: bytearray, value: Iterable[Any]) -> None:
        elements = value if isinstance(value, (list, tuple)) else list(value)
        out += length(len(elements))
        for element in elements:
            one(out, element)

    return encode


def compile_element(
    field: FieldSchema, version: int, flexible: VersionRange, *, compact: bool
) -> ValueEncoder:
    """Return the encoder of one element of an array."""
    if field.struct is not None:
        return compile_encoder(field.struct, version, flexible)
    if field.type == "string":
        return _compact_string if compact else _string
    if field.type == "bytes":
        return _compact_bytes if compact else _bytes
    return _scalar(field.type)


def array_length(*, compact: bool) -> Callable[[int], bytes]:
    """Return the encoder of an array's length."""
    return _compact_length if compact else _LONG.pack


def _compact_length(number: int) -> bytes:
    return encode_uvarint(number + 1)


def compile_tagged(
    fields: Sequence[FieldSchema], version: int, flexible: VersionRange
) -> StructEncoder:
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


def refuse_absent(
    schema: StructSchema, version: int, names: AbstractSet[str], values: Fields
) -> None:
    """Check fields that a version lacks: it must be right to leave them out."""
    for name in names:
        field = schema.by_name.get(name)
        if field is None:
            raise WireError(f"there is no field {name} here")
        if not field.ignorable and not field.is_default()(values[name]):
            raise WireError(f"version {version} has no field {name}")
