"""The parts of this room, wired: what a controller has of its copy of the state."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.replica.applier import Applier
from controller.replica.digests import DigestComparison, StateMark, StateMarks
from controller.replica.freshness import ImageFreshness
from controller.replica.offset_waiters import OffsetWaiters
from controller.replica.reads import ImageReads
from ledger.batch import Batch
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from quorum.api import Mark, Quorum
from runtime.clock import Clock


class ReplicaParts:
    """Applies committed batches, compares states with peers, and lets reads wait for an offset."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        quorum: Quorum,
        *,
        on_batch: Callable[[Batch], None],
        on_progress: Callable[[], None],
        on_own_skipped: Callable[[str], None],
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """The callbacks are the applier's (see `Applier`)."""
        self.applier = Applier(
            clock,
            on_batch=on_batch,
            on_progress=on_progress,
            on_own_skipped=on_own_skipped,
            on_failed=on_failed,
            log=log,
        )
        self.marks = StateMarks()
        self.digests = DigestComparison(config.node_id, self.marks)
        self.freshness = ImageFreshness()
        self.waiters = OffsetWaiters(clock)
        self.reads = ImageReads(
            clock,
            quorum.read_index,
            lambda: self.applier.delivered,
            self.waiters,
            config.read_wait_s,
        )

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self.applier.image

    def begin(self, ledger: Ledger, image: MetadataImage, place: Mark) -> None:
        """Go on from a loaded image, at a start or after a catch-up."""
        self.marks.restart(image.offset)
        self.applier.begin(ledger, image, place)

    def note_state(self, batch: Batch) -> None:
        """Keep the state hash behind a batch that was just applied, to compare it with peers."""
        image = self.image
        if image.offset != batch.header.end_offset:
            # The image holds later batches too: they were replayed in one go.
            return
        if image.transaction is None and image.state_hash is not None:
            sums = image.state_hash
            mark = StateMark(image.offset, batch.hash, sums.shared, sums.controllers)
            self.marks.note(mark)
            self.digests.on_mark(mark)
