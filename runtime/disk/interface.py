"""The interface of a node's folder, and what is durable when.

Rule: files are opened for writing in `runtime` only. Names are relative POSIX paths inside the
node's own folder (`journal/00000000000000000001.wal`); nothing outside it can be named.

What is durable when, on every implementation:

- `append` and `truncate` change what a later read in this process sees, at once, and survive a
  kill of the process; they survive a loss of power only after a `sync` of that file that began
  later. Of unsynced bytes any subset of sectors may survive, in any order.
- creating, renaming and unlinking survive a loss of power only after `sync_folder` of the
  folder, which `replace` does itself.
- a sync that failed is never repeated: the kernel may have dropped the pages. The caller that gets
  the error stops the node (the fsyncgate rule).

Errors are `OSError` as the system gives them (`ENOSPC` a full disk, `EIO` a broken one).
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class FolderInUseError(Exception):
    """Another process holds the folder; the message names the folder and what to do."""


class AppendFile(Protocol):
    """A file that only grows, or is cut at its end."""

    @property
    def name(self) -> str:
        """The name it was opened under."""

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end, in order; not durable before a sync."""

    def size(self) -> int:
        """Length in bytes, appended ones included."""

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes; the next append goes there."""

    def sync(self) -> None:
        """Block until all that was appended is durable. For start-up and shutdown."""

    def close(self) -> None:
        """Close without a sync."""


class Disk(Protocol):
    """One node's folder."""

    def lock(self) -> None:
        """Take the folder for this process, until `close`.

        Raises FolderInUseError when another process has it.
        """

    def close(self) -> None:
        """Give the folder up: open files are closed, background work is finished first."""

    def make_folder(self, folder: str) -> None:
        """Create a folder and its parents, durably. Harmless when it is there."""

    def list(self, folder: str) -> list[str]:
        """Return the names (not paths) of the files in a folder, sorted; none if it is absent."""

    def exists(self, name: str) -> bool:
        """Tell whether a file is there."""

    def size(self, name: str) -> int:
        """Length in bytes. Raises FileNotFoundError."""

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `position` (fewer at the end of the file)."""

    def open(self, name: str) -> AppendFile:
        """Open for appending; created if absent (call `sync_folder` to make that durable)."""

    def rename(self, source: str, target: str) -> None:
        """Rename over whatever `target` was; not durable before `sync_folder`."""

    def unlink(self, name: str) -> None:
        """Remove a file; not durable before `sync_folder`. Raises FileNotFoundError."""

    def sync_folder(self, folder: str) -> None:
        """Block until the names in a folder are durable."""

    def replace(self, name: str, data: bytes) -> None:
        """Block until the file `name` durably holds exactly `data`.

        It is written beside (`name.part`), synced, renamed over, and the folder is synced. A
        crash leaves the old or the new.
        """

    def sync(self, file: AppendFile, on_done: Callable[[OSError | None], None]) -> None:
        """Sync off the loop: what was appended before this call is durable when called back.

        Calls back on the loop. Syncs and background work finish in the order of their calls.
        """

    def in_background(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        """Run blocking disk work off the loop, then call back on the loop.

        `work` may use this disk's blocking methods and must touch no state of the loop.
        An exception other than OSError is a defect and stops the process.
        """

    def free_bytes(self) -> int:
        """Bytes that can still be written."""
