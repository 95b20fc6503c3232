"""Segment files: their names, their headers, and where a new one begins.

Rule: a segment has the same bytes and the same name on every controller. It holds nothing about the
node, and where it ends depends only on its content. So a node can copy segments from any peer, and
`cmp` can compare them.

    0   magic "QRTS", format, flags, total length (see `frame`)
    12  base offset          i64
    20  previous epoch       i64, of the batch before
    28  previous timestamp   i64, of the batch before
    36  previous hash        32 bytes, of the batch before
    68  cluster id           UTF-8
        CRC-32C              u32
"""

import re
import struct
from collections.abc import Iterable

import msgspec

from ledger.batch import BATCH_BYTES_MAX
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError
from ledger.frame import CRC_BYTES, FORMAT, finish_frame, take_frame

MAGIC = b"QRTS"
LOG_FOLDER = "log"
ARCHIVE_FOLDER = "archive"
SEGMENT_BYTES = 64 * 1024 * 1024
"""A segment ends before the batch that would make it longer. The same in a whole cluster."""
HEADER_BYTES_MAX = 4096

_HEAD = struct.Struct(">4sHHIqqq32s")
_NAME = re.compile(r"([0-9]{20})\.log")

assert BATCH_BYTES_MAX < SEGMENT_BYTES


class SegmentHeader(msgspec.Struct, frozen=True):
    """The cluster, and the mark that the segment continues."""

    cluster_id: str
    previous: LogMark

    @property
    def base_offset(self) -> int:
        """The offset of the first record."""
        return self.previous.log_end

    def encode(self) -> bytes:
        """Return the header's frame."""
        cluster_id = self.cluster_id.encode()
        length = _HEAD.size + len(cluster_id) + CRC_BYTES
        if length > HEADER_BYTES_MAX:
            raise ValueError("the cluster id is too long")
        previous = self.previous
        return finish_frame(
            _HEAD.pack(
                MAGIC,
                FORMAT,
                0,
                length,
                previous.log_end,
                previous.epoch,
                previous.timestamp_ms,
                previous.head,
            )
            + cluster_id
        )


def parse_segment_header(data: bytes | memoryview) -> tuple[SegmentHeader, int]:
    """Read the header at the beginning of a segment; returns it and its length.

    Raises DamagedBatchError (`torn` when the data ends too early) or UnknownFormatError.
    """
    frame = take_frame(data, 0, MAGIC, HEADER_BYTES_MAX)
    if len(frame) < _HEAD.size + CRC_BYTES:
        raise DamagedBatchError(0, "the frame is shorter than a segment's header")
    _, _, _, length, base, epoch, timestamp, previous = _HEAD.unpack_from(frame)
    try:
        cluster_id = frame[_HEAD.size : -CRC_BYTES].decode()
    except UnicodeDecodeError:
        raise DamagedBatchError(0, "the cluster id is not text") from None
    return SegmentHeader(cluster_id, LogMark(base, previous, epoch, timestamp)), length


def segment_name(base_offset: int) -> str:
    """Return the file name (without folder) of the segment that begins at an offset."""
    return f"{base_offset:020d}.log"


def segment_base(name: str) -> int | None:
    """Return the base offset in a segment's file name (without folder); None for other files."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def segment_bases(names: Iterable[str]) -> list[int]:
    """Return the base offsets among file names (with or without folder), ascending."""
    found = (segment_base(name.rpartition("/")[2]) for name in names)
    return sorted(base for base in found if base is not None)


def must_roll(size: int, header_length: int, batch_length: int, segment_bytes: int) -> bool:
    """Return whether a batch must begin a new segment. A segment holds at least one batch."""
    return size > header_length and size + batch_length > segment_bytes
