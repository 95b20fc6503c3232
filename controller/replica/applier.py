"""Applies committed batches: from their bytes to the next image, on every controller.

Invariant: every controller accepts or skips the same batches. A batch first meets the ledger's
fence, then replay, in the order of the log. Nothing in between differs from node to node. If a
committed batch can't be replayed, the node stops: skipping it would make its state differ.

The leader replayed its own batches when it proposed them, so their commit only moves a pointer. If
only a part of a group is committed, the leader replays that part: the group's image has more. A
standby replays the batches that wait together, in one delta, because an image for each batch would
be most of the work. Long batches are replayed in slices, so what is delivered and what is applied
are two offsets.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from controller.replica.batch_heads import head_of
from controller.replica.digests import EVERY_OFFSETS
from controller.replica.pending import Pending
from ledger.batch import Batch, parse
from ledger.errors import LedgerError
from ledger.ledger import Ledger, Skipped
from metadata.codec import RecordDecodeError
from metadata.image import MetadataImage, ReplayError
from metadata.image.old_pages import replaced_pages
from metadata.replay_steps import replay_in_steps
from quorum.api import Mark
from runtime.clock import Clock
from runtime.disk.errors import BROKEN, sentence
from runtime.loop.retirement import Retirement
from runtime.loop.slices import SLICE_S, in_turn

_SMALL_BYTES = 4_096
"""An entry up to this size is applied at once, in the callback that delivers it."""
_DISK_RETRY_S = 1.0
_TOGETHER_MAX = 16 * EVERY_OFFSETS
"""The most records, and the most batches, that one delta replays."""
_FAR = 4 * EVERY_OFFSETS
"""An image that is more records behind than this counts as far behind."""


class _Committed(NamedTuple):
    entry: int
    epoch: int
    payload: bytes
    last: bool
    """The last batch of its entry. The journal can be cut behind it."""


class Applier:
    """Applies committed batches to ledger and image."""

    def __init__(
        self,
        clock: Clock,
        *,
        on_batch: Callable[[Batch], None],
        on_progress: Callable[[], None],
        on_own_skipped: Callable[[str], None],
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`on_batch` is called after each batch, `on_progress` after each slice of work.

        `on_own_skipped` is called when the fence skips a batch that this leader wrote. `on_failed`
        stops the node. Both get the reason.
        """
        self._clock = clock
        self._on_batch = on_batch
        self._on_progress = on_progress
        self._on_own_skipped = on_own_skipped
        self._on_failed = on_failed
        self._log = log
        self.retirement = Retirement(clock)
        self._queue: deque[_Committed] = deque()
        self._ledger: Ledger | None = None
        self._work = self._apply_all()
        self._stepping = False
        self._scheduled = False
        self._stopped = False
        self._idle_waiting: list[Callable[[], None]] = []
        self._replayed_to = 0
        self._noted = 0
        self.image = MetadataImage()
        """The committed image."""
        self.pending: Pending | None = None
        """What this controller has proposed, while it leads."""
        self.leading_epoch = -1
        self.place = Mark(0, 0, b"")
        """The last entry that is applied completely. The journal may be cut there."""
        self.disk_full = ""
        """Why nothing is applied now; empty unless the disk has no room."""
        self._delivered = 0
        self._meeting: tuple[int, bytes, Callable[[], None]] | None = None

    def begin(self, ledger: Ledger, image: MetadataImage, place: Mark) -> None:
        """Start, or start again after a catch-up. `image` may be ahead of the ledger's end."""
        if self._meeting is not None and ledger.log_end >= self._meeting[0]:
            # A catch-up has carried the ledger past the offset that `must_meet` named.
            at = self._meeting[0]
            try:
                self._meet(at, (ledger.hash_at(at) or b"") if at >= ledger.log_start else None)
            except ReplayError as error:
                self._stopped = True
                self._on_failed(f"the log can't be applied: {error}")
                return
        self._ledger = ledger
        self.image = image
        self._replayed_to = self._noted = image.offset
        self.place = place
        self._delivered = max(self._delivered, ledger.log_end)
        for item in self._queue:
            # The batch was delivered while the ledger was not open.
            self._count(item.epoch, item.payload)
        self._step()

    def must_meet(self, offset: int, chain_hash: bytes, on_missed: Callable[[], None]) -> None:
        """Check that the log reaches `offset` with this chain hash.

        Needed when the image was loaded from a checkpoint beyond the ledger's end. If the log
        doesn't, the image is of another history: `on_missed` is called, and the node stops.
        """
        self._meeting = (offset, chain_hash, on_missed)

    def hold(self) -> None:
        """The ledger is being replaced: apply nothing until `begin` is called again."""
        self._ledger = None
        self._queue.clear()
        # A batch that is half replayed belongs to the old ledger.
        self._work.close()
        self._work = self._apply_all()

    def stop(self) -> None:
        """Stop for good."""
        self._stopped = True
        self._queue.clear()

    @property
    def delivered(self) -> int:
        """End offset of the committed batches that were delivered here, applied or not."""
        return self._delivered

    @property
    def idle(self) -> bool:
        """Everything that was delivered is applied."""
        return not self._queue and self._ledger is not None

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back as soon as everything that was delivered is applied."""
        if self.idle and not self._stepping:
            callback()
        else:
            self._idle_waiting.append(callback)

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        """Take the payloads of a committed entry."""
        if self._stopped:
            return
        for number, payload in enumerate(payloads, start=1):
            self._queue.append(_Committed(index, epoch, payload, number == len(payloads)))
            self._count(epoch, payload)
        if sum(map(len, payloads)) <= _SMALL_BYTES:
            self._step()
        elif not (self._stepping or self._scheduled):
            # Reading or writing a long entry has used up the time of this pass of the loop.
            self._later(0.0)

    def _count(self, epoch: int, payload: bytes) -> None:
        head = head_of(payload)
        if head is not None and (head.base_offset, head.epoch) == (self._delivered, epoch):
            # The batch continues the log in its entry's term, so it will pass the fence.
            self._delivered = head.end_offset

    def _step(self) -> None:
        """Apply for one slice of time. The rest runs after other work of the loop."""
        if self._stepping or self._scheduled or self._stopped or self._ledger is None:
            return
        self._stepping = True
        until = self._clock.monotonic() + SLICE_S
        try:
            for more in self._work:
                if not more:
                    break
                if self._clock.monotonic() >= until:
                    self._later(0.0)
                    break
        finally:
            self._stepping = False
        self._on_progress()
        if self.idle:
            waiting, self._idle_waiting = self._idle_waiting, []
            for callback in waiting:
                callback()

    def _later(self, delay_s: float) -> None:
        self._scheduled = True

        def again() -> None:
            self._scheduled = False
            self._step()

        if delay_s:
            self._clock.call_later(delay_s, again)
        else:
            # A slice of other long work in the same pass of the loop would make the pass too long.
            in_turn(self._clock, again, "Applier")

    def _apply_all(self) -> Generator[bool, None, None]:
        """Apply batches, without end. Yields whether there is more to do now."""
        while True:
            if not self._queue or self._ledger is None:
                yield False
                continue
            try:
                yield from self._apply_some(self._ledger)
            except OSError as error:
                if self._ledger.failed is not None or error.errno in BROKEN:
                    self._fail(sentence(error, "writing the ledger"))
                    yield False
                    continue
                self._note_full_disk(error)
                self._later(_DISK_RETRY_S)
                yield False
                continue
            except (LedgerError, RecordDecodeError, ReplayError) as error:
                self._fail(f"the committed log can't be applied: {error}")
                yield False
                continue
            self.disk_full = ""
            yield True

    def _apply_some(self, ledger: Ledger) -> Generator[bool, None, None]:
        """Apply the batches at the head of the queue. After an OSError the rest is still queued."""
        if self._own_together(ledger):
            yield from self._accept_own(ledger)
            return
        together = yield from self._replayable_together(ledger)
        if not together:
            yield from self._apply(self._queue[0], ledger)
            self._done()
            return
        image = yield from self._replay(together)
        # Replay comes first: a batch that can't be replayed must not get into the ledger.
        for batch in together:
            item = self._queue[0]
            accepted = ledger.accept(item.epoch, batch)
            assert not isinstance(accepted, Skipped), accepted.reason
            self._accepted(item, batch, image, ledger)
            self._done()
            yield True

    def _replayable_together(self, ledger: Ledger) -> Generator[bool, None, list[Batch]]:
        """Return batches at the head of the queue that pass the fence and can make one image.

        They end where every node notes its state (see `digests`), so that states can be compared.
        A node that is far behind, as after a restart, notes its state less often: a state hash
        covers everything before it.
        """
        found: list[Batch] = []
        end = ledger.log_end
        if self.pending is not None or self.image.offset != end:
            return found
        for item in list(islice(self._queue, _TOGETHER_MAX)):
            head = head_of(item.payload)
            if head is None or (head.base_offset, head.epoch) != (end, item.epoch):
                break
            try:
                found.append(parse(item.payload))
            except LedgerError:
                # Apply the batches before it. Then `_apply` fails on it and stops the node.
                break
            end = head.end_offset
            if end - ledger.log_end >= _TOGETHER_MAX:
                break
            is_far = self._delivered - end > _FAR
            if end // EVERY_OFFSETS > self._noted // EVERY_OFFSETS and not is_far:
                break
            yield True
        return found

    def _own_together(self, ledger: Ledger) -> bool:
        """Return whether our oldest group is at the head of the queue as a whole."""
        if self.pending is None or self._meeting is not None:
            return False
        group = self.pending.oldest_group()
        if not group or len(group) > len(self._queue):
            return False
        items = islice(self._queue, len(group))
        return not ledger.objection(self._queue[0].epoch, group[0]) and all(
            item.payload == batch.encoded and item.epoch == batch.header.epoch
            for item, batch in zip(items, group, strict=True)
        )

    def _accept_own(self, ledger: Ledger) -> Generator[bool, None, None]:
        """Accept the batches of our oldest group. They have one image, which was built already."""
        assert self.pending is not None
        image = self.pending.image_of_oldest()
        for batch in self.pending.oldest_group():
            accepted = ledger.accept(self._queue[0].epoch, batch)
            assert not isinstance(accepted, Skipped), accepted.reason
            self.pending.take()
            self._accepted(self._queue[0], batch, image, ledger)
            self._done()
        yield True

    def _done(self) -> None:
        if self._queue:
            self._queue.popleft()

    def _apply(self, item: _Committed, ledger: Ledger) -> Generator[bool, None, None]:
        """Apply one batch. After an OSError everything is as it was."""
        pending = self.pending
        own = pending is not None and pending.is_next(item.payload)
        batch = pending.oldest() if own and pending else parse(item.payload)
        image = self.image
        reason = ledger.objection(item.epoch, batch)
        if not reason and self._meeting is not None and batch.header.end_offset >= self._meeting[0]:
            # Check this before replay, which may fail on an image of another history.
            self._meet(batch.header.end_offset, batch.hash)
        if not reason and batch.header.end_offset > self._replayed_to:
            # Of our own batches, only those come here whose group was committed in parts.
            image = yield from self._replay([batch])
        accepted = ledger.accept(item.epoch, batch)
        if isinstance(accepted, Skipped):
            self._log.warning("batch_skipped", index=item.entry, reason=accepted.reason)
            if own or batch.header.epoch == self.leading_epoch:
                self._on_own_skipped(accepted.reason)
            self._note_place(item, ledger)
        else:
            if self.pending is not None and self.pending.is_next(item.payload):
                self.pending.take()
            self._accepted(item, batch, image, ledger)

    def _accepted(
        self, item: _Committed, batch: Batch, image: MetadataImage, ledger: Ledger
    ) -> None:
        """Take `image` as the committed one. It holds the batch, and perhaps later ones."""
        end = batch.header.end_offset
        self.retirement.replaced(replaced_pages(self.image, image, batch.header.count))
        self.image = image
        self._replayed_to = max(self._replayed_to, image.offset, end)
        self._delivered = max(self._delivered, end)
        if image.transaction is None:
            self._noted = end
        self._on_batch(batch)
        self._note_place(item, ledger)

    def _meet(self, end: int, chain_hash: bytes | None) -> None:
        """Compare the log with what `must_meet` said.

        `chain_hash` is None if the offset lies before the ledger's start: then a catch-up has
        replaced the loaded image. Raises ReplayError.
        """
        assert self._meeting is not None
        offset, expected, on_missed = self._meeting
        self._meeting = None
        if chain_hash is not None and (end, chain_hash) != (offset, expected):
            on_missed()
            raise ReplayError(
                offset,
                f"the checkpoint at offset {offset}, which was loaded, is of another history. It "
                "was put aside: start this controller again",
            )

    def _note_place(self, item: _Committed, ledger: Ledger) -> None:
        if item.last:
            self.place = Mark(item.entry, item.epoch, ledger.mark().encode())

    def _replay(self, batches: Sequence[Batch]) -> Generator[bool, None, MetadataImage]:
        if self.image.transaction is not None and not self.image.transaction.built:
            # This controller led when the transaction began, and didn't build its branch. The
            # next batches need the branch: build it from the ledger.
            assert self._ledger is not None
            image, end = self.image.rewound(), self.image.offset
            for batch in self._ledger.batches(image.offset):
                if batch.header.end_offset <= end:
                    image = yield from _replay_over(image, [batch])
            self.image = image
        return (yield from _replay_over(self.image, batches))

    def _note_full_disk(self, error: OSError) -> None:
        if not self.disk_full:
            self._log.error("ledger_not_written", error=str(error))
        self.disk_full = f"the ledger can't be written: {error}"

    def _fail(self, reason: str) -> None:
        self._stopped = True
        self._queue.clear()
        self._on_failed(reason)


def _replay_over(
    image: MetadataImage, batches: Sequence[Batch]
) -> Generator[bool, None, MetadataImage]:
    """Return the image after these batches. Yields True after each step: there is more to do."""
    steps = replay_in_steps(image, batches)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            applied: MetadataImage = done.value
            return applied
        yield True
