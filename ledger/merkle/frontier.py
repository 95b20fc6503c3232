"""The frontier: the roots of the whole subtrees that a tree of some size is made of.

Invariant: it has one hash for each bit that is set in the size, the largest subtree first. That is
enough to append a leaf and to know the root, and it is all that a checkpoint has to hold.
"""

import struct

import msgspec

from ledger.batch import HASH_BYTES
from ledger.errors import LedgerError
from ledger.merkle.hashing import EMPTY_ROOT, node_hash

_HEAD = struct.Struct(">BQ")
_FORMAT = 1
SIZE_MAX = 2**63 - 1


class Frontier(msgspec.Struct, frozen=True):
    """The right edge of a tree."""

    size: int = 0
    """How many leaves the tree has."""
    peaks: tuple[bytes, ...] = ()
    """The roots of its whole subtrees, the largest first."""

    def append(self, leaf: bytes) -> "Frontier":
        """Return the frontier with one more leaf, given by its hash."""
        peaks = list(self.peaks)
        whole = self.size
        while whole & 1:
            leaf = node_hash(peaks.pop(), leaf)
            whole >>= 1
        peaks.append(leaf)
        return Frontier(self.size + 1, tuple(peaks))

    def root(self) -> bytes:
        """Return the root of the tree."""
        if not self.peaks:
            return EMPTY_ROOT
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root

    def encode(self) -> bytes:
        """Format 1 (u8), size (u64, big-endian), the peaks, 32 bytes each."""
        return _HEAD.pack(_FORMAT, self.size) + b"".join(self.peaks)

    @classmethod
    def decode(cls, data: bytes) -> "Frontier":
        """Read what `encode` wrote. Raises LedgerError."""
        if len(data) < _HEAD.size or data[0] != _FORMAT:
            raise LedgerError(f"not a frontier of format 1: {data[:64].hex()}")
        size = _HEAD.unpack_from(data)[1]
        hashes = data[_HEAD.size :]
        if size > SIZE_MAX or len(hashes) != size.bit_count() * HASH_BYTES:
            raise LedgerError(f"a frontier of {size} leaves doesn't have {len(hashes)} bytes")
        return cls(size, split_hashes(hashes))


def split_hashes(data: bytes) -> tuple[bytes, ...]:
    """Return the hashes that stand one behind the other."""
    return tuple(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES))
