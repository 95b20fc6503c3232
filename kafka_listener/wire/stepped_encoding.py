"""Compiles a schema into an encoder that pauses in long arrays, so that the loop isn't held.

An array may be any iterable here: its elements are taken one by one and encoded at once, so a long
answer needs no list of its elements. The bytes are those of `encoding.py`.

Rule: after STEP elements, of whatever arrays, an encoder yields. Arrays of plain numbers are packed
in one call, and a tagged array is short; neither pauses.
"""

from collections.abc import Callable, Generator, Iterable, Sized
from itertools import groupby
from typing import Any, Final

from kafka_listener.wire.body_parts import BodyParts
from kafka_listener.wire.encoding import (
    StructEncoder,
    array_length,
    compile_element,
    compile_field,
    compile_packed,
    compile_tagged,
    is_packed,
    null_length,
    refuse_absent,
)
from kafka_listener.wire.schema import FIXED, Fields, FieldSchema, StructSchema, VersionRange

STEP: Final = 32
"""Elements between two pauses: up to a millisecond, with what makes them."""
Pace = list[int]
"""One number: the elements since the last pause."""
SteppedEncoder = Callable[[BodyParts, Fields, Pace], Generator[None, None, None]]


def compile_stepped_encoder(
    schema: StructSchema, version: int, flexible: VersionRange
) -> SteppedEncoder | None:
    """Return a function that appends a struct's bytes; None: it has no array that may be long."""
    compact = version in flexible
    fields = list(schema.in_order(version, flexible=compact))
    if not any(map(_is_long, fields)):
        return None
    steps: list[StructEncoder | None] = []
    arrays: list[SteppedEncoder | None] = []
    for kind, group in groupby(fields, key=lambda field: (_is_long(field), is_packed(field))):
        long, packed = kind
        alike = list(group)
        if long:
            arrays += [_compile_array(field, version, flexible) for field in alike]
            steps += [None] * len(alike)
            continue
        plain = [compile_packed(alike)] if packed else _each(alike, version, flexible)
        steps += plain
        arrays += [None] * len(plain)
    if compact:
        steps.append(compile_tagged(schema.with_tags(version), version, flexible))
        arrays.append(None)
    allowed = frozenset(field.name for field in schema.fields if version in field.versions)
    pairs = list(zip(steps, arrays, strict=True))

    def encode(parts: BodyParts, values: Fields, pace: Pace) -> Generator[None, None, None]:
        if not values.keys() <= allowed:
            refuse_absent(schema, version, values.keys() - allowed, values)
        for plain, array in pairs:
            if plain is not None:
                plain(parts.last, values)
            elif array is not None:
                yield from array(parts, values, pace)

    return encode


def _is_long(field: FieldSchema) -> bool:
    return field.array and (field.type not in FIXED or field.type == "uuid")


def _each(
    fields: Iterable[FieldSchema], version: int, flexible: VersionRange
) -> list[StructEncoder]:
    return [compile_field(field, version, flexible) for field in fields]


def _compile_array(field: FieldSchema, version: int, flexible: VersionRange) -> SteppedEncoder:
    compact = version in (flexible if field.flexible is None else field.flexible)
    one = compile_element(field, version, flexible, compact=compact)
    stepped = None
    if field.struct is not None:
        stepped = compile_stepped_encoder(field.struct, version, flexible)
    length, null = array_length(compact=compact), null_length(4, compact)
    name, nullable, default = field.name, version in field.nullable, field.fresh()

    def encode(parts: BodyParts, values: Fields, pace: Pace) -> Generator[None, None, None]:
        elements: Any = values.get(name, default)
        if elements is None and nullable:
            parts.last += null
            return
        sized = isinstance(elements, Sized)
        inner = parts if sized else BodyParts()
        if sized:
            parts.last += length(len(elements))
        count = 0
        for element in elements:
            count += 1
            pace[0] += 1
            if stepped is None:
                one(inner.last, element)
            else:
                yield from stepped(inner, element, pace)
            if pace[0] >= STEP:
                pace[0] = 0
                inner.settle()
                yield
        if not sized:
            parts.last += length(count)
            parts.add(inner)

    return encode
