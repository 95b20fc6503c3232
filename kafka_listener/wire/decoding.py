"""Compiles a schema into a decoder for one version.

Rule: no length is believed. It is compared with the bytes that are left before anything is made of
it, and the elements of all arrays of a message together are counted against ELEMENTS_MAX, because
an element of two bytes takes a hundred times that in memory. Numbers take less, so `NUMBERS` of
them count as one.

A decoder returns every field of the schema; one that the version lacks has its default. It raises
WireError or what Python raises when the data ends; `messages.py` makes one WireError of both.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from struct import Struct, unpack_from
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
from kafka_listener.wire.varints import decode_uvarint

TAGS_MAX: Final = 100
"""The tagged fields of one struct. Kafka's newest messages have fewer than ten."""
NUMBERS: Final = 8
"""So many numbers in an array count as one element."""

Left = list[int]
"""The first number: how many more elements the message may hold."""
FieldDecoder = Callable[[bytes, int, Left, Fields], int]
"""Puts fields in; returns the position after them."""
ValueDecoder = Callable[[bytes, int, Left], tuple[Any, int]]
"""Returns a value and the position after it."""

_SHORT: Final = Struct(">h")
_LONG: Final = Struct(">i")


def compile_decoder(schema: StructSchema, version: int, flexible: VersionRange) -> ValueDecoder:
    """Return a function that reads a struct of one version."""
    compact = version in flexible
    steps = compile_fields(list(schema.in_order(version, flexible=compact)), version, flexible)
    if compact:
        steps.append(compile_tagged(schema.with_tags(version), version, flexible))
    begin = absent_fields(schema, version, compact=compact)

    def decode(data: bytes, position: int, left: Left) -> tuple[Fields, int]:
        values = begin()
        for step in steps:
            position = step(data, position, left, values)
        return values, position

    return decode


def compile_fields(
    fields: Sequence[FieldSchema], version: int, flexible: VersionRange
) -> list[FieldDecoder]:
    """Return the steps for fields that stand one after another."""
    steps: list[FieldDecoder] = []
    for fixed, group in groupby(fields, key=lambda field: not field.array and field.type in FIXED):
        if fixed:
            steps.append(_unpacked(list(group)))
        else:
            steps += [_field(field, version, flexible) for field in group]
    return steps


def absent_fields(schema: StructSchema, version: int, *, compact: bool) -> Callable[[], Fields]:
    """Return what makes new fields: the defaults of those that the bytes need not have."""
    missing = schema.absent(version)
    if compact:
        missing += schema.with_tags(version)
    constant = {f.name: f.fresh() for f in missing if f.null_by_default or f.default is not None}
    fresh = [(f.name, f.fresh) for f in missing if f.name not in constant]
    if not fresh:
        return constant.copy

    def begin() -> Fields:
        values: Fields = constant.copy()
        for name, make in fresh:
            values[name] = make()
        return values

    return begin


def _unpacked(fields: Sequence[FieldSchema]) -> FieldDecoder:
    """Return the step for neighbours that `struct` reads in one call."""
    layout = Struct(">" + "".join(FIXED[field.type] for field in fields))
    unpack, size = layout.unpack_from, layout.size
    names = [field.name for field in fields]

    def decode(data: bytes, position: int, _: Left, values: Fields) -> int:
        values.update(zip(names, unpack(data, position), strict=True))
        return position + size

    if len(names) > 1:
        return decode
    (name,) = names

    def decode_one(data: bytes, position: int, _: Left, values: Fields) -> int:
        (values[name],) = unpack(data, position)
        return position + size

    return decode_one


def _field(field: FieldSchema, version: int, flexible: VersionRange) -> FieldDecoder:
    decode_value = _value(field, version, flexible)
    name = field.name

    def decode(data: bytes, position: int, left: Left, values: Fields) -> int:
        values[name], position = decode_value(data, position, left)
        return position

    return decode


def _value(field: FieldSchema, version: int, flexible: VersionRange) -> ValueDecoder:
    """Return the decoder of a field's value, null included."""
    compact = version in (flexible if field.flexible is None else field.flexible)
    if field.array:
        read = _array(field, version, flexible, compact=compact)
    elif field.struct is not None:
        read = _struct(field, version, flexible)
    elif field.type in {"string", "bytes", "records"}:
        read = compile_measured(field.type, compact=compact)
    else:
        return _scalar(field.type)
    if version in field.nullable:
        return read
    name = field.name

    def decode(data: bytes, position: int, left: Left) -> tuple[Any, int]:
        value, position = read(data, position, left)
        if value is None:
            raise WireError(f"{name} can't be null in version {version}")
        return value, position

    return decode


def _scalar(kind: str) -> ValueDecoder:
    layout = Struct(">" + FIXED[kind])
    unpack, size = layout.unpack_from, layout.size

    def decode(data: bytes, position: int, _: Left) -> tuple[Any, int]:
        return unpack(data, position)[0], position + size

    return decode


