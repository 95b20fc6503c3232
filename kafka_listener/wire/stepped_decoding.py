"""Compiles a schema into a decoder that pauses in long arrays, so that the loop isn't held.

It gives what the decoder of `decoding.py` gives, and raises the same.

Rule: after STEP elements, of whatever arrays, a decoder yields. An array of numbers is read
NUMBERS_STEP at a time. What stands between two pauses is otherwise bounded: a string by its length,
and the tagged fields of a struct by their number.
"""

from collections.abc import Callable, Generator
from struct import Struct, unpack_from
from typing import Any, Final

from kafka_listener.wire.decoding import (
    NUMBERS,
    FieldDecoder,
    Left,
    ValueDecoder,
    absent_fields,
    compile_decoder,
    compile_fields,
    compile_measured,
    compile_tagged,
    count_elements,
    length_reader,
    too_long,
)
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.schema import FIXED, Fields, FieldSchema, StructSchema, VersionRange

STEP: Final = 64
"""Elements between two pauses: a fraction of a millisecond."""
NUMBERS_STEP: Final = 8192
SteppedDecoder = Callable[[bytes, int, Left], Generator[None, None, tuple[Any, int]]]
"""Returns a value and the position after it. `Left` has a second number: the elements since the
last pause."""


def compile_stepped_decoder(
    schema: StructSchema, version: int, flexible: VersionRange
) -> SteppedDecoder | None:
    """Return a function that reads a struct; None: it has no array."""
    compact = version in flexible
    fields = list(schema.in_order(version, flexible=compact))
    if not any(field.array for field in fields):
        return None
    steps: list[tuple[FieldDecoder | None, str, SteppedDecoder | None]] = []
    plain: list[FieldSchema] = []
    for field in fields:
        if not field.array:
            plain.append(field)
            continue
        steps += [(step, "", None) for step in compile_fields(plain, version, flexible)]
        plain = []
        steps.append((None, field.name, _compile_array(field, version, flexible)))
    steps += [(step, "", None) for step in compile_fields(plain, version, flexible)]
    if compact:
        steps.append((compile_tagged(schema.with_tags(version), version, flexible), "", None))
    begin = absent_fields(schema, version, compact=compact)

    def decode(data: bytes, position: int, left: Left) -> Generator[None, None, tuple[Fields, int]]:
        values = begin()
        for step, name, array in steps:
            if step is not None:
                position = step(data, position, left, values)
            elif array is not None:
                values[name], position = yield from array(data, position, left)
        return values, position

    return decode


def _compile_array(field: FieldSchema, version: int, flexible: VersionRange) -> SteppedDecoder:
    compact = version in (flexible if field.flexible is None else field.flexible)
    length_at = length_reader("array", compact=compact)
    nullable, name = version in field.nullable, field.name
    fill = _compile_filling(field, version, flexible, compact=compact)

    def decode(
        data: bytes, position: int, left: Left
    ) -> Generator[None, None, tuple[list[Any] | None, int]]:
        length, position = length_at(data, position)
        if length < 0:
            if not nullable:
                raise WireError(f"{name} can't be null in version {version}")
            return None, position
        values: list[Any] = []
        position = yield from fill(data, position, left, length, values)
        return values, position

    return decode


_Filling = Callable[[bytes, int, Left, int, list[Any]], Generator[None, None, int]]
"""Puts so many elements into a list; returns the position after them."""


def _compile_filling(
    field: FieldSchema, version: int, flexible: VersionRange, *, compact: bool
) -> _Filling:
    if field.struct is not None:
        stepped = compile_stepped_decoder(field.struct, version, flexible)
        if stepped is not None:
            return _of_long_structs(stepped)
        return _of_values(compile_decoder(field.struct, version, flexible), field.name)
    if field.type == "uuid" or field.type not in FIXED:
        one = _uuid if field.type == "uuid" else compile_measured(field.type, compact=compact)
        return _of_values(one, field.name)
    return _of_numbers(FIXED[field.type])


def _of_long_structs(one: SteppedDecoder) -> _Filling:
    def fill(
        data: bytes, position: int, left: Left, length: int, values: list[Any]
    ) -> Generator[None, None, int]:
        count_elements(left, length)
        for _ in range(length):
            value, position = yield from one(data, position, left)
            values.append(value)
            left[1] += 1
            if left[1] >= STEP:
                left[1] = 0
                yield
        return position

    return fill


def _of_values(one: ValueDecoder, name: str) -> _Filling:
    def fill(
        data: bytes, position: int, left: Left, length: int, values: list[Any]
    ) -> Generator[None, None, int]:
        count_elements(left, length)
        for _ in range(length):
            value, position = one(data, position, left)
            if value is None:
                raise WireError(f"an element of {name} is null")
            values.append(value)
            left[1] += 1
            if left[1] >= STEP:
                left[1] = 0
                yield
        return position

    return fill


def _uuid(data: bytes, position: int, _: Left) -> tuple[bytes, int]:
    end = position + 16
    if end > len(data):
        raise too_long(data, position, 16)
    return data[position:end], end


def _of_numbers(code: str) -> _Filling:
    size = Struct(f">{code}").size

    def fill(
        data: bytes, position: int, left: Left, length: int, values: list[Any]
    ) -> Generator[None, None, int]:
        if position + size * length > len(data):
            raise too_long(data, position, length)
        count_elements(left, length // NUMBERS)
        while length:
            some = min(length, NUMBERS_STEP)
            values.extend(unpack_from(f">{some}{code}", data, position))
            position += size * some
            length -= some
            left[1] += some // NUMBERS
            if left[1] >= STEP:
                left[1] = 0
                yield
        return position

    return fill
