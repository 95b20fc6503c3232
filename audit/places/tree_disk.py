"""A tree of files as a node's read-only disk, wherever its segments lie in it.

Rule: this is the reading half of `runtime.disk.interface.Disk`. If a folder holds nothing but
segments, they are shown in `log/`, as a node has them. If a running node moves a segment to
`archive/` between a listing and a read, the read finds it there: its bytes are the same.
"""

import errno
from collections.abc import Callable
from typing import TypeVar

from audit.places.remote import Tree
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER, segment_base
from runtime.disk.interface import Disk
from runtime.disk.paths import checked, checked_folder
from runtime.disk.read_only import OnlyRead

T = TypeVar("T")


class TreeDisk(OnlyRead):
    """The node's folder at `root` in a tree.

    `bare` names the one folder of it that `root` stands for.
    """

    def __init__(self, tree: Tree, root: str = "", *, bare: str = "") -> None:
        self._tree = tree
        self._root = root
        self._bare = bare
        self.location = tree.location

    def list(self, folder: str) -> list[str]:
        path = self._folder(checked_folder(folder))
        return [] if path is None else self._tree.files(path)

    def exists(self, name: str) -> bool:
        folder, _, last = checked(name).rpartition("/")
        return last in self.list(folder)

    def size(self, name: str) -> int:
        return self._found(name, self._tree.size)

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        return self._found(name, lambda path: self._tree.read(path, position, length))

    def _found(self, name: str, look: Callable[[str], T]) -> T:
        folder, _, last = checked(name).rpartition("/")
        try:
            return look(self._path(folder, last))
        except FileNotFoundError:
            if folder != LOG_FOLDER or segment_base(last) is None:
                raise
        return look(self._path(ARCHIVE_FOLDER, last))

    def _path(self, folder: str, name: str) -> str:
        path = self._folder(folder)
        if path is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", f"{folder}/{name}")
        return f"{path}/{name}" if path else name

    def _folder(self, folder: str) -> str | None:
        """Return where a node's folder lies in the tree."""
        if self._bare:
            return self._root if folder == self._bare else None
        return "/".join(part for part in (self._root, folder) if part)


class CutDisk(OnlyRead):
    """A node's folder whose ledger ends at a byte of a segment. Everything after that is hidden."""

    def __init__(self, disk: Disk, file: str, position: int) -> None:
        self._disk = disk
        self._file = file
        self._position = position
        self._last = segment_base(file.rpartition("/")[2])
        self.location = file

    def list(self, folder: str) -> list[str]:
        return [name for name in self._disk.list(folder) if self._is_here(folder, name)]

    def exists(self, name: str) -> bool:
        return self._disk.exists(name) and self._is_here(*name.rpartition("/")[::2])

    def size(self, name: str) -> int:
        size = self._disk.size(name)
        return min(size, self._position) if name == self._file else size

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        if name == self._file:
            left = max(0, self._position - position)
            length = left if length is None else min(left, length)
        return self._disk.read(name, position, length)

    def _is_here(self, folder: str, name: str) -> bool:
        base = segment_base(name)
        if base is None or folder not in (LOG_FOLDER, ARCHIVE_FOLDER) or self._last is None:
            return True
        return base < self._last or (base == self._last and self._position > 0)
