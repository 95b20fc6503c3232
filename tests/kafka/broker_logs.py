"""The metadata log as a Kafka broker has it on its own disk, read from the segment files.

Rule: nothing of the broker's is asked. A broker that runs may be in the middle of an append, so a
batch that is not whole at the end of the newest segment is left out.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafka_listener.wire.messages import decode_metadata_record
from kafka_listener.wire.record_batches import decode_batches
from kafka_listener.wire.schema import Fields

FOLDER: Final = "__cluster_metadata-0"
_HEAD: Final = struct.Struct(">qi")


class MetadataEntry(NamedTuple):
    """A data record of the log."""

    offset: int
    timestamp_ms: int
    kind: str
    fields: Fields


def segment_bytes(folder: Path) -> bytes:
    """Return the log in a broker's data folder, whole batches only."""
    data = b"".join(path.read_bytes() for path in sorted((folder / FOLDER).glob("*.log")))
    return data[: _whole(data)]


def batches_by_offset(data: bytes) -> dict[int, bytes]:
    """Return the bytes of each batch, by its base offset."""
    return {
        batch.base_offset: data[batch.position : batch.position + batch.size]
        for batch in decode_batches(data)
    }


def entries(data: bytes) -> Iterator[MetadataEntry]:
    """Yield the data records of a log."""
    for batch in decode_batches(data):
        if batch.control:
            continue
        for offset, (_, value) in enumerate(batch.records, batch.base_offset):
            assert value is not None
            kind, _, fields = decode_metadata_record(value)
            yield MetadataEntry(offset, batch.timestamp_ms, kind, fields)


def elections(data: bytes) -> int:
    """Return how many epochs began: control records that name a leader."""
    return sum(
        key is not None and key[2:4] == b"\x00\x02"
        for batch in decode_batches(data)
        if batch.control
        for key, _ in batch.records
    )


def end_of(data: bytes) -> int:
    """Return the offset behind the last batch."""
    end = 0
    for batch in decode_batches(data):
        end = batch.base_offset + len(batch.records)
    return end


def _whole(data: bytes) -> int:
    position = 0
    while position + _HEAD.size <= len(data):
        _, length = _HEAD.unpack_from(data, position)
        after = position + _HEAD.size + length
        if length <= 0 or after > len(data):
            break
        position = after
    return position
