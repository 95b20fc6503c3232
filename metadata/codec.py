"""Encodes and decodes records: one MessagePack array of records, each `[kind, field, field, ...]`.

Rule: a sequence of records has exactly one encoding, and the decoder accepts only that one. It
encodes the records again and compares the bytes. That costs a tenth of the decoding and replaces a
check for each rule of the encoding (shortest integers, all fields present, float64 only where a
field is one). The decoder refuses an unknown record and never skips it: that record may change the
meaning of those that follow.
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
"""More than a batch may hold. The decoder refuses longer input without reading it."""


class RecordDecodeError(ValueError):
    """The bytes are not the encoding of a sequence of records."""


class UnknownRecordError(RecordDecodeError):
    """A record of a type or version that this software doesn't know."""

    def __init__(self, type_id: int, version: int, level: str = "") -> None:
        """`level` is a sentence about an unknown feature level in the same bytes; "": none."""
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
    """Return the encoding of `records`, in order. It doesn't check ranges; the decoder does."""
    return _encoder.encode(records)


def decode_records(data: bytes | memoryview) -> list[Record]:
    """Decode what `encode_records` encoded. Raises RecordDecodeError, UnknownRecordError."""
    _check_size(data)
    try:
        records = _decoder.decode(data)
    except _UNREADABLE as error:
        raise _explained(data, error) from error
    if _encoder.encode(records) != data:
        raise RecordDecodeError("the records are not in their canonical encoding")
    return records


def iterate_records(data: bytes | memoryview) -> Iterator[Record]:
    """Decode records one by one, so that the caller may do other work in between.

    Raises RecordDecodeError or UnknownRecordError when it reaches a record that it can't decode.
    """
    _check_size(data)
    try:
        encoded = _raw_decoder.decode(data)
    except _UNREADABLE as error:
        raise _explained(data, error) from error
    return (decode_record(bytes(one)) for one in encoded)


def encode_record(record: Record) -> bytes:
    """Return the encoding of one record, without the array. The state hash uses it."""
    return _encoder.encode(record)


def decode_record(data: bytes | memoryview) -> Record:
    """Decode what `encode_record` encoded. Raises RecordDecodeError, UnknownRecordError."""
    _check_size(data)
    try:
        record = _one_decoder.decode(data)
    except _UNREADABLE as error:
        raise _explained(b"\x91" + bytes(data), error) from error
    if _encoder.encode(record) != data:
        raise RecordDecodeError("the record is not in its canonical encoding")
    return record


def _check_size(data: bytes | memoryview) -> None:
    if len(data) > RECORDS_BYTES_MAX:
        raise RecordDecodeError(f"{len(data)} bytes of records; at most {RECORDS_BYTES_MAX}")


def _explained(data: bytes | memoryview, error: Exception) -> RecordDecodeError:
    """Return the error for data that can't be decoded: an unknown record, or damage.

    It is slow, so it runs only after a failure.
    """
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
    """Return a sentence if a record sets a feature level that this software doesn't know."""
    match fields:
        case [kind, str() as name, int() as level] if kind == _FEATURE_LEVEL:
            return unknown_level(name, level)
    return ""
