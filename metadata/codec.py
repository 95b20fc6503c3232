"""Records as bytes: one MessagePack array of records, each `[kind, field, field, ...]`.

Rule: one sequence of records has one encoding, and only that encoding is accepted. Decoding
encodes again and compares: it costs a tenth of the decoding and makes every other rule (shortest
integers, all fields present, float64 only where a field is one) hold without a check of its own.
What isn't known is refused, never skipped: a record that is not understood may be one that
forbids what comes after it.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import msgspec

from metadata.features import LOGBERG_VERSION, METADATA_VERSION, SUPPORTED, unknown_level
from metadata.records import (
    RECORD_CLASSES,
    REGISTRY,
    VERSIONS_PER_TYPE,
    FeatureLevelRecord,
    Record,
)

RECORDS_BYTES_MAX: Final = 16 * 1024 * 1024
"""More than a batch may ever hold; what claims more is refused unread."""


class RecordDecodeError(ValueError):
    """The bytes are not the encoding of any sequence of records."""


class UnknownRecordError(RecordDecodeError):
    """A record of a type or version that this software doesn't know."""

    def __init__(self, type_id: int, version: int, level: str = "") -> None:
        """`level` says which feature level, in the same bytes, this software doesn't know."""
        known = sorted(v for t, v in REGISTRY if t == type_id)
        knows = f"knows version {known[-1]} of it" if known else "doesn't know the type"
        super().__init__(
            f"record type {type_id} version {version}: this software {knows}; "
            + (level or f"a feature level above {_HIGHEST} brought it")
            + "; upgrade this node before it reads this log"
        )
        self.type_id = type_id
        self.version = version


_FEATURE_LEVEL: Final = FeatureLevelRecord.TYPE_ID * VERSIONS_PER_TYPE + FeatureLevelRecord.VERSION
_HIGHEST: Final = " and ".join(
    f"{name} {SUPPORTED[name].high}" for name in (METADATA_VERSION, LOGBERG_VERSION)
)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError)

_any_record: Any = reduce(or_, RECORD_CLASSES)
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[_any_record])
_raw_decoder: msgspec.msgpack.Decoder[list[msgspec.Raw]] = msgspec.msgpack.Decoder(
    list[msgspec.Raw]
)
_one_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(_any_record)


def encode_records(records: Sequence[Record]) -> bytes:
    """All of `records`, in order. Ranges are checked when they are decoded."""
    return _encoder.encode(records)


def decode_records(data: bytes | memoryview) -> list[Record]:
    """What `encode_records` encoded. Raises RecordDecodeError, UnknownRecordError."""
    _check_size(data)
    try:
        records = _decoder.decode(data)
    except _UNREADABLE as error:
        raise _explained(data, error) from error
    if _encoder.encode(records) != data:
        raise RecordDecodeError("records that decode, but not in their one canonical encoding")
    return records


def iterate_records(data: bytes | memoryview) -> Iterator[Record]:
    """Yield the same one by one: for who has to look after others between them.

    Raises RecordDecodeError, UnknownRecordError when it comes to a record that is none.
    """
    _check_size(data)
    try:
        encoded = _raw_decoder.decode(data)
    except _UNREADABLE as error:
        raise _explained(data, error) from error
    return (decode_record(bytes(one)) for one in encoded)


def encode_record(record: Record) -> bytes:
    """One record without the array around it: what the state hash is made of."""
    return _encoder.encode(record)


def decode_record(data: bytes | memoryview) -> Record:
    """What `encode_record` encoded. Raises RecordDecodeError, UnknownRecordError."""
    _check_size(data)
    try:
        record = _one_decoder.decode(data)
    except _UNREADABLE as error:
        raise _explained(b"\x91" + bytes(data), error) from error
    if _encoder.encode(record) != data:
        raise RecordDecodeError("a record that decodes, but not in its one canonical encoding")
    return record


def _check_size(data: bytes | memoryview) -> None:
    if len(data) > RECORDS_BYTES_MAX:
        raise RecordDecodeError(f"{len(data)} bytes of records; at most {RECORDS_BYTES_MAX}")


def _explained(data: bytes | memoryview, error: Exception) -> RecordDecodeError:
    """Tell a record that we don't know from one that is damaged; slow, and only after a failure."""
    try:
        kinds = msgspec.msgpack.decode(data, type=list[list[Any]])
    except _UNREADABLE:
        return RecordDecodeError(f"damaged records: {error}")
    level = next(filter(None, map(_unknown_level, kinds)), "")
    for fields in kinds:
        kind = fields[0] if fields else None
        if type(kind) is int and kind >= 0:
            type_id, version = divmod(kind, VERSIONS_PER_TYPE)
            if (type_id, version) not in REGISTRY:
                return UnknownRecordError(type_id, version, level)
    return RecordDecodeError(f"damaged records: {error}")


def _unknown_level(fields: list[Any]) -> str:
    """Return what to say if a record is a feature level that this software doesn't know."""
    match fields:
        case [kind, str() as name, int() as level] if kind == _FEATURE_LEVEL:
            return unknown_level(name, level)
    return ""
