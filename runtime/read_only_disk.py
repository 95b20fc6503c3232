"""A folder that is only looked at: a running node's, a copy, a backup.

Rule: nothing is created, changed, locked or synced; whoever tries gets EROFS, as on a file system
that is mounted read-only. So an auditor's tool can't harm what it reads, not even by a lock file.
"""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

from runtime.disk import AppendFile
from runtime.paths import checked, checked_folder

T = TypeVar("T")


class OnlyRead:
    """The writing half of `runtime.disk.Disk`, refused; whoever reads a place adds the other."""

    location: str
    """What a refusal names."""

    def lock(self) -> None:
        """Nothing to take: readers don't exclude anybody."""

    def close(self) -> None:
        """Nothing is open."""

    def make_folder(self, folder: str) -> None:
        self._refuse(folder)

    def open(self, name: str) -> AppendFile:
        self._refuse(name)

    def rename(self, source: str, target: str) -> None:
        self._refuse(source)

    def unlink(self, name: str) -> None:
        self._refuse(name)

    def sync_folder(self, folder: str) -> None:
        self._refuse(folder)

    def replace(self, name: str, data: bytes) -> None:
        self._refuse(name)

    def sync(self, file: AppendFile, on_done: Callable[[OSError | None], None]) -> None:
        self._refuse(file.name)

    def in_background(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        self._refuse("background work")

    def free_bytes(self) -> int:
        return 0

    def _refuse(self, name: str) -> NoReturn:
        raise OSError(errno.EROFS, "this place is only read", f"{self.location}: {name}")


class ReadOnlyDisk(OnlyRead):
    """`runtime.disk.Disk` without its writing half. Raises NotADirectoryError at once."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "no such folder", str(root))
        self._root = root
        self.location = str(root)

    def make_folder(self, folder: str) -> None:
        if not (self._root / checked_folder(folder)).is_dir():
            self._refuse(folder)

    def list(self, folder: str) -> list[str]:
        try:
            entries = list(os.scandir(self._root / checked_folder(folder)))
        except FileNotFoundError:
            return []
        return sorted(entry.name for entry in entries if entry.is_file())

    def exists(self, name: str) -> bool:
        return (self._root / checked(name)).is_file()

    def size(self, name: str) -> int:
        return (self._root / checked(name)).stat().st_size

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        with (self._root / checked(name)).open("rb") as file:
            file.seek(position)
            return file.read(-1 if length is None else length)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self._root).free

    def _refuse(self, name: str) -> NoReturn:
        raise OSError(errno.EROFS, "this folder is only read", str(self._root / name))
