"""The hash chain's beginning, and marks.

Rule: a mark is a place in the log. It holds enough to check the next batch against it and to prove
everything before it.
"""

import struct
from hashlib import sha256

import msgspec

from ledger.batch import HASH_BYTES, Batch
from ledger.errors import LedgerError

_MARK = struct.Struct(">Bqqq32s")
_MARK_FORMAT = 1


def first_hash(cluster_id: str) -> bytes:
    """Return the previous hash that the first batch of a cluster must contain."""
    return sha256(cluster_id.encode()).digest()


class LogMark(msgspec.Struct, frozen=True):
    """A place between two batches."""

    log_end: int
    """Offset of the next record."""
    head: bytes
    """Hash of the batch that ends here; `first_hash` at 0."""
    epoch: int
    """Of that batch; 0 at the beginning."""
    timestamp_ms: int
    """Of that batch; 0 at the beginning."""

    def encode(self) -> bytes:
        """57 bytes: format 1 (u8), log end, epoch, timestamp (i64, big-endian), head."""
        return _MARK.pack(_MARK_FORMAT, self.log_end, self.epoch, self.timestamp_ms, self.head)

    @classmethod
    def decode(cls, data: bytes) -> "LogMark":
        """Read what `encode` wrote. Raises LedgerError."""
        if len(data) != _MARK.size or data[0] != _MARK_FORMAT:
            raise LedgerError(f"not a mark of format 1: {data[:64].hex()}")
        _, log_end, epoch, timestamp_ms, head = _MARK.unpack(data)
        return cls(log_end, head, epoch, timestamp_ms)

    @classmethod
    def beginning(cls, cluster_id: str) -> "LogMark":
        """Return the mark before the first batch of a cluster."""
        return cls(0, first_hash(cluster_id), 0, 0)

    def after(self, batch: Batch) -> "LogMark":
        """Return the mark after a batch that continues this one."""
        header = batch.header
        return LogMark(header.end_offset, batch.hash, header.epoch, header.timestamp_ms)

    def objection(self, batch: Batch) -> str:
        """Return why a batch does not continue this mark; empty if it does."""
        header = batch.header
        if header.base_offset != self.log_end:
            return f"offset {self.log_end} must follow, the batch begins at {header.base_offset}"
        if header.previous_hash != self.head:
            return "the previous hash is not the hash of the batch before: the chain is broken"
        if header.epoch < self.epoch:
            return f"the epoch falls from {self.epoch} to {header.epoch}"
        if header.timestamp_ms < self.timestamp_ms:
            return f"the timestamp falls from {self.timestamp_ms} to {header.timestamp_ms}"
        return ""


assert _MARK.size == 25 + HASH_BYTES
