"""Following a log: its batches as they come, while the node writes, rolls segments, or restarts.

Rule: what was seen stays seen. A batch must continue the one before it; a log that is cut behind
what was synced and written again must tell the same history, or following ends and says so. What
can't be read just now (a segment that is being begun, a node that is starting) is tried again, and
becomes an error when it stays so, or at once where no node is writing.

Nothing here knows time: `pause` comes from outside and waits as long as it likes.
"""

from collections.abc import Callable, Iterator

from audit.places import Replica
from ledger.batch import Batch
from ledger.catalogue import find_segments
from ledger.errors import HistoryMissingError, LedgerError
from ledger.reader import LedgerReader

PATIENCE = 60
"""Tries in a row without an answer, before trouble becomes an error."""


class RewrittenError(LedgerError):
    """The log tells another history than it did."""

    def __init__(self, location: str, offset: int) -> None:
        super().__init__(
            f"{location}: the batch at offset {offset} does not continue what was here before; "
            "the log was replaced, or its node has lost its disk: `quorate audit compare` names "
            "the first offset where it differs from the other controllers'"
        )


def follow_batches(
    replica: Replica,
    reader: LedgerReader,
    start: int,
    *,
    pause: Callable[[], None],
    until: int | None = None,
) -> Iterator[Batch]:
    """Yield the batches from the one that holds `start`, then those that come, for ever.

    Up to the last that begins before `until`, if that is given. `pause` is called whenever there
    is nothing new. Raises RewrittenError, LedgerError, OSError.
    """
    follower = _Follower(replica, reader, start)
    while until is None or follower.position < until:
        for batch in follower.news():
            if until is not None and batch.header.base_offset >= until:
                return
            yield batch
        if until is None or follower.position < until:
            pause()


class _Follower:
    def __init__(self, replica: Replica, reader: LedgerReader, start: int) -> None:
        self.position = start
        self._replica = replica
        self._reader = reader
        self._head: bytes | None = None
        """Hash of the batch that ends at the position; None before the first."""
        self._failures = 0
        self._seen: tuple[str, int] | None = None
        """The last segment's name and size at the last look."""

    def news(self) -> Iterator[Batch]:
        """Yield what was appended since; nothing when it can't be told just now."""
        try:
            if self._has_grown():
                self._reader.refresh()
            if self._reader.log_end > self.position:
                yield from self._read()
            self._failures = 0
        except (RewrittenError, HistoryMissingError):
            raise
        except (LedgerError, OSError):
            self._seen = None
            self._failures += 1
            if self._failures >= PATIENCE or not self._replica.live:
                raise

    def _has_grown(self) -> bool:
        """Look at the last segment's size before anything is read: most looks find nothing."""
        segments = find_segments(self._replica.disk)
        path = segments[-1][1] if segments else ""
        now = (path, self._replica.disk.size(path) if path else 0)
        grown = now != self._seen
        self._seen = now
        return grown

    def _read(self) -> Iterator[Batch]:
        for batch in self._reader.batches(self.position):
            header = batch.header
            if self._head is not None and header.previous_hash != self._head:
                raise RewrittenError(self._replica.location, header.base_offset)
            self.position, self._head = header.end_offset, batch.hash
            yield batch
