"""Decides when to write a checkpoint, and then lets the quorum cut its journal.

Rule: a checkpoint is written from an immutable image, in slices, and never while a transaction is
open. The order is: the checkpoint is durable; the ledger is synced up to the checkpoint's place in
the log; the quorum may cut its journal at that place. A full disk postpones the checkpoint. A
broken disk stops the node.

The quorum cuts the journal only when enough log has come behind such a place, and a restart forgets
the places. So a restart names places again, as it applies log that the newest checkpoint covers.
"""

from collections.abc import Callable
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.replica.applier import Applier
from controller.storage.checkpoint_rest import CheckpointRest
from ledger.ledger import Ledger
from ledger.merkle.frontier import Frontier
from metadata.codec import encode_record
from metadata.image import MetadataImage
from metadata.image.old_pages import all_pages
from metadata.records import VotersRecord
from metadata.state_hash import StateHash
from quorum.api import Mark
from runtime.clock import Clock, Timer
from runtime.disk.errors import BROKEN, sentence
from snapshots.checkpoint import FRONTIER, CheckpointHeader, CheckpointId
from snapshots.packing import format_of
from snapshots.store import CheckpointStore
from snapshots.trigger import CheckpointTrigger

_LOOK_EVERY_S = 60.0
_SETTLE_BYTES = 1024 * 1024
"""Applied bytes of log after which `on_settled` is called: some 10,000 records."""
Compact = Callable[[Mark, Callable[[bool], None]], None]


class Offer(NamedTuple):
    """A snapshot that fetchers may load."""

    id: str
    size: int
    offset: int
    epoch: int


