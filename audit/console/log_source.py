"""Where the console's log comes from: files, or running controllers.

Rule: one thread keeps the index up with a reader of its own. The others read single batches, one at
a time, with another reader.
"""

from collections.abc import Callable
from threading import Lock
from typing import Final, Protocol

from audit.places.replicas import Replica
from audit.reading.readable_log import ReadableLog
from ledger.batch import Batch
from ledger.catalogue import find_segments
from ledger.errors import LedgerError
from ledger.reader import LedgerReader

REOPEN_S: Final = 10.0
"""How often a log in object storage is looked for anew. Each look lists its files."""


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
        self._seen = _end_of_files(self.replica)

    def newest(self) -> ReadableLog:
        now = _end_of_files(self.replica)
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
                self._others = self._grown(self._others)
            if offset >= self._others.log_end:
                raise LedgerError(f"offset {offset} is not in {self.replica.location} any more")
            return self._others.batch_at(offset)

    def close(self) -> None:
        """Nothing is held open."""

    def _grown(self, reader: LedgerReader) -> LedgerReader:
        """Return a reader of what is there now."""
        reader.refresh()
        return reader


class RemoteSource(FileSource):
    """A log in object storage, which may grow.

    Rule: an opened place keeps what it was told of sizes and blocks, so it never grows. Now and
    then it is opened anew. The log is read again only if its last segment is another or longer.
    """

    def __init__(
        self,
        choose: Callable[[], Replica],
        *,
        now: Callable[[], float],
        every_s: float = REOPEN_S,
    ) -> None:
        """`now`: seconds of a clock that never goes back. Raises NoLogError, OSError."""
        super().__init__(choose)
        self._now = now
        self._every_s = every_s
        self._due = now() + every_s

    def newest(self) -> ReadableLog:
        if self._now() >= self._due:
            self._due = self._now() + self._every_s
            replica = self._choose()
            end = _end_of_files(replica)
            if end != self._seen:
                self._reader, self.replica, self._seen = replica.reader(), replica, end
        return self._reader

    def _grown(self, reader: LedgerReader) -> LedgerReader:
        return self._choose().reader()


def _end_of_files(replica: Replica) -> tuple[str, int]:
    """Return the last segment's path and length."""
    segments = find_segments(replica.disk)
    path = segments[-1][1] if segments else ""
    return path, replica.disk.size(path) if path else 0
