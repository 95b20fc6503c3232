"""Walks the frames of a file through windows, so that memory stays small.

Rule: a walk follows the lengths in the heads and verifies nothing else. `parse` verifies.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ledger.batch import BATCH_BYTES_MAX, HEAD, HEAD_BYTES, MAGIC
from ledger.errors import DamagedBatchError
from ledger.frame import frame_length
from runtime.disk.interface import Disk

WINDOW_BYTES = 4 * 1024 * 1024
assert WINDOW_BYTES > BATCH_BYTES_MAX


class Head(NamedTuple):
    """What a walker sees of a batch."""

    position: int
    """In the file."""
    length: int
    records: int
    base_offset: int
    epoch: int
    timestamp_ms: int
    previous_hash: bytes

    @property
    def end_offset(self) -> int:
        """Offset behind the last record."""
        return self.base_offset + self.records


class ScannedFrame(NamedTuple):
    """A whole frame inside a window."""

    window: bytes
    start: int
    """In the window."""
    position: int
    """In the file."""
    length: int


def walk_frames(
    disk: Disk, name: str, position: int, end: int | None = None, window_bytes: int = WINDOW_BYTES
) -> Iterator[ScannedFrame]:
    """Yield the batch frames of a file from `position`, up to `end` or the file's end.

    Raises DamagedBatchError with the position in the file; `torn` when the file ends too early.
    """
    while end is None or position < end:
        wanted = window_bytes if end is None else min(window_bytes, end - position)
        window = disk.read(name, position, wanted)
        at_end = len(window) < wanted or (end is not None and position + len(window) >= end)
        if not window:
            if end is None:
                return
            raise DamagedBatchError(position, "the file is shorter than it was", torn=True)
        start = 0
        while start < len(window):
            try:
                length = frame_length(window, start, MAGIC, BATCH_BYTES_MAX)
            except DamagedBatchError as error:
                if error.torn and not at_end:
                    break
                raise DamagedBatchError(position + start, error.reason, torn=error.torn) from None
            yield ScannedFrame(window, start, position + start, length)
            start += length
        if start == 0:  # a frame longer than the window
            window_bytes = WINDOW_BYTES
        position += start


def walk_heads(
    disk: Disk, name: str, position: int, window_bytes: int = WINDOW_BYTES
) -> Iterator[Head]:
    """Yield the heads of a file's batches from `position` to the file's end; the fast way.

    Raises as `walk_frames` does.
    """
    unpack, most = HEAD.unpack_from, BATCH_BYTES_MAX
    while window := disk.read(name, position, window_bytes):
        size, start = len(window), 0
        while start + HEAD_BYTES < size:
            magic, _, _, length, count, base, epoch, timestamp, previous, _, _ = unpack(
                window, start
            )
            if magic != MAGIC or count < 1 or base < 0 or not HEAD_BYTES < length <= most:
                raise _bad_head(window, start, position)
            if start + length > size:
                break
            yield Head(position + start, length, count, base, epoch, timestamp, previous)
            start += length
        if start < size < window_bytes:
            raise _bad_head(window, start, position)
        if start == 0:  # a frame longer than the window
            window_bytes = WINDOW_BYTES
        position += start


def _bad_head(window: bytes, start: int, position: int) -> DamagedBatchError:
    try:
        frame_length(window, start, MAGIC, BATCH_BYTES_MAX)
    except DamagedBatchError as error:
        return DamagedBatchError(position + start, error.reason, torn=error.torn)
    return DamagedBatchError(position + start, "a number in the head is out of its range")
