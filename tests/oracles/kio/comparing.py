"""Draws messages that kio can hold, and compares what both codecs make of them.

Rule: kio takes some numbers for more than numbers: error codes that it knows, times in whole
seconds since 1970. Such fields get values of that kind; all others get any.
"""

from io import BytesIO
from random import Random
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from kafka_listener.wire.messages import decode_message, encode_message, message_schema
from kafka_listener.wire.schema import Fields, FieldSchema
from tests.oracles.kio.pairing import (
    Pair,
    PairedField,
    entity_of,
    paired_fields,
    paired_within,
)

_BITS: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXTS: Final = ("", "a", "topic-1", "ü…", "x" * 200)
_CODES: Final = sorted(int(code) for code in ErrorCode)
_SECONDS: Final = 4_000_000_000
_LONG_MS: Final = 10**12


def drawn(random: Random, pair: Pair) -> Fields:
    """Draw a message that both codecs can hold."""
    assert pair.kios is not None
    schema = message_schema(pair.name).struct
    given = _struct(random, paired_fields(pair.name, pair.version, pair.kios), pair.version)
    absent = {field.name: field.fresh() for field in schema.absent(pair.version)}
    return {**absent, **given}


def difference(pair: Pair, fields: Fields) -> str:
    """Return what the two codecs don't agree on; empty: they agree both ways."""
    assert pair.kios is not None
    ours = encode_message(pair.name, pair.version, fields)
    entity = entity_of(pair.name, pair.version, pair.kios, fields)
    theirs = _written(pair.kios, entity)
    if ours != theirs:
        return f"ours {ours.hex()}, kio's {theirs.hex()}"
    if _read(pair.kios, ours) != entity:
        return f"kio reads {_read(pair.kios, ours)}, not {entity}"
    again = decode_message(pair.name, pair.version, theirs)
    return "" if again == fields else f"we read {again}, not {fields}"


def _written(kios: type[Any], entity: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(kios)(buffer, entity)
    return buffer.getvalue()


def _read(kios: type[Any], data: bytes) -> Any:
    entity, size = entity_reader(kios)(data, 0)
    assert size == len(data), "kio left bytes over"
    return entity


def _struct(random: Random, paired: tuple[PairedField, ...], version: int) -> Fields:
    found: Fields = {}
    for field in paired:
        struct = field.ours.struct
        found[field.ours.name] = _value(random, field, version)
        if struct is None:
            continue
        absent = {one.name: one.fresh() for one in struct.absent(version)}
        value = found[field.ours.name]
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                each |= {name: _copy(default) for name, default in absent.items()}
    return found


def _copy(default: Any) -> Any:
    return list(default) if isinstance(default, list) else default


def _value(random: Random, field: PairedField, version: int) -> Any:
    ours = field.ours
    if version in ours.nullable and random.random() < 0.2:
        return None
    if ours.array:
        return [_one(random, field, version) for _ in range(random.choice((0, 1, 2, 3)))]
    if _is_tagged(ours, version) and random.random() < 0.3:
        return ours.fresh()
    return _one(random, field, version)


def _is_tagged(field: FieldSchema, version: int) -> bool:
    return version in field.tagged


def _one(random: Random, field: PairedField, version: int) -> Any:
    match field.kind:
        case "struct":
            return _struct(random, paired_within(field, version), version)
        case "error_code":
            return random.choice(_CODES)
        case "timedelta_i64":
            return random.randrange(-_LONG_MS, _LONG_MS)
        case "datetime_i64":
            none = field.may_be_none and random.random() < 0.2
            return -1 if none else random.randrange(_SECONDS) * 1000
    match field.ours.type:
        case "string":
            return random.choice(_TEXTS)
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 3, 130)))
        case "uuid":
            return random.choice((bytes(16), random.randbytes(16)))
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.uniform(-1e9, 1e9)
        case "uint16":
            return random.randrange(2**16)
        case "uint32":
            return random.randrange(2**32)
        case kind:
            most = 2 ** _BITS[kind]
            return random.choice((0, 1, -1, most - 1, -most, random.randrange(-most, most)))
