"""The Merkle tree over a node's batches, on disk: what roots, proofs and tiles are read from.

Rule: everything here follows from the ledger, so nothing is synced before an answer, and what is
missing or wrong is dropped and made again. At an open, only whole tiles count whose hashes agree;
the rest is read from the ledger. Nobody believes this folder: a proof is checked by who gets it.

    tree/batches   for each batch its end offset (i64) and its hash: 40 bytes
    tree/tiles     for each whole tile of 256 leaves its root: 32 bytes

The levels above are kept in memory: 32 bytes for every 65,536 batches.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from ledger.batch import HASH_BYTES, Batch
from ledger.errors import LedgerError
from ledger.merkle.frontier import Frontier, split_hashes
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.proofs import prove_consistency, prove_inclusion, root_of
from ledger.merkle.tiles import HEIGHT, WIDTH, TreeTile, entry_bundle, fold, subtrees_of
from runtime.disk.interface import Disk

FOLDER: Final = "tree"
BATCHES: Final = f"{FOLDER}/batches"
TILES: Final = f"{FOLDER}/tiles"
_ENTRY: Final = struct.Struct(">q32s")
_BUNDLE_BYTES: Final = WIDTH * _ENTRY.size
_SYNC_TILES: Final = 256
"""The files are synced after so many tiles."""
_LOOK_AT_TILES: Final = 2 * _SYNC_TILES
"""So many of the last tiles are checked at an open: more than may not have been synced."""


class BatchPlace(NamedTuple):
    """Where a batch stands in the tree."""

    leaf: int
    end_offset: int
    chain_hash: bytes


class BatchTree:
    """The tree. `open` makes it; `append` keeps it up to date."""

    def __init__(self, disk: Disk, on_failed: Callable[[OSError], None]) -> None:
        self._disk = disk
        self._on_failed = on_failed
        self._batches = disk.open(BATCHES)
        self._tiles = disk.open(TILES)
        self._whole = 0
        """How many whole tiles are in the files."""
        self._waiting: list[tuple[int, bytes]] = []
        """The newest batches: those of the tile that is not whole, and what the disk refused."""
        self._waiting_roots: list[bytes] = []
        """The roots of the whole tiles among them."""
        self._upper: list[list[bytes]] = []
        """From level 2 on, the hashes of each level's tiles."""
        self._edge: list[Frontier] = [Frontier()]
        """Of each level, over the hashes of the tile that is not whole."""
        self._end_offset = 0
        self._subtree = subtrees_of(self.hashes)
        self.first = 0
        """The smallest size whose root it knows."""
        self.believed = True
        """It was made from the whole log."""

    @classmethod
    def open(cls, disk: Disk, on_failed: Callable[[OSError], None]) -> "BatchTree":
        """Read what is on disk, and drop what doesn't agree. Raises OSError.

        `on_failed` gets the error of a failed sync: the node must stop, as for any other file.
        """
        disk.make_folder(FOLDER)
        tree = cls(disk, on_failed)
        whole = min(tree._batches.size() // _BUNDLE_BYTES, tree._tiles.size() // HASH_BYTES)
        tree._adopt(tree._agreeing(whole))
        return tree

    # -- what it has ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many batches it has."""
        return sum(edge.size << HEIGHT * level for level, edge in enumerate(self._edge))

    @property
    def end_offset(self) -> int:
        """The offset where its last batch ends: the next one must begin there."""
        return self._end_offset

    @property
    def head(self) -> bytes | None:
        """The hash of its last batch; None if it has none."""
        return self.place(self.size - 1).chain_hash if self.size else None

    def frontier(self) -> Frontier:
        """Return the frontier at its end."""
        peaks = (peak for edge in reversed(self._edge) for peak in edge.peaks)
        return Frontier(self.size, tuple(peaks))

    def root(self, size: int) -> bytes:
        """Return the root of its first `size` batches. Raises LedgerError, OSError."""
        self._must_have(size)
        return self.frontier().root() if size == self.size else root_of(size, self._subtree)

    def inclusion(self, index: int, size: int) -> tuple[bytes, ...]:
        """Prove that a batch is one of the first `size`. Raises LedgerError, OSError."""
        self._must_have(size)
        return prove_inclusion(index, size, self._subtree)

    def consistency(self, old: int, size: int) -> tuple[bytes, ...]:
        """Prove that the first `old` batches are the same in both. Raises LedgerError, OSError."""
        self._must_have(size)
        return prove_consistency(old, size, self._subtree)

    def place(self, index: int) -> BatchPlace:
        """Return where a batch stands. Raises LedgerError, OSError."""
        return BatchPlace(index, *self._entries(index, 1)[0])

    def find(self, offset: int) -> BatchPlace | None:
        """Return the place of the batch that holds an offset; None if there is none."""
        if not 0 <= offset < self._end_offset:
            return None
        low, high = 0, self.size - 1
        while low < high:
            middle = (low + high) // 2
            if self.place(middle).end_offset <= offset:
                low = middle + 1
            else:
                high = middle
        return self.place(low)

    def tile(self, tile: TreeTile) -> bytes:
        """Return a tile, or a bundle of entries. Raises LedgerError, OSError."""
        if not tile.lies_in(self.size):
            raise LedgerError(f"the tree of {self.size} batches has no {tile.path}")
        first = tile.number * WIDTH
        if tile.of_entries:
            return entry_bundle([found for _, found in self._entries(first, tile.width)])
        return self.hashes(tile.level, first, tile.width)

    def batch_hashes(self, first: int, count: int) -> bytes:
        """Return the hashes of batches, one behind the other. Raises LedgerError, OSError."""
        return b"".join(found for _, found in self._entries(first, count))

    def hashes(self, level: int, first: int, count: int) -> bytes:
        """Return hashes of the tiles of a level, one behind the other. Raises LedgerError."""
        if level == 0:
            return b"".join(leaf_hash(found) for _, found in self._entries(first, count))
        if level > 1:
            found = b"".join(self._upper[level - 2][first : first + count])
        else:
            on_disk = max(0, min(count, self._whole - first))
            found = b""
            if on_disk:
                found = self._disk.read(TILES, first * HASH_BYTES, on_disk * HASH_BYTES)
            begin = first + on_disk - self._whole
            found += b"".join(self._waiting_roots[begin : begin + count - on_disk])
        if len(found) != count * HASH_BYTES:
            raise LedgerError(f"{TILES}: hashes {first} ff. are not there")
        return found

    # -- how it grows -----------------------------------------------------------------------------

    def append(self, batch: Batch) -> bool:
        """Take the next batch; False: it is not the next one. Raises no error of the disk.

        What the disk refuses stays in memory, and is offered again with the next whole tile.
        """
        if batch.header.base_offset != self._end_offset:
            return False
        self._end_offset = batch.header.end_offset
        self._waiting.append((self._end_offset, batch.hash))
        root = self._push(0, leaf_hash(batch.hash))
        if root is not None:
            self._waiting_roots.append(root)
            self._push(1, root)
            self._write()
        return True

    def cut(self, log_end: int) -> None:
        """Drop the batches that end behind an offset, and those in their tiles. Raises OSError."""
        if self._end_offset > log_end:
            beyond = self.find(max(0, log_end))
            self._adopt(0 if beyond is None else min(beyond.leaf // WIDTH, self._whole))

    def drop(self) -> None:
        """Drop everything, and the files. Raises OSError."""
        self.close()
        for name in (BATCHES, TILES):
            if self._disk.exists(name):
                self._disk.unlink(name)
        self._batches, self._tiles = self._disk.open(BATCHES), self._disk.open(TILES)
        self._adopt(0)

    def close(self) -> None:
        """Close the files."""
        self._batches.close()
        self._tiles.close()

    def _must_have(self, size: int) -> None:
        if not 0 <= size <= self.size:
            raise LedgerError(f"the tree here has {self.size} batches, not {size}")

    def _entries(self, first: int, count: int) -> list[tuple[int, bytes]]:
        begin = self._whole * WIDTH
        found: list[tuple[int, bytes]] = []
        on_disk = max(0, min(count, begin - first))
        if on_disk:
            data = self._disk.read(BATCHES, first * _ENTRY.size, on_disk * _ENTRY.size)
            found = list(_ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]))
        at = first + on_disk - begin
        found += self._waiting[at : at + count - on_disk]
        if len(found) != count:
            raise LedgerError(f"{BATCHES}: batches {first} ff. are not there")
        return found

    def _push(self, level: int, found: bytes) -> bytes | None:
        """Take a hash of a level, and of the levels above 1 what that makes whole.

        Returns the root of the tile of `level`, if that made it whole.
        """
        while len(self._edge) <= level:
            self._edge.append(Frontier())
        if level > 1:
            while len(self._upper) < level - 1:
                self._upper.append([])
            self._upper[level - 2].append(found)
        edge = self._edge[level].append(found)
        if edge.size < WIDTH:
            self._edge[level] = edge
            return None
        self._edge[level] = Frontier()
        if level:
            self._push(level + 1, edge.root())
        return edge.root()

    def _write(self) -> None:
        """Write the whole tiles that wait."""
        tiles = len(self._waiting_roots)
        entries = self._waiting[: tiles * WIDTH]
        try:
            self._batches.append(b"".join(_ENTRY.pack(*entry) for entry in entries))
            self._tiles.append(b"".join(self._waiting_roots))
        except OSError:
            # A part may have been written. If that can't be cut off, the next open finds it.
            with suppress(OSError):
                self._cut_files()
            return
        before = self._whole // _SYNC_TILES
        self._whole += tiles
        del self._waiting[: tiles * WIDTH]
        self._waiting_roots.clear()
        if self._whole // _SYNC_TILES > before:
            for file in (self._batches, self._tiles):
                self._disk.sync(file, self._synced)

    def _synced(self, error: OSError | None) -> None:
        if error is not None:
            self._on_failed(error)

    def _agreeing(self, whole: int) -> int:
        """Return how many of the tiles on disk count. Raises OSError."""
        first = max(0, whole - _LOOK_AT_TILES)
        roots = self._disk.read(TILES, first * HASH_BYTES, (whole - first) * HASH_BYTES)
        end = -1
        for number, root in enumerate(split_hashes(roots), start=first):
            data = self._disk.read(BATCHES, number * _BUNDLE_BYTES, _BUNDLE_BYTES)
            if len(data) != _BUNDLE_BYTES:
                return number
            entries = list(_ENTRY.iter_unpack(data))
            leaves = b"".join(leaf_hash(found) for _, found in entries)
            ends = [end, *(offset for offset, _ in entries)]
            if fold(leaves) != root or any(one >= after for one, after in pairwise(ends)):
                return number
            end = ends[-1]
        return whole

    def _adopt(self, whole: int) -> None:
        """Begin again with the first `whole` tiles on disk. Raises OSError."""
        self._whole = whole
        self._cut_files()
        self._waiting, self._waiting_roots = [], []
        self._upper, self._edge = [], [Frontier(), Frontier()]
        for root in split_hashes(self._disk.read(TILES, 0, whole * HASH_BYTES)):
            self._push(1, root)
        self._end_offset = 0
        if whole:
            self._end_offset = self.place(whole * WIDTH - 1).end_offset

    def _cut_files(self) -> None:
        if self._batches.size() > self._whole * _BUNDLE_BYTES:
            self._batches.truncate(self._whole * _BUNDLE_BYTES)
        if self._tiles.size() > self._whole * HASH_BYTES:
            self._tiles.truncate(self._whole * HASH_BYTES)
