"""What the leader has proposed and not yet seen committed: batches, and the images behind them.

Each proposed batch is replayed once, when it is proposed. Its commit moves a pointer along the
queue. Small batches that are proposed behind one another are a group with one image
(`open_group`). The loss of leadership drops the queue, and with it every change that was not
committed.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from controller.replica.digests import EVERY_OFFSETS
from controller.replica.open_group import GROUP_BYTES_MAX, OpenGroup
from ledger.batch import Batch
from ledger.chain import LogMark
from metadata.image import MetadataImage
from metadata.records import Record

OnOutcome = Callable[[bool], None]
"""Called with True at the commit. False: leadership was lost, and the outcome is unknown."""


class _Proposed:
    """Batches that share one image: one batch, or a group."""

    def __init__(self, image: MetadataImage | None, group: OpenGroup | None) -> None:
        self._image = image
        self._group = group
        self.count = 0
        """How many of the batches are not committed."""
        self.bytes = 0

    @property
    def image(self) -> MetadataImage:
        """The image behind the last of the batches."""
        if self._image is None:
            assert self._group is not None
            self._image, self._group = self._group.close(), None
        return self._image


class Pending:
    """The queue of one leadership."""

    def __init__(self, image: MetadataImage, mark: LogMark) -> None:
        self._image = image
        self._group: OpenGroup | None = None
        """The group that takes the next small batch; it is the last in the queue."""
        self.mark = mark
        """Where the next batch goes, behind the last proposed one."""
        self.committed_offset = mark.log_end
        self.bytes = 0
        """Bytes that are proposed and not committed."""
        self._batches: deque[Batch] = deque()
        self._proposed: deque[_Proposed] = deque()
        self._waiting: deque[tuple[int, OnOutcome]] = deque()

    @property
    def image(self) -> MetadataImage:
        """The pending image: the committed one plus all proposed batches. Decisions read it.

        It follows the open group. Who keeps it beyond this call must take `settled`.
        """
        return self._image if self._group is None else self._group.image

    def settled(self) -> MetadataImage:
        """Return the pending image for good: it is built, and the next batch begins a new group."""
        if self._group is not None:
            self._image, self._group = self._group.close(), None
        return self._image

    def push(self, batch: Batch, image: MetadataImage) -> None:
        """Add a batch that was just proposed, with the image behind it."""
        assert self._group is None
        self._proposed.append(_Proposed(image, None))
        self._add(batch)
        self._image = image

    def end_group_unless(self, waiting: int) -> None:
        """Close the group if a Raft entry has taken a part of it.

        `waiting`: how many payloads no entry has taken yet. Batches of two entries may be committed
        at different times, so they need two images.
        """
        if self._group is not None and waiting < len(self._group):
            self.settled()

    def replay_in_group(self, records: Sequence[Record], batch: Batch) -> None:
        """Replay a batch that is about to be proposed. Raises ReplayError, with nothing changed."""
        if self._group is not None and not self._group.is_open:
            self.settled()
        if self._group is None:
            self._group = OpenGroup(self._image)
        self._group.add(records, batch.header)

    def undo_in_group(self) -> None:
        """The batch that was just replayed was not proposed."""
        assert self._group is not None
        self._group.undo()
        self.settled()

    def push_in_group(self, batch: Batch) -> None:
        """Add the batch that was just replayed in the group and proposed.

        The group ends where every node notes its state (see `digests`), and where it is full.
        """
        group = self._group
        assert group is not None
        if len(group) == 1:
            self._proposed.append(_Proposed(None, group))
        self._add(batch)
        header = batch.header
        noted = header.end_offset // EVERY_OFFSETS > header.base_offset // EVERY_OFFSETS
        if noted or group.is_full or self._proposed[-1].bytes >= GROUP_BYTES_MAX:
            self.settled()

    def _add(self, batch: Batch) -> None:
        self._batches.append(batch)
        size = len(batch.encoded)
        self._proposed[-1].count += 1
        self._proposed[-1].bytes += size
        self.bytes += size
        self.mark = self.mark.after(batch)

    def is_next(self, payload: bytes) -> bool:
        """Return whether a batch that was just committed is the oldest in the queue."""
        return bool(self._batches) and self._batches[0].encoded == payload

    def oldest(self) -> Batch:
        """Return the batch that will be committed next."""
        return self._batches[0]

    def oldest_group(self) -> list[Batch]:
        """Return the oldest batches that share an image; none if nothing is proposed."""
        return list(islice(self._batches, self._proposed[0].count)) if self._proposed else []

    def image_of_oldest(self) -> MetadataImage:
        """Return the image behind the last batch of the oldest group."""
        oldest = self._proposed[0]
        if len(self._proposed) == 1 and self._group is not None:
            self.settled()
        return oldest.image

    def take(self) -> Batch:
        """Take the oldest batch off the queue, because it is committed."""
        taken = self._batches.popleft()
        self.bytes -= len(taken.encoded)
        if len(self._proposed) == 1:
            # Its entry is complete: the next batch will be in another one.
            self.settled()
        oldest = self._proposed[0]
        oldest.count -= 1
        if not oldest.count:
            self._proposed.popleft()
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
        self._proposed.clear()
        self.bytes = 0
        waiting, self._waiting = self._waiting, deque()
        for _, on_outcome in waiting:
            on_outcome(False)
