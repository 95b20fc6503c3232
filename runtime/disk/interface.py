"""The interface of a node's folder, and what is durable when.

Rule: files are opened for writing in `runtime` only. Names are relative POSIX paths inside the
node's own folder (`journal/00000000000000000001.wal`); a name can't leave the folder.

What is durable when, on every implementation:

- `append` and `truncate` take effect at once for later reads, and survive a kill of the process.
  They survive a loss of power only after a `sync` of that file that began later. Of unsynced bytes
  any subset of sectors may survive, in any order.
- Creating, renaming and unlinking survive a loss of power only after `sync_folder` of the folder.
  `replace` does that itself.
- A sync that failed is never repeated, because the kernel may have dropped the pages. The caller
  that gets the error stops the node (the fsyncgate rule).

Errors are `OSError` as the system raises them (`ENOSPC`: the disk is full; `EIO`: it is broken).
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class FolderInUseError(Exception):
    """Another process holds the folder; the message names the folder and says what to do."""


class AppendFile(Protocol):
    """A file that only grows at its end, or is cut there."""

    @property
    def name(self) -> str:
        """The name under which it was opened."""

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end. It is not durable before a sync."""

    def size(self) -> int:
        """Return the length in bytes, with what was appended."""

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes. The next append begins there."""

    def sync(self) -> None:
        """Block until everything appended is durable. For start-up and shutdown."""

    def close(self) -> None:
        """Close without a sync."""


class Disk(Protocol):
    """One node's folder."""

    def lock(self) -> None:
        """Take the folder for this process, until `close`.

        Raises FolderInUseError if another process has it.
        """

    def close(self) -> None:
        """Finish background work, close open files and give the folder up."""

    def make_folder(self, folder: str) -> None:
        """Create a folder and its parents, durably. Do nothing if it exists."""

    def list(self, folder: str) -> list[str]:
        """Return the names (not paths) of the files in a folder, sorted; none if it is absent."""

    def exists(self, name: str) -> bool:
        """Tell whether a file exists."""

    def size(self, name: str) -> int:
        """Return the length in bytes. Raises FileNotFoundError."""

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `position` (fewer at the end of the file)."""

    def open(self, name: str) -> AppendFile:
        """Open for appending; create if absent (`sync_folder` makes that durable)."""

    def rename(self, source: str, target: str) -> None:
        """Rename, and replace `target` if it exists. Not durable before `sync_folder`."""

    def unlink(self, name: str) -> None:
        """Remove a file. Not durable before `sync_folder`. Raises FileNotFoundError."""

    def sync_folder(self, folder: str) -> None:
        """Block until the names in a folder are durable."""

    def replace(self, name: str, data: bytes) -> None:
        """Block until the file `name` durably holds exactly `data`.

        The data is written to `name.part`, synced, and renamed to `name`; then the folder is
        synced. After a crash the file has the old or the new content.
        """

    def sync(self, file: AppendFile, on_done: Callable[[OSError | None], None]) -> None:
        """Sync on another thread, then call `on_done` on the loop.

        Then everything that was appended before this call is durable, unless there is an error.
        Syncs and background work finish in the order of their calls.
        """

    def in_background(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        """Run blocking disk work on another thread, then call `on_done` on the loop.

        `work` may use this disk's blocking methods, and must not touch state that the loop owns.
        An exception other than OSError is a defect and stops the process.
        """

    def free_bytes(self) -> int:
        """Return how many bytes can still be written."""
