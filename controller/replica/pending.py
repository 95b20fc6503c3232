"""What we proposed and have not seen committed: images ahead of the committed one.

Rule: a proposed batch is replayed once, here, when it is proposed. Its commit moves a pointer
along the queue; losing leadership drops the queue, and with it every change that did not last.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ledger.batch import Batch
from ledger.chain import LogMark
from metadata.image import MetadataImage

OnOutcome = Callable[[bool], None]
"""Called with True at the commit, with False when leadership was lost: the outcome is unknown."""


class PendingBatch(NamedTuple):
    """One proposed batch and the image behind it."""

    batch: Batch
    image: MetadataImage


class Pending:
    """The queue of one term of leadership."""

    def __init__(self, image: MetadataImage, mark: LogMark) -> None:
        self.image = image
        """With all that was proposed. Decisions read this one."""
        self.mark = mark
        """Behind the last proposed batch: where the next one goes."""
        self.committed_offset = mark.log_end
        self.bytes = 0
        """Proposed and not committed."""
        self._batches: deque[PendingBatch] = deque()
        self._waiting: deque[tuple[int, OnOutcome]] = deque()

    def push(self, batch: Batch, image: MetadataImage) -> None:
        """Add a batch that is about to be proposed."""
        self._batches.append(PendingBatch(batch, image))
        self.bytes += len(batch.encoded)
        self.image = image
        self.mark = self.mark.after(batch)

    def is_next(self, payload: bytes) -> bool:
        """Tell whether the batch that was just committed is the oldest of ours."""
        return bool(self._batches) and self._batches[0].batch.encoded == payload

    def oldest(self) -> PendingBatch:
        """The batch that is to be committed next."""
        return self._batches[0]

    def take(self) -> PendingBatch:
        """Take the oldest batch off the queue: it is committed."""
        taken = self._batches.popleft()
        self.bytes -= len(taken.batch.encoded)
        return taken

    def when_committed(self, on_outcome: OnOutcome) -> None:
        """Call back when all that is pending now is committed; at once when nothing is."""
        if self.mark.log_end <= self.committed_offset:
            on_outcome(True)
        else:
            self._waiting.append((self.mark.log_end, on_outcome))

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed and applied: release who waits for it."""
        self.committed_offset = max(self.committed_offset, offset)
        while self._waiting and self._waiting[0][0] <= offset:
            self._waiting.popleft()[1](True)

    def drop(self) -> None:
        """Leadership is lost: everybody who waits is told so."""
        self._batches.clear()
        self.bytes = 0
        waiting, self._waiting = self._waiting, deque()
        for _, on_outcome in waiting:
            on_outcome(False)
