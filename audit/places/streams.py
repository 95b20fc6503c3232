"""Files of a tree as streams, and a cache of the blocks that were read last.

Rule: nothing is held open, and memory is bounded. Files don't change while their tree is open.
"""

import io
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any, Final

from audit.places.remote import Tree

BLOCK_BYTES: Final = 256 * 1024
CACHE_BYTES: Final = 64 * 1024 * 1024


def buffered(tree: Tree, path: str) -> io.BufferedReader:
    """Return a file of a tree as a seekable stream that reads one block at a time."""
    return io.BufferedReader(RangeStream(tree, path), BLOCK_BYTES)


class RangeStream(io.RawIOBase):
    """A file of a tree as a seekable stream. It keeps nothing open."""

    def __init__(self, tree: Tree, path: str) -> None:
        super().__init__()
        self._tree = tree
        self._path = path
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        beginning = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}
        start = beginning.get(whence)
        self._position = offset + (self._tree.size(self._path) if start is None else start)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = self._tree.read(self._path, self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


class RewindingStream(io.RawIOBase):
    """Makes a forward-only stream seekable. Going back starts again from the beginning."""

    def __init__(self, begin: Callable[[], IO[bytes]]) -> None:
        super().__init__()
        self._begin = begin
        self._inner = begin()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        target = offset + (self._position if whence == io.SEEK_CUR else 0)
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of a compressed stream is unknown")
        if target < self._position:
            self._inner, self._position = self._begin(), 0
        while self._position < target:
            if not self.read(min(BLOCK_BYTES, target - self._position)):
                break
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


class CachedTree:
    """A tree whose files don't change, with a cache of the blocks that were read last."""

    def __init__(self, tree: Tree, cache_bytes: int = CACHE_BYTES) -> None:
        self._tree = tree
        self.location = tree.location
        self._most = max(1, cache_bytes // BLOCK_BYTES)
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def files(self, folder: str) -> list[str]:
        return self._tree.files(folder)

    def folders(self, folder: str) -> list[str]:
        return self._tree.folders(folder)

    def size(self, path: str) -> int:
        if path not in self._sizes:
            self._sizes[path] = self._tree.size(path)
        return self._sizes[path]

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        if length is None:
            length = max(0, self.size(path) - position)
        first, last = position // BLOCK_BYTES, (position + length - 1) // BLOCK_BYTES
        data = b"".join(self._read_blocks(path, first, last)) if length > 0 else b""
        start = position - first * BLOCK_BYTES
        data = data[start : start + length]
        if not data and length > 0 and not self._ends(path, position):
            # Nothing was read: the position is after the end, or this read raises the reason.
            return self._tree.read(path, position, length)
        return data

    def _read_blocks(self, path: str, first: int, last: int) -> list[bytes]:
        """Return blocks in order. Missing blocks that follow each other are one read."""
        blocks: list[bytes] = []
        number = first
        while number <= last:
            known = self._blocks.get((path, number))
            if known is not None:
                self._blocks.move_to_end((path, number))
                blocks.append(known)
                number += 1
                if len(known) < BLOCK_BYTES:
                    break  # the end of the file
                continue
            end = number + 1
            while end <= last and (path, end) not in self._blocks:
                end += 1
            run = self._tree.read(path, number * BLOCK_BYTES, (end - number) * BLOCK_BYTES)
            for start in range(0, len(run), BLOCK_BYTES):
                block = run[start : start + BLOCK_BYTES]
                if len(block) == BLOCK_BYTES or self._ends(path, number * BLOCK_BYTES + len(run)):
                    self._keep(path, number + start // BLOCK_BYTES, block)
                blocks.append(block)
            if len(run) < (end - number) * BLOCK_BYTES:
                break
            number = end
        return blocks

    def _ends(self, path: str, position: int) -> bool:
        """Return whether a file ends there; False if it can't be decompressed."""
        try:
            return self.size(path) == position
        except OSError:
            return False

    def _keep(self, path: str, number: int, block: bytes) -> None:
        self._blocks[path, number] = block
        if len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
