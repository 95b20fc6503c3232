"""How the tree is cut into tiles of height 8, as C2SP's tlog-tiles names and serves them.

Rule: a tile of level L holds up to 256 hashes, each the root over 256**L leaves. A whole tile never
changes, so any number of readers and caches may keep it. A tile that is not whole is asked for with
its width.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ledger.batch import HASH_BYTES
from ledger.errors import LedgerError
from ledger.merkle.hashing import node_hash
from ledger.merkle.proofs import Subtree

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
LEVEL_MAX: Final = 7
"""2**63 leaves have tiles of 8 levels."""
_ENTRIES: Final = "entries"
_PATH = re.compile(
    r"tile/(?P<level>entries|0|[1-9][0-9]?)/(?P<number>(?:x[0-9]{3}/){0,6}[0-9]{3})"
    r"(?:\.p/(?P<width>[1-9][0-9]{0,2}))?"
)


class TreeTile(NamedTuple):
    """The place of a tile, or of a bundle of entries."""

    level: int
    number: int
    width: int = WIDTH
    """How many hashes or entries it has."""
    of_entries: bool = False
    """True: the data of the leaves, not hashes. The level is 0."""

    @property
    def path(self) -> str:
        """The path under which it is served, without a leading slash."""
        digits = f"{self.number:03d}"
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        name = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
        part = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{_ENTRIES if self.of_entries else self.level}/{name}{part}"

    @classmethod
    def parse(cls, path: str) -> "TreeTile":
        """Read a path. Raises LedgerError."""
        found = _PATH.fullmatch(path)
        if found is not None:
            of_entries = found["level"] == _ENTRIES
            number = int(found["number"].replace("x", "").replace("/", ""))
            width = int(found["width"] or WIDTH)
            tile = cls(0 if of_entries else int(found["level"]), number, width, of_entries)
            if tile.level <= LEVEL_MAX and width <= WIDTH and tile.path == path:
                return tile
        raise LedgerError(f"not the path of a tile: {path[:80]!r}")

    def lies_in(self, size: int) -> bool:
        """Tell whether a tree of this size has all hashes or entries of the tile."""
        return self.number * WIDTH + self.width <= size >> HEIGHT * self.level


def tiles_of(size: int, *, since: int = 0) -> list[TreeTile]:
    """Return the tiles with hashes that a tree has and the tree of `since` leaves had not.

    Of the tiles that are not whole, it names the widest.
    """
    tiles = []
    level = 0
    while size >> HEIGHT * level:
        before, count = since >> HEIGHT * level, size >> HEIGHT * level
        for number in range(before // WIDTH, -(-count // WIDTH)):
            width = min(WIDTH, count - number * WIDTH)
            if number * WIDTH + width > before:
                tiles.append(TreeTile(level, number, width))
        level += 1
    return tiles


def entry_bundle(entries: Sequence[bytes]) -> bytes:
    """Return leaves' data as a bundle of entries: of each its length (u16) and itself."""
    return b"".join(len(data).to_bytes(2, "big") + data for data in entries)


def subtrees_of(hashes: Callable[[int, int, int], bytes]) -> Subtree:
    """Return a source of subtrees' roots that reads tiles.

    `hashes(level, first, count)` gives `count` hashes of the tiles' level `level`, from number
    `first` on, one behind the other; they all lie in one tile.
    """

    def subtree(level: int, number: int) -> bytes:
        row, rest = divmod(level, HEIGHT)
        count = 1 << rest
        data = hashes(row, number * count, count)
        if len(data) != count * HASH_BYTES:
            raise LedgerError(f"hashes {number * count} ff. of level {row} are not there")
        return fold(data)

    return subtree


def fold(data: bytes) -> bytes:
    """Return the root over hashes that stand one behind the other: 1, 2, 4, 8 … of them."""
    row = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
    while len(row) > 1:
        row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
    return row[0]