class Snapshotting:
    """Writes checkpoints of the applied image."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        applier: Applier,
        compact: Compact,
        on_failed: Callable[[str], None],
        on_settled: Callable[[], None],
        log: FilteringBoundLogger,
        *,
        frontier: Callable[[], Frontier | None] = lambda: None,
    ) -> None:
        """`on_failed` stops the node: a ledger that can't be synced must not go on.

        `on_settled` is called after an image was loaded, after a checkpoint was written, and
        between these after every `_SETTLE_BYTES` of applied log. `frontier` returns that of the
        tree at the ledger's end; None: this node does not know it.
        """
        self._config = config
        self._clock = clock
        self._applier = applier
        self._compact = compact
        self._on_failed = on_failed
        self._on_settled = on_settled
        self._frontier = frontier
        self._log = log
        self._trigger = CheckpointTrigger(
            clock, config.checkpoint_bytes, config.checkpoint_interval_s
        )
        self._ledger: Ledger | None = None
        self._store: CheckpointStore | None = None
        self._timer: Timer | None = None
        self._rest = CheckpointRest(clock, self._waits, self._rested)
        self._offer: Offer | None = None
        self._busy = False
        self._distrusted = False
        self._unsettled_bytes = 0
        self._covered_bytes = 0
        """Bytes of log, since the last place, that were applied again and have a checkpoint."""

    def begin(self, ledger: Ledger, store: CheckpointStore) -> None:
        """Start, or start again after the ledger was replaced."""
        if self._distrusted:
            return
        self._ledger, self._store = ledger, store
        self._busy = False
        self.look_for_newest()
        if self._timer is None:
            self._timer = self._clock.call_later(_LOOK_EVERY_S, self._look)
        self._settled()

    def stop(self) -> None:
        """Write no more checkpoints. A half-written one is dropped."""
        if self._timer is not None:
            self._timer.cancel()
        self._rest.stop()
        if self._store is not None:
            self._store.cancel()
        self._ledger = None

    @property
    def offer(self) -> Offer | None:
        """The newest checkpoint, for fetchers to load."""
        return self._offer

    def accepted(self, end_offset: int, size: int) -> None:
        """Note that a batch was applied, which ends at an offset and has `size` bytes.

        A restart may apply batches again that the newest checkpoint covers. They are no reason for
        another checkpoint.
        """
        if self._offer is None or end_offset > self._offer.offset:
            self._trigger.accepted(size)
        else:
            self._covered_bytes += size
        self._unsettled_bytes += size
        if self._unsettled_bytes >= _SETTLE_BYTES:
            self._settled()

    def _settled(self) -> None:
        self._unsettled_bytes = 0
        self._on_settled()

    def consider(self) -> None:
        """Write a checkpoint if it is time for one; let the journal forget what was covered."""
        if self._covered_bytes >= self._config.checkpoint_bytes:
            self._let_forget_covered()
        if self._trigger.due and not self._rest.running:
            self.write()

    def _let_forget_covered(self) -> None:
        """Let the quorum cut its journal at the present place: a checkpoint covers it."""
        self._covered_bytes = 0
        place, ledger = self._applier.place, self._ledger
        if ledger is not None and ledger.failed is None:
            ledger.sync(lambda error: self._synced(error, place, ledger, self._note_compacted))

    def leader_changed(self) -> None:
        """Pack no checkpoint for a second, so that the loop is free for the change of leaders."""
        if self._ledger is None or self._store is None:
            return
        self._rest.begin()
        if self._rest.running:
            self._store.pause()

    def _waits(self) -> bool:
        return self._trigger.due or (self._store is not None and self._store.writing)

    def _rested(self) -> None:
        if self._store is not None:
            self._store.resume()
        self.consider()

    def write(self) -> bool:
        """Begin to write a checkpoint now.

        Returns False when that is not possible or not needed: a checkpoint is being written, a
        transaction is open, the image is not that of the ledger's end, or a checkpoint of this
        image is there already.
        """
        image, place, ledger, store = (
            self._applier.image,
            self._applier.place,
            self._ledger,
            self._store,
        )
        if self._busy or ledger is None or store is None or not self._applier.idle:
            return False
        if image.transaction is not None or image.offset != ledger.log_end or not place.index:
            return False
        newest = store.newest()
        if newest is not None and newest.offset >= image.offset:
            return False
        self._busy = True
        self._trigger.begun()
        header = checkpoint_header(self._config.cluster_id, image, ledger.head, self._frontier())

        def done(written: CheckpointId | None, error: OSError | None) -> None:
            # Seconds have passed. This may be the last reference to the image.
            self._applier.retirement.released(all_pages(image))
            self._written(written, error, place, ledger, store)

        store.write_image(header, image, done)
        return True

    def distrust(self, agreed_at: int) -> None:
        """Our image is wrong after `agreed_at`: write no checkpoint of it, and never load one."""
        self._distrusted = True
        self.stop()
        if self._store is not None:
            try:
                self._store.distrust_from(agreed_at)
            except OSError as error:
                self._on_failed(sentence(error, "putting checkpoints of a wrong state aside"))

    def lost(self) -> None:
        """A checkpoint or a part of the journal is damaged: write a new one now, or when due."""
        self.look_for_newest()
        self.write()

    def look_for_newest(self) -> None:
        """Offer the newest checkpoint, after one was added or removed."""
        store = self._store
        newest = None if store is None else store.newest()
        self._offer = None
        if store is not None and newest is not None:
            self._offer = Offer(str(newest), store.size(newest), newest.offset, newest.epoch)

    def _look(self) -> None:
        self._timer = self._clock.call_later(_LOOK_EVERY_S, self._look)
        self.consider()

    def _written(
        self,
        written: CheckpointId | None,
        error: OSError | None,
        place: Mark,
        ledger: Ledger,
        store: CheckpointStore,
    ) -> None:
        if self._ledger is not ledger:
            return
        self._rest.checkpoint_ended()
        if error is not None and error.errno in BROKEN:
            # Other recent writes may be lost too, without an error of their own.
            self._on_failed(sentence(error, "writing a checkpoint"))
            return
        if written is None:
            self._busy = False
            self._trigger.failed(1)
            self._log.error("checkpoint_not_written", error=str(error))
            return
        try:
            store.thin_out()
        except OSError as refused:
            self._on_failed(sentence(refused, "removing old checkpoints"))
            return
        self.look_for_newest()
        self._settled()
        ledger.sync(lambda failed: self._synced(failed, place, ledger, self._compacted))

    def _synced(
        self,
        error: OSError | None,
        place: Mark,
        ledger: Ledger,
        on_compacted: Callable[[bool], None],
    ) -> None:
        if self._ledger is not ledger:
            return
        if error is not None:
            self._on_failed(sentence(error, "syncing the ledger"))
            return
        self._compact(place, on_compacted)

    def _compacted(self, done: bool) -> None:
        self._busy = False
        self._note_compacted(done)

    def _note_compacted(self, done: bool) -> None:
        self._log.info("journal_compacted", done=done)


def checkpoint_header(
    cluster_id: str, image: MetadataImage, chain_hash: bytes, frontier: Frontier | None = None
) -> CheckpointHeader:
    """Return the header of a checkpoint of this image; `frontier`: of the tree at its offset."""
    voters = image.quorum.voters
    return CheckpointHeader(
        cluster_id=cluster_id,
        offset=image.offset,
        epoch=image.epoch,
        timestamp_ms=image.timestamp_ms,
        chain_hash=chain_hash,
        state_hash=(image.state_hash or StateHash()).encode(),
        generation=image.quorum.generation,
        voters=encode_record(VotersRecord(voters)) if voters else b"",
        extensions={} if frontier is None else {FRONTIER: frontier.encode()},
        format=format_of(image),
    )
