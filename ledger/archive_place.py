"""Where archived segments lie, for code that waits (`ArchivePlace`) and for a loop (`Archive`).

Rule: a segment's file has the same name and the same bytes in the archive as on every controller,
so all controllers of a cluster share one archive, and whoever has the archive can read it as a
folder of segments. A file appears under its name when all of it is there, and is never changed.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class ArchiveWriter(Protocol):
    """A file that is being written."""

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""

    def close(self) -> None:
        """Make it durable, under its name. Raises OSError."""

    def give_up(self) -> None:
        """Remove what was written."""


class ArchivePlace(Protocol):
    """A place, by calls that block. All raise OSError."""

    def names(self) -> list[str]:
        """Return the names of the segments' files, sorted."""

    def read(self, name: str, position: int, length: int) -> bytes:
        """Return up to `length` bytes of a file from `position` on; fewer only at its end."""

    def create(self, name: str) -> ArchiveWriter:
        """Begin a file."""


class Archive(Protocol):
    """A place, for a loop that must not wait."""

    @property
    def location(self) -> str:
        """Its path or URL, without secrets."""

    def run(
        self,
        work: Callable[[ArchivePlace], T],
        on_done: Callable[[T | None, OSError | None], None],
    ) -> None:
        """Do blocking work elsewhere, then call `on_done` on the loop.

        Work is done in the order of the calls. A place that doesn't answer never calls back.
        """
