"""Follows a log: yields its batches as they come, while nodes write, stop or restart.

Rule: history that was yielded never changes. A batch must continue the one before it, from
whichever replica it is read. A node may cut its log after what was synced and write it again. If it
then writes another history, following ends with an error.

Some things can't be read just now, such as a segment without a header or a node that is starting.
The follower tries again. That becomes an error if it stays so for every replica, or at once if no
node is writing.

This module knows no time. `pause` comes from outside and waits as long as it likes.
"""

from collections.abc import Callable, Iterator, Sequence

from audit.places.replicas import NoLogError, Replica
from ledger.batch import Batch
from ledger.catalogue import find_segments
from ledger.errors import HistoryMissingError, LedgerError
from ledger.reader import LedgerReader

PATIENCE = 60
"""Failed tries in a row before the follower gives up a replica."""


class RewrittenError(LedgerError):
    """The log holds another history than before."""

    def __init__(self, location: str, offset: int) -> None:
        super().__init__(
            f"{location}: the batch at offset {offset} does not continue what was here before. "
            "The log was replaced, or its node has lost its disk. `logberg audit compare` shows "
            "the first offset at which it differs from the other controllers' logs"
        )


def follow_batches(
    replicas: Sequence[Replica],
    start: int,
    *,
    pause: Callable[[], None],
    until: int | None = None,
) -> Iterator[Batch]:
    """Yield the batches from the one that holds `start`, then new ones, without end.

    With `until`, the last one begins before that offset. Each batch comes from the replica that has
    it first. Calls `pause` when there is nothing new. Raises RewrittenError, LedgerError,
    NoLogError, OSError.
    """
    follower = _Follower(replicas, start)
    while until is None or follower.position < until:
        for batch in follower.news():
            if until is not None and batch.header.base_offset >= until:
                return
            yield batch
        if until is None or follower.position < until:
            pause()


class _Follower:
    def __init__(self, replicas: Sequence[Replica], start: int) -> None:
        self.position = start
        self._head: bytes | None = None
        """Hash of the batch that ends at the position; None before the first."""
        self._sources = [_Source(replica) for replica in replicas]

    def news(self) -> Iterator[Batch]:
        """Yield the new batches that any replica has just now."""
        for source in self._sources:
            for batch in source.behind(self.position):
                header = batch.header
                if self._head is not None and header.previous_hash != self._head:
                    raise RewrittenError(source.replica.location, header.base_offset)
                self.position, self._head = header.end_offset, batch.hash
                yield batch
        if all(source.given_up for source in self._sources):
            raise self._sources[0].trouble or NoLogError("there is no log to follow")


class _Source:
    """One replica, and what the last look at it found."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.trouble: Exception | None = None
        """Why it could not be read at the last look."""
        self._reader: LedgerReader | None = None
        self._failures = 0
        self._seen: tuple[str, int] | None = None
        """The last segment's name and size."""

    @property
    def given_up(self) -> bool:
        """The replica can't be read, and waiting won't help."""
        if self.trouble is None:
            return False
        lost = isinstance(self.trouble, HistoryMissingError)
        return lost or not self.replica.live or self._failures >= PATIENCE

    def behind(self, position: int) -> Iterator[Batch]:
        """Yield the batches from an offset on; nothing if the log can't be read just now."""
        try:
            reader = self._refreshed()
            if reader.log_end > position:
                yield from reader.batches(position)
        except (LedgerError, NoLogError, OSError) as error:
            self.trouble, self._seen = error, None
            self._failures += 1
        else:
            self.trouble, self._failures = None, 0

    def _refreshed(self) -> LedgerReader:
        """Return the reader, refreshed if the last segment has changed. Mostly it has not."""
        segments = find_segments(self.replica.disk)
        path = segments[-1][1] if segments else ""
        now = (path, self.replica.disk.size(path) if path else 0)
        if self._reader is None:
            self._reader = self.replica.reader()
        elif now != self._seen:
            self._reader.refresh()
        self._seen = now
        return self._reader
