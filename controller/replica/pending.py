"""What the leader has proposed and not yet seen committed: batches, and the images behind them.

Each proposed batch is replayed once, when it is proposed. Its commit moves a pointer along the
queue. The loss of leadership drops the queue, and with it every change that was not committed.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ledger.batch import Batch
from ledger.chain import LogMark
from metadata.image import MetadataImage

OnOutcome = Callable[[bool], None]
"""Called with True at the commit. False: leadership was lost, and the outcome is unknown."""


class PendingBatch(NamedTuple):
    """One proposed batch and the image behind it."""

    batch: Batch
    image: MetadataImage


class Pending:
    """The queue of one leadership."""

    def __init__(self, image: MetadataImage, mark: LogMark) -> None:
        self.image = image
        """The pending image: the committed one plus all proposed batches. Decisions read it."""
        self.mark = mark
        """Where the next batch goes, behind the last proposed one."""
        self.committed_offset = mark.log_end
        self.bytes = 0
        """Bytes that are proposed and not committed."""
        self._batches: deque[PendingBatch] = deque()
        self._waiting: deque[tuple[int, OnOutcome]] = deque()

    def push(self, batch: Batch, image: MetadataImage) -> None:
        """Add a batch that is about to be proposed."""
        self._batches.append(PendingBatch(batch, image))
        self.bytes += len(batch.encoded)
        self.image = image
        self.mark = self.mark.after(batch)

    def is_next(self, payload: bytes) -> bool:
        """Return whether a batch that was just committed is the oldest in the queue."""
        return bool(self._batches) and self._batches[0].batch.encoded == payload

    def oldest(self) -> PendingBatch:
        """Return the batch that will be committed next."""
        return self._batches[0]

    def take(self) -> PendingBatch:
        """Take the oldest batch off the queue, because it is committed."""
        taken = self._batches.popleft()
        self.bytes -= len(taken.batch.encoded)
        return taken

    def when_committed(self, on_outcome: OnOutcome) -> None:
        """Call back when everything that is pending now is committed; at once if nothing is."""
        if self.mark.log_end <= self.committed_offset:
            on_outcome(True)
        else:
            self._waiting.append((self.mark.log_end, on_outcome))

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed and applied: call back those who wait for it."""
        self.committed_offset = max(self.committed_offset, offset)
        while self._waiting and self._waiting[0][0] <= offset:
            self._waiting.popleft()[1](True)

    def drop(self) -> None:
        """Leadership is lost: call back everybody who waits, with False."""
        self._batches.clear()
        self.bytes = 0
        waiting, self._waiting = self._waiting, deque()
        for _, on_outcome in waiting:
            on_outcome(False)
