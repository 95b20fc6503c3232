"""Random Kafka messages, by their schemas."""

from random import Random
from typing import Any

from kafka_listener.schemas import read_schemas
from kafka_listener.wire.messages import message_schema
from kafka_listener.wire.schema import Fields, FieldSchema, StructSchema

NAMED_VERSIONS = [
    (name, version)
    for name in sorted(schema["name"] for schema in read_schemas())
    for version in range(
        message_schema(name).versions.first, message_schema(name).versions.last + 1
    )
]
"""Every message in every version."""

_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXTS = ("", "a", "topic-1", "ü…", "x" * 200)


def random_message(random: Random, name: str, version: int) -> Fields:
    """A message as decoding returns it: fields that the version lacks have their defaults."""
    return _struct(random, message_schema(name).struct, version)


def _struct(random: Random, struct: StructSchema, version: int) -> Fields:
    return {
        field.name: _value(random, field, version) if version in field.versions else field.fresh()
        for field in struct.fields
    }


def _value(random: Random, field: FieldSchema, version: int) -> Any:
    if random.random() < 0.2:
        return None if version in field.nullable else _one(random, field, version, empty=True)
    if field.array:
        return [_one(random, field, version) for _ in range(random.choice((0, 1, 2, 3)))]
    return _one(random, field, version)


def _one(random: Random, field: FieldSchema, version: int, *, empty: bool = False) -> Any:
    if empty and field.array:
        return []
    match field.type:
        case "struct":
            return _struct(random, field.struct, version)
        case "string":
            return random.choice(_TEXTS)
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 3, 130, 17_000)))
        case "uuid":
            return random.randbytes(16)
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.uniform(-1e9, 1e9)
        case "uint16":
            return random.randrange(2**16)
        case kind:
            most = 2 ** _BITS[kind]
            return random.choice((0, 1, -1, most - 1, -most, random.randrange(-most, most)))
