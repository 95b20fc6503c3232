"""A folder on this machine, opened read-only, whether or not a node runs in it.

Rule: nothing is locked to find out whether a node runs there. The system's own table of locks
tells.
"""

import os
from contextlib import suppress
from pathlib import Path

_LOCK = ".lock"
_JOURNAL = "journal"
_LOCKS = Path("/proc/locks")


class NoLogError(Exception):
    """There is no log at the given place. The message says what was expected."""


class LocalTree:
    """A folder as an `audit.places.remote.Tree`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.location = str(folder)

    def files(self, folder: str) -> list[str]:
        return self._names(folder, is_file=True)

    def folders(self, folder: str) -> list[str]:
        return self._names(folder, is_file=False)

    def _names(self, folder: str, *, is_file: bool) -> list[str]:
        try:
            entries = list(os.scandir(self._folder / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(entry.name for entry in entries if entry.is_file() == is_file)

    def size(self, path: str) -> int:
        return (self._folder / path).stat().st_size

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        with (self._folder / path).open("rb") as file:
            file.seek(position)
            return file.read(-1 if length is None else length)


def may_be_written(folder: Path) -> bool:
    """Return whether a node may be running in a folder.

    It may if the folder has a journal, or if its lock file is locked.
    """
    return (folder / _JOURNAL).is_dir() or is_locked(folder)


def is_locked(folder: Path) -> bool:
    """Return whether a process holds a folder's lock now."""
    with suppress(OSError):
        status = (folder / _LOCK).stat()
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        return any(device in line.split() for line in _LOCKS.read_text().splitlines())
    return False
