"""The second table of the source: every frame as it lies on disk, right or wrong.

Rule: here damage is data. A frame with a wrong checksum is a row like the others, and the walk
continues at the length in its head. A segment's rows end where no frame can begin. A frame that a
running node has not finished is no row yet.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from audit.places.replicas import open_all
from audit.spark.source.reading import open_replica, path_now
from ledger.batch import HEAD, HEAD_BYTES
from ledger.catalogue import find_segments
from ledger.errors import DamagedBatchError, LedgerError, UnknownFormatError
from ledger.frame import CRC_BYTES, FORMAT, PREFIX, crc32c
from ledger.scan import ScannedFrame, walk_frames
from ledger.segments import HEADER_BYTES_MAX, parse_segment_header

FRAMES_DDL: Final = (
    "replica string, base_offset bigint, segment string, count bigint, epoch bigint, "
    "timestamp_ms bigint, previous_hash string, hash string, crc_ok boolean"
)
FRAMES_SCHEMA: Final = pa.schema(
    [
        ("replica", pa.string()),
        ("base_offset", pa.int64()),
        ("segment", pa.string()),
        ("count", pa.int64()),
        ("epoch", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("previous_hash", pa.string()),
        ("hash", pa.string()),
        ("crc_ok", pa.bool_()),
    ]
)
_ROWS_PER_BATCH: Final = 16_384


class SegmentPiece(InputPartition):
    """One segment of one replica, with the length that it had when it was listed."""

    def __init__(self, places: Sequence[str], replica: str, path: str, size: int) -> None:
        self.places = tuple(places)
        self.replica = replica
        self.path = path
        self.size = size


def plan_frames(places: Sequence[str], up_to: int | None) -> list[SegmentPiece]:
    """Return all segments of all replicas that begin before `up_to`. Raises NoLogError, OSError."""
    return [
        SegmentPiece(places, replica.name, path, replica.disk.size(path))
        for replica in open_all(places)
        for base, path in find_segments(replica.disk)
        if up_to is None or base < up_to
    ]


def read_frames(piece: SegmentPiece, up_to: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the frames of a segment that begin before `up_to`, in Arrow batches.

    Raises LedgerError for an undamaged frame of a newer format, NoLogError, OSError.
    """
    rows: list[tuple[Any, ...]] = []
    for row in _rows(piece):
        if up_to is None or row[1] < up_to:
            rows.append(row)
        if len(rows) == _ROWS_PER_BATCH:
            yield _arrow(rows)
            rows = []
    if rows:
        yield _arrow(rows)


def _rows(piece: SegmentPiece) -> Iterator[tuple[Any, ...]]:
    replica = open_replica(piece)
    path = path_now(replica.disk, piece.path)
    segment = path.rpartition("/")[2]
    shown = f"{replica.location}/{path}"
    try:
        header = replica.disk.read(path, 0, min(HEADER_BYTES_MAX, piece.size))
        _, position = parse_segment_header(header)
        for frame in walk_frames(replica.disk, path, position, piece.size):
            if frame.length >= HEAD_BYTES + CRC_BYTES:
                yield piece.replica, *_row(frame, segment)
    except DamagedBatchError:
        return  # the job `integrity` finds that the rows don't reach the next segment
    except UnknownFormatError as error:
        raise LedgerError(f"{shown}: {error}") from None


def _row(frame: ScannedFrame, segment: str) -> tuple[Any, ...]:
    data = frame.window[frame.start : frame.start + frame.length]
    crc_ok = crc32c(data[:-CRC_BYTES]) == int.from_bytes(data[-CRC_BYTES:], "big")
    _, version, flags, _ = PREFIX.unpack_from(data)
    if crc_ok and (version != FORMAT or flags):
        raise UnknownFormatError(frame.position, version, flags)
    _, _, _, _, count, base, epoch, timestamp_ms, previous, _, _ = HEAD.unpack_from(data)
    own = sha256(memoryview(data)[:-CRC_BYTES]).hexdigest()
    return base, segment, count, epoch, timestamp_ms, previous.hex(), own, crc_ok


def _arrow(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, FRAMES_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAMES_SCHEMA)
