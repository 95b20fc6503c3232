"""The job `batches`: each frame of each replica as it lies on disk.

Rule: nothing is trusted and nothing is repaired. The lengths in the heads lead from frame to frame.
Whether a frame's checksum fits is a column. The hash is that of the bytes on disk.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from audit.places.replicas import Replica
from audit.reading.feed import Question
from ledger.batch import HEAD, HEAD_BYTES, hash_of
from ledger.catalogue import find_segments
from ledger.errors import DamagedBatchError, LedgerError
from ledger.frame import CRC_BYTES, crc32c
from ledger.reader import LedgerReader
from ledger.scan import walk_frames
from ledger.segments import HEADER_BYTES_MAX, parse_segment_header

Row = tuple[Any, ...]


class FrameFound(NamedTuple):
    """One frame."""

    segment: str
    """The file's name, without its folder."""
    base_offset: int
    records: int
    epoch: int
    timestamp_ms: int
    previous_hash: bytes
    hash: bytes
    crc_ok: bool

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + self.records


def batches(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.BATCHES`."""
    rows = [
        _row(replica.name, found)
        for replica in question.replicas
        for found in frames(replica, question.up_to)
    ]
    rows.sort(key=lambda row: row[:2])
    return rows


def _row(name: str, found: FrameFound) -> Row:
    return (
        name,
        found.base_offset,
        found.segment,
        found.records,
        found.epoch,
        found.timestamp_ms,
        found.previous_hash.hex(),
        found.hash.hex(),
        found.crc_ok,
    )


def frames(replica: Replica, up_to: int | None = None) -> Iterator[FrameFound]:
    """Yield the frames of a replica, segment by segment, that begin before `up_to`."""
    start = log_start(replica)
    for base, path in find_segments(replica.disk):
        if base < start:
            continue
        for found in _frames_of(replica, path):
            if up_to is None or found.base_offset < up_to:
                yield found


def log_start(replica: Replica) -> int:
    """Return the first offset of the segments that end at the log's end without a gap."""
    try:
        return LedgerReader(replica.disk).log_start
    except LedgerError:
        return 0


def _frames_of(replica: Replica, path: str) -> Iterator[FrameFound]:
    name = path.rpartition("/")[2]
    try:
        _, position = parse_segment_header(replica.disk.read(path, 0, HEADER_BYTES_MAX))
    except DamagedBatchError:
        return
    with suppress(DamagedBatchError):
        for window, start, _, length in walk_frames(replica.disk, path, position):
            frame = window[start : start + length]
            if length < HEAD_BYTES + CRC_BYTES:
                return
            _, _, _, _, count, base, epoch, timestamp_ms, previous, _, _ = HEAD.unpack_from(frame)
            fits = crc32c(frame[:-CRC_BYTES]) == int.from_bytes(frame[-CRC_BYTES:], "big")
            yield FrameFound(name, base, count, epoch, timestamp_ms, previous, hash_of(frame), fits)