def length_reader(kind: str, *, compact: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a reader of lengths, which checks them; -1 is null."""
    layout = _SHORT if kind == "string" else _LONG
    unpack, size = layout.unpack_from, layout.size

    def read_fixed(data: bytes, position: int) -> tuple[int, int]:
        length = unpack(data, position)[0]
        position += size
        if not -1 <= length <= len(data) - position:
            raise too_long(data, position, length)
        return length, position

    def read_compact(data: bytes, position: int) -> tuple[int, int]:
        length, position = decode_uvarint(data, position)
        if length > len(data) - position + 1:
            raise too_long(data, position, length - 1)
        return length - 1, position

    return read_compact if compact else read_fixed


def too_long(data: bytes, position: int, length: int) -> WireError:
    """Return the error of a length that the data doesn't have."""
    left = len(data) - position
    return WireError(f"a length of {length} stands before byte {position}; {left} bytes are left")


def compile_measured(kind: str, *, compact: bool) -> ValueDecoder:
    """Return the decoder of a string, bytes or records: a length, then so many bytes."""
    length_at = length_reader(kind, compact=compact)

    def decode_bytes(data: bytes, position: int, _: Left) -> tuple[bytes | None, int]:
        length, position = length_at(data, position)
        if length < 0:
            return None, position
        end = position + length
        return data[position:end], end

    def decode_string(data: bytes, position: int, _: Left) -> tuple[str | None, int]:
        length, position = length_at(data, position)
        if length < 0:
            return None, position
        if length > STRING_BYTES_MAX:
            raise WireError(f"a string has at most {STRING_BYTES_MAX} bytes, not {length}")
        end = position + length
        return data[position:end].decode(), end

    return decode_string if kind == "string" else decode_bytes


def _struct(field: FieldSchema, version: int, flexible: VersionRange) -> ValueDecoder:
    assert field.struct is not None
    decode_struct = compile_decoder(field.struct, version, flexible)
    if version not in field.nullable:
        return decode_struct

    def decode(data: bytes, position: int, left: Left) -> tuple[Any, int]:
        # Kafka writes -1 for null and 1 for a struct; it takes any other negative number for null.
        if data[position] >= 0x80:
            return None, position + 1
        return decode_struct(data, position + 1, left)

    return decode


def _array(
    field: FieldSchema, version: int, flexible: VersionRange, *, compact: bool
) -> ValueDecoder:
    length_at = length_reader("array", compact=compact)
    if field.struct is not None:
        return _array_of_structs(length_at, compile_decoder(field.struct, version, flexible))
    if field.type in FIXED:
        return _array_of_scalars(length_at, FIXED[field.type])
    one = compile_measured(field.type, compact=compact)

    def decode(data: bytes, position: int, left: Left) -> tuple[list[Any] | None, int]:
        length, position = length_at(data, position)
        if length < 0:
            return None, position
        count_elements(left, length)
        values = []
        for _ in range(length):
            value, position = one(data, position, left)
            if value is None:
                raise WireError(f"an element of {field.name} is null")
            values.append(value)
        return values, position

    return decode


def _array_of_structs(
    length_at: Callable[[bytes, int], tuple[int, int]], one: ValueDecoder
) -> ValueDecoder:
    def decode(data: bytes, position: int, left: Left) -> tuple[list[Any] | None, int]:
        length, position = length_at(data, position)
        if length < 0:
            return None, position
        count_elements(left, length)
        values = []
        for _ in range(length):
            value, position = one(data, position, left)
            values.append(value)
        return values, position

    return decode


def _array_of_scalars(
    length_at: Callable[[bytes, int], tuple[int, int]], code: str
) -> ValueDecoder:
    size = Struct(f">{code}").size

    def decode(data: bytes, position: int, left: Left) -> tuple[list[Any] | None, int]:
        length, position = length_at(data, position)
        if length < 0:
            return None, position
        end = position + size * length
        if end > len(data):
            raise too_long(data, position, length)
        count_elements(left, length // NUMBERS)
        return list(unpack_from(f">{length}{code}", data, position)), end

    def decode_uuids(data: bytes, position: int, left: Left) -> tuple[list[Any] | None, int]:
        length, position = length_at(data, position)
        if length < 0:
            return None, position
        end = position + size * length
        if end > len(data):
            raise too_long(data, position, length)
        count_elements(left, length)
        return [data[start : start + size] for start in range(position, end, size)], end

    return decode_uuids if code == FIXED["uuid"] else decode


def compile_tagged(
    fields: Sequence[FieldSchema], version: int, flexible: VersionRange
) -> FieldDecoder:
    """Return the step for tagged fields; one that nobody here knows is passed over."""
    known: Mapping[int, tuple[str, ValueDecoder]] = {
        field.tag: (field.name, _value(field, version, flexible)) for field in fields
    }

    def decode(data: bytes, position: int, left: Left, values: Fields) -> int:
        count = data[position]
        if count == 0:
            return position + 1
        count, position = decode_uvarint(data, position)
        if count > min(len(data) - position, TAGS_MAX):
            raise WireError(f"a struct has {count} tagged fields; it may have {TAGS_MAX}")
        count_elements(left, count)
        for _ in range(count):
            tag, position = decode_uvarint(data, position)
            size, position = decode_uvarint(data, position)
            end = position + size
            if end > len(data):
                raise too_long(data, position, size)
            if tag in known:
                name, read = known[tag]
                values[name], position = read(data, position, left)
                if position != end:
                    raise WireError(f"the tagged field {name} does not end where its length says")
            position = end
        return position

    return decode


def count_elements(left: Left, elements: int) -> None:
    """Count elements before they are made. Raises WireError if the message has too many."""
    left[0] -= elements
    if left[0] < 0:
        raise WireError("the message has too many elements in its arrays")
