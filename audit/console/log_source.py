"""Where the console's log comes from: files, or running controllers.

Rule: one thread keeps the index up with a reader of its own. The others read single batches, one at
a time, with another reader.
"""

from collections.abc import Callable
from threading import Lock
from typing import Protocol

from audit.places.replicas import Replica
from audit.reading.readable_log import ReadableLog
from ledger.batch import Batch
from ledger.catalogue import find_segments
from ledger.errors import LedgerError
from ledger.reader import LedgerReader


class LogSource(Protocol):
    """A log, and news of it."""

    @property
    def replica(self) -> Replica:
        """The log, for checkpoints."""

    def newest(self) -> ReadableLog:
        """Return the log as far as it reaches now. Raises LedgerError, NoLogError, OSError."""

    def batch_at(self, offset: int) -> Batch:
        """Return the batch that holds an offset, for any thread. Raises LedgerError, OSError."""


class FileSource:
    """A log in files, which may grow."""

    def __init__(self, choose: Callable[[], Replica]) -> None:
        """`choose` opens the replica with the longest log. Raises NoLogError, OSError."""
        self._choose = choose
        self.replica = choose()
        self._reader = self.replica.reader()
        self._others: LedgerReader | None = None
        self._lock = Lock()
        self._seen = self._end_of_files()

    def newest(self) -> ReadableLog:
        now = self._end_of_files()
        if now != self._seen:
            self._reader.refresh()
            self._seen = now
        return self._reader

    def batch_at(self, offset: int) -> Batch:
        with self._lock:
            if self._others is None:
                # Opened again: what keeps the files of an archive or a URL serves one thread only.
                self._others = self._choose().reader()
            if offset >= self._others.log_end:
                self._others.refresh()
            if offset >= self._others.log_end:
                raise LedgerError(f"offset {offset} is not in {self.replica.location} any more")
            return self._others.batch_at(offset)

    def close(self) -> None:
        """Nothing is held open."""

    def _end_of_files(self) -> tuple[str, int]:
        segments = find_segments(self.replica.disk)
        path = segments[-1][1] if segments else ""
        return path, self.replica.disk.size(path) if path else 0
