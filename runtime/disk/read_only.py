"""Refuses the writing half of `runtime.disk.interface.Disk`, for disks that are only read.

Rule: nothing is created, changed, locked or synced. Every attempt raises EROFS, as on a file system
that is mounted read-only. So an audit can't harm what it reads, not even by a lock file.
"""

import errno
from collections.abc import Callable
from typing import NoReturn, TypeVar

from runtime.disk.interface import AppendFile

T = TypeVar("T")


class OnlyRead:
    """Refuses everything that writes. `audit.places.tree_disk` adds what reads."""

    location: str
    """The place that the error message names."""

    def lock(self) -> None:
        """Do nothing: readers don't exclude each other."""

    def close(self) -> None:
        """Do nothing: no file is open."""

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
