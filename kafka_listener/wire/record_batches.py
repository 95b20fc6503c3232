"""Kafka's record batches, magic 2: what stands in a log, in a Fetch answer and in a snapshot.

    0  base offset             i64
    8  length of what follows  i32
   12  partition leader epoch  i32
   16  magic                   i8, always 2
   17  CRC-32C                 u32, of all that follows
   21  attributes              i16: 0-2 compression, 5 control batch
   23  last offset delta       i32
   27  first timestamp, last   i64 each, in milliseconds
   43  producer id, epoch      i64, i16
   53  base sequence           i32
   57  number of records       i32
   61  records: length, attributes (i8), timestamp delta, offset delta, key, value, headers

Rule: a batch that we write has no producer and no compression; each record's time is the batch's.
A record's numbers are varints; the length of a key that is null is -1.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Final, NamedTuple

import google_crc32c

from kafka_listener.wire.errors import WireError
from kafka_listener.wire.varints import decode_varint, encode_varint

CONTROL: Final = 0x20
_COMPRESSION: Final = 0x07
_MAGIC: Final = 2
_PREFIX: Final = Struct(">qiibI")
_CHECKED: Final = Struct(">hiqqqhii")
_CRC_AT: Final = 17
_CHECKED_AT: Final = _PREFIX.size
_LENGTH_FROM: Final = 12
"""A batch's length counts the bytes from here on."""
_NO_KEY: Final = encode_varint(-1)
_MOST_HEADERS: Final = 1000


class RecordBatch(NamedTuple):
    """One batch, read."""

    base_offset: int
    epoch: int
    timestamp_ms: int
    """Of the first record."""
    control: bool
    records: list[tuple[bytes | None, bytes | None]]
    """Key and value of each; their offsets follow each other from `base_offset`."""
    position: int
    """Where the batch begins in the data."""
    size: int
    """Its bytes."""


def encode_batch(
    base_offset: int,
    epoch: int,
    timestamp_ms: int,
    values: Sequence[tuple[bytes | None, bytes]],
    *,
    control: bool,
) -> bytes:
    """Return a batch with these keys and values. Raises WireError if there is none."""
    if not values:
        raise WireError("a batch without records can't be written")
    records = bytearray()
    for delta, (key, value) in enumerate(values):
        head = b"\x00\x00" + encode_varint(delta)
        head += _NO_KEY if key is None else encode_varint(len(key)) + key
        head += encode_varint(len(value))
        records += encode_varint(len(head) + len(value) + 1)
        records += head
        records += value
        records += b"\x00"
    attributes, last = CONTROL if control else 0, len(values) - 1
    checked = _CHECKED.pack(attributes, last, timestamp_ms, timestamp_ms, -1, -1, -1, last + 1)
    checked += records
    length = _PREFIX.size - _LENGTH_FROM + len(checked)
    crc = google_crc32c.value(checked)
    return _PREFIX.pack(base_offset, length, epoch, _MAGIC, crc) + checked


def decode_batches(data: bytes | memoryview) -> Iterator[RecordBatch]:
    """Yield the batches of a log's bytes, each with its checksum verified.

    Raises WireError at a damaged or compressed batch, and where the data ends inside of one.
    """
    whole = data if isinstance(data, bytes) else bytes(data)
    position = 0
    while position < len(whole):
        batch = _batch(whole, position)
        yield batch
        position += batch.size


def _batch(data: bytes, position: int) -> RecordBatch:
    if len(data) - position < _PREFIX.size + _CHECKED.size:
        raise WireError(f"the data ends inside the batch at byte {position}")
    base_offset, length, epoch, magic, crc = _PREFIX.unpack_from(data, position)
    end = position + _LENGTH_FROM + length
    if magic != _MAGIC:
        raise WireError(f"the batch at byte {position} has magic {magic}, not {_MAGIC}")
    if length < _PREFIX.size - _LENGTH_FROM + _CHECKED.size or end > len(data):
        raise WireError(f"the batch at byte {position} can't be {length} bytes long")
    checked = data[position + _CHECKED_AT : end]
    if google_crc32c.value(checked) != crc:
        raise WireError(f"the checksum (CRC-32C) of the batch at byte {position} does not fit")
    attributes, _, timestamp_ms, _, _, _, _, count = _CHECKED.unpack_from(checked)
    if attributes & _COMPRESSION:
        raise WireError(f"the batch at byte {position} is compressed")
    try:
        records = list(_records(checked, count))
    except (IndexError, StructError):
        raise WireError(f"a record ends too early in the batch at byte {position}") from None
    control = bool(attributes & CONTROL)
    return RecordBatch(base_offset, epoch, timestamp_ms, control, records, position, end - position)


def _records(data: bytes, count: int) -> Iterator[tuple[bytes | None, bytes | None]]:
    position = _CHECKED.size
    if not 0 <= count <= len(data) - position:
        raise WireError(f"a batch of {len(data)} bytes can't hold {count} records")
    for _ in range(count):
        length, position = decode_varint(data, position)
        end = position + length
        if not position < end <= len(data):
            raise WireError(f"a record of {length} bytes does not fit into its batch")
        _, at = decode_varint(data, position + 1)
        _, at = decode_varint(data, at)
        key, at = _part(data, at, end)
        value, at = _part(data, at, end)
        at = _past_headers(data, at, end)
        if at != end:
            raise WireError(f"a record ends at byte {at}, not where its length says: {end}")
        yield key, value
        position = end


def _part(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Return a key or a value, and the position after it."""
    length, position = decode_varint(data, position)
    if length < 0:
        return None, position
    if length > end - position:
        raise WireError(f"a part of {length} bytes does not fit into its record")
    return data[position : position + length], position + length


def _past_headers(data: bytes, position: int, end: int) -> int:
    count, position = decode_varint(data, position)
    if not 0 <= count <= _MOST_HEADERS:
        raise WireError(f"a record can't have {count} headers")
    for _ in range(2 * count):
        _, position = _part(data, position, end)
    return position
