"""A disk in memory, fast enough to open harmed files a million times.

Rule: it keeps the promises of `runtime.disk.interface.Disk`, without faults, power loss or a clock.
Syncs and background work are done at once, and so are their callbacks. Files are shared until one
is written to.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from runtime.disk.interface import AppendFile

T = TypeVar("T")
Files = Mapping[str, bytes]
"""Content by name, with folder."""


class MemoryFile:
    """An open file."""

    def __init__(self, files: dict[str, bytes], name: str) -> None:
        self._files = files
        self._name = name
        self._content = bytearray(files.setdefault(name, b""))

    @property
    def name(self) -> str:
        return self._name

    def append(self, data: bytes) -> None:
        self._content += data
        self._files[self._name] = bytes(self._content)

    def size(self) -> int:
        return len(self._content)

    def truncate(self, size: int) -> None:
        del self._content[size:]
        self._files[self._name] = bytes(self._content)

    def sync(self) -> None:
        """It is as durable as it will get."""

    def close(self) -> None:
        """Nothing is held."""


class MemoryDisk:
    """`runtime.disk.interface.Disk` over a dictionary; `files` is what it holds now."""

    def __init__(self, files: Files) -> None:
        self.files = dict(files)

    def lock(self) -> None:
        """Nobody else is here."""

    def close(self) -> None:
        """Nothing is held."""

    def make_folder(self, folder: str) -> None:
        """Folders are a part of names."""

    def list(self, folder: str) -> list[str]:
        start = f"{folder}/" if folder else ""
        size = len(start)
        names = (name[size:] for name in self.files if name.startswith(start))
        return sorted(name for name in names if "/" not in name)

    def exists(self, name: str) -> bool:
        return name in self.files

    def size(self, name: str) -> int:
        return len(self._content(name))

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        content = self._content(name)
        if position == 0 and (length is None or length >= len(content)):
            return content
        return content[position : None if length is None else position + length]

    def open(self, name: str) -> MemoryFile:
        return MemoryFile(self.files, name)

    def rename(self, source: str, target: str) -> None:
        self.files[target] = self._content(source)
        del self.files[source]

    def unlink(self, name: str) -> None:
        self._content(name)
        del self.files[name]

    def sync_folder(self, folder: str) -> None:
        """Names are as durable as they will get."""

    def replace(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def sync(self, file: AppendFile, on_done: Callable[[OSError | None], None]) -> None:
        on_done(None)

    def in_background(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        on_done(work(), None)

    def free_bytes(self) -> int:
        return 1 << 40

    def _content(self, name: str) -> bytes:
        try:
            return self.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None
