"""A sparse index of one segment. It leads from an offset to a position shortly before it.

Rule: an index only saves time. It is built from the segment's heads and kept beside the segments
(`index/<base offset>.idx`) once the segment is closed. An index with anything odd about it is
dropped and built again. No other process reads it.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import Annotated

import msgspec

from ledger.errors import DamagedBatchError, LedgerError
from ledger.frame import CRC_BYTES, FORMAT, finish_frame, take_frame
from ledger.scan import Head

MAGIC = b"QRTI"
INDEX_FOLDER = "index"
EVERY_BYTES = 32 * 1024
"""A search for an offset walks at most this many bytes and one batch."""
INDEX_BYTES_MAX = 64 * 1024 * 1024

_HEAD = struct.Struct(">4sHHIqqq")
_Int64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class EpochStart(msgspec.Struct, frozen=True):
    """Where an epoch begins in the log."""

    epoch: int
    start_offset: int


class SegmentIndex:
    """Positions in one segment, from its first batch up to `end_offset`."""

    def __init__(self, base_offset: int, header_length: int, previous_epoch: int) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.end_position = header_length
        self.epoch = previous_epoch
        self.epoch_starts: list[EpochStart] = []
        self._offsets = array("q")
        self._positions = array("q")
        self._next = header_length

    def add(self, base_offset: int, count: int, epoch: int, length: int) -> None:
        """Add the batch that begins at `end_position`."""
        position = self.end_position
        if position >= self._next:
            self._offsets.append(base_offset)
            self._positions.append(position)
            self._next = position + EVERY_BYTES
        if epoch != self.epoch:
            self.epoch = epoch
            self.epoch_starts.append(EpochStart(epoch, base_offset))
        self.end_offset = base_offset + count
        self.end_position = position + length

    def add_heads(self, heads: Iterable[Head], until: int) -> Head | None:
        """Add batches up to the end offset `until`; return the last one.

        Raises DamagedBatchError if offsets don't follow each other. Stops at the first batch that
        reaches `until`.
        """
        head = None
        add, end = self.add, self.end_offset
        for head in heads:
            position, length, records, base, epoch, _, _ = head
            if base != end:
                raise DamagedBatchError(position, f"offset {end} must follow, not {base}")
            add(base, records, epoch, length)
            end = self.end_offset
            if end >= until:
                break
        return head

    def place_before(self, offset: int) -> int:
        """Return the position of a batch at or before an offset of this segment."""
        found = bisect_right(self._offsets, offset) - 1
        return self._positions[max(found, 0)]

    def encode(self) -> bytes:
        """Return the index as it is kept on disk."""
        body = msgspec.msgpack.encode(
            (
                list(self._offsets),
                list(self._positions),
                [(start.epoch, start.start_offset) for start in self.epoch_starts],
                self.epoch,
            )
        )
        length = _HEAD.size + len(body) + CRC_BYTES
        return finish_frame(
            _HEAD.pack(
                MAGIC, FORMAT, 0, length, self.base_offset, self.end_offset, self.end_position
            )
            + body
        )

    @classmethod
    def decode(cls, data: bytes) -> "SegmentIndex":
        """Read what `encode` wrote. Raises LedgerError."""
        frame = take_frame(data, 0, MAGIC, INDEX_BYTES_MAX)
        try:
            base, end_offset, end_position = _HEAD.unpack_from(frame)[4:]
            offsets, positions, starts, epoch = msgspec.msgpack.decode(
                frame[_HEAD.size : -CRC_BYTES],
                type=tuple[list[_Int64], list[_Int64], list[tuple[_Int64, _Int64]], _Int64],
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, struct.error) as error:
            raise LedgerError(f"not an index: {error}") from None
        if not offsets or len(offsets) != len(positions):
            raise LedgerError("not an index: it is empty")
        index = cls(base, positions[0], 0)
        index.end_offset, index.end_position, index.epoch = end_offset, end_position, epoch
        index.epoch_starts = [EpochStart(*start) for start in starts]
        index._offsets = array("q", offsets)
        index._positions = array("q", positions)
        index._next = positions[-1] + EVERY_BYTES
        return index


def index_name(base_offset: int) -> str:
    """Return the path of a segment's index."""
    return f"{INDEX_FOLDER}/{base_offset:020d}.idx"
