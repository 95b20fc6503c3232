"""Receipts: what this node's history has in the archive, a small file for each archived segment.

Rule: a receipt is written, durably, after the archive's copy of a segment was read back and
verified, and before the segment is removed here. So a segment that is gone here has a receipt. A
receipt holds the marks between which the segment lies; they prove the copy when it is read back.

    0    magic "QRTA", format, flags, total length (see `frame`)
    12   size of the segment  i64
    20   SHA-256 of its file  32 bytes
    52   mark at its begin    57 bytes (see `chain.LogMark`)
    109  mark at its end      57 bytes
    166  cluster id           UTF-8
         CRC-32C              u32
"""

import struct
from hashlib import sha256

import msgspec

from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.frame import CRC_BYTES, FORMAT, finish_frame, take_frame
from ledger.segments import HEADER_BYTES_MAX

MAGIC = b"QRTA"
RECEIPTS_FOLDER = "receipts"
PLACE_NAME = f"{RECEIPTS_FOLDER}/place"
"""A text file with the archive's path or URL, without secrets, for those who read the folder."""

_HEAD = struct.Struct(">4sHHIq32s57s57s")
_SUFFIX = ".receipt"


class Receipt(msgspec.Struct, frozen=True):
    """The archive holds a segment, from one mark to another."""

    cluster_id: str
    start: LogMark
    end: LogMark
    size: int
    """Bytes of the segment's file."""
    digest: bytes
    """SHA-256 of the segment's file."""

    @property
    def base_offset(self) -> int:
        """The offset of the segment's first record."""
        return self.start.log_end

    @property
    def path(self) -> str:
        """The path of the receipt in a node's folder."""
        return f"{RECEIPTS_FOLDER}/{self.base_offset:020d}{_SUFFIX}"

    def encode(self) -> bytes:
        """Return the receipt's frame, the whole content of its file."""
        cluster_id = self.cluster_id.encode()
        length = _HEAD.size + len(cluster_id) + CRC_BYTES
        start, end = self.start.encode(), self.end.encode()
        head = _HEAD.pack(MAGIC, FORMAT, 0, length, self.size, self.digest, start, end)
        return finish_frame(head + cluster_id)


def parse_receipt(data: bytes) -> Receipt:
    """Read what `encode` wrote. Raises LedgerError."""
    frame = take_frame(data, 0, MAGIC, HEADER_BYTES_MAX)
    if len(frame) != len(data) or len(frame) < _HEAD.size + CRC_BYTES:
        raise LedgerError("the file is not one receipt")
    _, _, _, _, size, digest, start, end = _HEAD.unpack_from(frame)
    try:
        cluster_id = frame[_HEAD.size : -CRC_BYTES].decode()
    except UnicodeDecodeError:
        raise LedgerError("the cluster id is not text") from None
    receipt = Receipt(cluster_id, LogMark.decode(start), LogMark.decode(end), size, digest)
    if not 0 <= receipt.start.log_end < receipt.end.log_end:
        raise LedgerError("the segment ends before it begins")
    return receipt


def is_receipt(name: str) -> bool:
    """Tell whether a file's name, without folder, is that of a receipt."""
    return name.endswith(_SUFFIX)


assert len(sha256().digest()) == 32
