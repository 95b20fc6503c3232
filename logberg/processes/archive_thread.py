"""A controller's archive: a place that is asked on a thread of its own.

Rule: whatever the place does, the node's loop and its disk's thread go on. The place is opened with
the first work, and anew after an error, so a place that comes back is used again.
"""

from collections.abc import Callable
from typing import TypeVar

from audit.places.remote import without_secrets
from audit.places.segment_archive import open_archive
from ledger.archive_place import ArchivePlace
from runtime.clock import ThreadsafeClock
from runtime.disk.worker import Worker

T = TypeVar("T")


class ArchiveThread:
    """`ledger.archive_place.Archive` over a folder or object storage."""

    def __init__(self, where: str, clock: ThreadsafeClock) -> None:
        self._where = where
        self._worker = Worker("archive", clock)
        self._place: ArchivePlace | None = None
        self.location = without_secrets(where) if "://" in where else where

    def run(
        self,
        work: Callable[[ArchivePlace], T],
        on_done: Callable[[T | None, OSError | None], None],
    ) -> None:
        """Do blocking work on the place, then call `on_done` on the loop."""
        self._worker.run(lambda: self._do(work), on_done)

    def _do(self, work: Callable[[ArchivePlace], T]) -> T:
        try:
            if self._place is None:
                self._place = open_archive(self._where)
            return work(self._place)
        except (OSError, ValueError, RuntimeError) as error:
            # Libraries of object storage raise these for what a server answers.
            self._place = None
            raise error if isinstance(error, OSError) else OSError(str(error)) from error
