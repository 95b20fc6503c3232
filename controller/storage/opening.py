"""Opens ledger and checkpoints, loads the image, and replaces the ledger after a catch-up.

Rule: the ledger is opened at the quorum's mark, and applying goes on from there. A catch-up
replaces the ledger, so nothing is applied from its commit until the new image is loaded.
"""

from collections.abc import Callable, Generator
from contextlib import suppress

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.replica.applier import Applier
from controller.storage.archive_access import ArchiveAccess
from controller.storage.backfill import HistoryBackfill
from controller.storage.catch_up import CatchUp
from controller.storage.checkpoint_loading import load_checkpoint
from controller.storage.damage import CHECKPOINT, JOURNAL, LEDGER, DamageRecord
from controller.storage.loading import CannotLoadError, load
from controller.storage.mending import Mending
from ledger.archived_history import ArchivedHistory
from ledger.backfill import Backfill
from ledger.catalogue import Segment
from ledger.chain import LogMark
from ledger.errors import DamagedLedgerError, LedgerError
from ledger.ledger import Ledger
from ledger.pull import SegmentPull
from ledger.scrub import scrub_segment
from metadata.codec import RecordDecodeError
from metadata.image import MetadataImage, ReplayError
from quorum.api import Mark, Quorum
from quorum.journal import DamagedError
from runtime.clock import Clock
from runtime.disk.errors import BROKEN, sentence
from runtime.disk.interface import Disk
from runtime.loop.slices import run_in_slices
from snapshots.checkpoint import CheckpointId
from snapshots.errors import DamagedCheckpointError
from snapshots.store import CheckpointStore

SUSPECT = "suspect"
"""A file with the base offset of the newest segment, written when that segment is found damaged."""
OnLoaded = Callable[[Ledger, MetadataImage, Mark], None]
_BEGINNING = Mark(0, 0, b"")


class Storage:
    """Ledger and checkpoints, and the jobs that fetch what is missing of them."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        applier: Applier,
        on_loaded: OnLoaded,
        on_failed: Callable[[str], None],
        damage: DamageRecord,
        on_checkpoint_lost: Callable[[], None],
        archived: ArchivedHistory,
        access: ArchiveAccess | None,
        log: FilteringBoundLogger,
    ) -> None:
        """`archived` and `access`: what the archive holds, and the archive itself."""
        self._archived = archived
        self._access = access
        self._damage = damage
        self._on_checkpoint_lost = on_checkpoint_lost
        self._config = config
        self._clock = clock
        self._disk = disk
        self._quorum = quorum
        self._applier = applier
        self._on_loaded = on_loaded
        self._on_failed = on_failed
        self._log = log
        self._cancel_load: Callable[[], None] | None = None
        self._catch_up = CatchUp(config, clock, disk, quorum, on_failed, log)
        self._wanted: tuple[Mark, int] | None = None
        self._mending = Mending(config, clock, disk, quorum, damage, access, log)
        self._backfill: HistoryBackfill | None = None
        self.ledger: Ledger | None = None
        self.store: CheckpointStore | None = None
        self.ready = False
        """Ledger and image are loaded; false while they are loaded or replaced."""

    @property
    def note(self) -> str:
        """What is missing and being fetched, for status; empty: nothing."""
        note = self._catch_up.note or self._mending.note
        if note:
            return note
        return "" if self._backfill is None else self._backfill.note

    def open(self, place: Mark | None) -> None:
        """Open the ledger at the quorum's mark, then load the image in slices.

        Raises what `Ledger.open` raises.
        """
        place = place or _BEGINNING
        mark = LogMark.decode(place.data) if place.data else None
        if self.store is not None:
            # What it is writing is of the ledger that goes, and the new store removes the file.
            self.store.cancel()
        self.store = CheckpointStore(self._disk, self._config.cluster_id, self._clock, self._log)
        try:
            self.ledger = Ledger.open(
                self._disk,
                self._config.cluster_id,
                synced_to=mark,
                segment_bytes=self._config.ledger_segment_bytes,
                log=self._log,
            )
        except DamagedLedgerError as error:
            if mark is None:
                raise
            self._mending.begin(error, mark, lambda: self._open_again(place))
        else:
            self._load_sound(self.ledger, self.store, place)
            if self._wanted is not None:
                # The quorum asked for it while the ledger was mended, and does not ask again.
                self.catch_up(*self._wanted)

    def _open_again(self, place: Mark) -> None:
        try:
            self.open(place)
        except LedgerError as error:
            self._on_failed(f"the ledger can't be opened: {error}")
        except OSError as error:
            self._on_failed(sentence(error, "opening the ledger"))

    def ledger_rotten(self, error: DamagedLedgerError) -> None:
        """The scrub found wrong bytes: as `damaged`, but a single node goes on without them."""
        if len(self._quorum.voters()) > 1:
            self.damaged(error)
            return
        self._log.error(
            "ledger_damaged", file=error.file, position=error.position, why=error.reason
        )
        self._damage.found(LEDGER, f"{error}; there is no peer to fetch it from")

    def checkpoint_rotten(self, checkpoint: CheckpointId, error: DamagedCheckpointError) -> None:
        """The scrub found a bad checkpoint: put it aside, and have another one written."""
        self._checkpoint_damaged(error)
        if self.store is not None:
            try:
                self.store.put_aside(checkpoint)
            except OSError as failure:
                self._on_failed(sentence(failure, "putting a damaged checkpoint aside"))
                return
            self._on_checkpoint_lost()

    def journal_rotten(self, error: DamagedError) -> None:
        """The scrub found the journal damaged on disk; in memory it is whole.

        A new checkpoint lets the quorum cut the journal. If the damaged part is still there at
        the next start, the node starts as a damaged one, and the others repair it.
        """
        self._log.error("journal_rotten", what=str(error))
        self._damage.found(JOURNAL, f"{error}; whole in memory, so the node goes on")
        self._on_checkpoint_lost()

    def damaged(self, error: DamagedLedgerError) -> None:
        """A read found wrong bytes: fetch the segment again. Everything else goes on meanwhile."""
        ledger = self.ledger
        if ledger is None:
            return
        if error.base_offset == ledger.catalogue.run[-1].base_offset:
            # This segment is being written. Only a start can replace it, and only if SUSPECT
            # tells it to read the segment through.
            with suppress(OSError):
                self._disk.replace(SUSPECT, str(error.base_offset).encode())
            self._on_failed(f"the newest segment is damaged; start again to mend it: {error}")
            return
        history = Backfill(self._disk, self._config.cluster_id, ledger.catalogue)

        def placed(pull: SegmentPull) -> None:
            try:
                history.adopt(pull)
            except OSError as failure:
                if failure.errno in BROKEN:
                    self._on_failed(sentence(failure, "noting what was mended"))
                # Otherwise the next start notes it.

        try:
            self._mending.begin(error, ledger.mark(), lambda: None, placed)
        except LedgerError as final:
            self._on_failed(f"the ledger is damaged and nobody can mend it: {final}")

    def close(self) -> None:
        """Stop every job and close the files."""
        self.ready = False
        self._wanted = None
        self._catch_up.finish()
        self._mending.stop()
        if self._backfill is not None:
            self._backfill.stop()
        self._give_up_load()
        if self.ledger is not None:
            self.ledger.close()

    # -- a catch-up ---------------------------------------------------------------------------

    def catch_up(self, mark: Mark, source: int) -> None:
        """Fetch everything up to a mark from a peer, then tell the quorum.

        Our own ledger is synced first, since the mark will vouch for it too.
        """
        wanted = self._wanted = (mark, source)
        ledger = self.ledger
        if ledger is None:
            return
        log_end = ledger.log_end

        def synced(error: OSError | None) -> None:
            if self._wanted is not wanted:
                return
            if error is not None:
                self._on_failed(sentence(error, "syncing the ledger"))
            else:
                self._catch_up.begin(mark, source, log_end, self._applier.image.offset)

        ledger.sync(synced)

    def drop_catch_up(self) -> None:
        """Stop fetching: ordinary entries have overtaken it."""
        self._wanted = None
        self._catch_up.drop()

    def caught_up(self, mark: Mark) -> None:
        """The quorum has taken the mark over: move the fetched segments into place and load."""
        self.ready = False
        self._wanted = None
        self._catch_up.finish()
        self._give_up_load()
        self._applier.hold()
        if self._backfill is not None:
            self._backfill.stop()
        self._mending.stop()
        if self.ledger is not None:
            self.ledger.close()
        self._open_again(mark)

    # -- loading --------------------------------------------------------------------------

    def _give_up_load(self) -> None:
        """Stop loading, if a load runs: its ledger is replaced or closed."""
        if self._cancel_load is not None:
            self._cancel_load()
            self._cancel_load = None

    def _load_sound(self, ledger: Ledger, store: CheckpointStore, place: Mark) -> None:
        """Load. If SUSPECT names the newest segment, read that segment through first."""
        segment = self._suspect(ledger)
        if segment is None:
            self._load(ledger, store, place)
            return
        bad: list[DamagedLedgerError] = []

        def work() -> Generator[None, None, None]:
            try:
                cluster_id = self._config.cluster_id
                for _ in scrub_segment(self._disk, cluster_id, segment, ledger.mark()):
                    yield
            except DamagedLedgerError as error:
                bad.append(error)

        def done() -> None:
            self._cancel_load = None
            if bad:
                # SUSPECT stays until the segment is mended, so that every start reads it again.
                self._mend_and_load(bad[0], ledger, store, place)
                return
            # If the disk refuses, the next start reads the segment through once more.
            with suppress(OSError):
                self._disk.unlink(SUSPECT)
            self._load(ledger, store, place)

        self._cancel_load = run_in_slices(self._clock, work(), done)

    def _suspect(self, ledger: Ledger) -> Segment | None:
        """Return the segment that SUSPECT names, if it is still the newest."""
        if not self._disk.exists(SUSPECT):
            return None
        run = ledger.catalogue.run
        if run and self._disk.read(SUSPECT) == str(run[-1].base_offset).encode():
            return run[-1]
        # The segment is closed by now, and mended as others are; or it lay behind the mark, and
        # its content is written again.
        self._disk.unlink(SUSPECT)
        return None

    def _load(self, ledger: Ledger, store: CheckpointStore, place: Mark) -> None:
        self._give_up_load()
        loaded: list[MetadataImage] = []

        def work() -> Generator[None, None, None]:
            steps = load(
                self._applier.image,
                ledger,
                lambda: self._load_checkpoint(ledger, store),
                self._log,
            )
            try:
                loaded.append((yield from steps))
            except DamagedLedgerError as error:
                self._mend_and_load(error, ledger, store, place)
            except CannotLoadError as error:
                self._fetch_history_and_load(error, ledger, store, place)
            except (LedgerError, ReplayError, RecordDecodeError) as error:
                self._on_failed(f"the image can't be loaded: {error}")
            except OSError as error:
                self._on_failed(sentence(error, "loading the image"))

        def done() -> None:
            self._cancel_load = None
            if not loaded:
                return
            self.ready = True
            self._on_loaded(ledger, loaded[0], place)
            self._begin_backfill(ledger)

        self._cancel_load = run_in_slices(self._clock, work(), done)

    def _load_checkpoint(
        self, ledger: Ledger, store: CheckpointStore
    ) -> Generator[None, None, MetadataImage | None]:
        steps = load_checkpoint(
            self._disk, store, ledger, self._config.cluster_id, self._checkpoint_damaged
        )
        found = yield from steps
        if found is None:
            return None
        image, header = found
        if header.offset > ledger.log_end:

            def missed() -> None:
                # If the disk refuses, the next start finds the same difference.
                with suppress(OSError):
                    store.put_aside(header.id)

            self._applier.must_meet(header.offset, header.chain_hash, missed)
        return image

    def _checkpoint_damaged(self, error: DamagedCheckpointError) -> None:
        self._log.error(
            "checkpoint_damaged", file=error.name, position=error.position, reason=error.reason
        )
        self._damage.found(CHECKPOINT, str(error))

    def _fetch_history_and_load(
        self, error: CannotLoadError, ledger: Ledger, store: CheckpointStore, place: Mark
    ) -> None:
        """Fetch the history from the peers: no checkpoint loads, and our ledger begins too late."""
        if len(self._quorum.voters()) == 1 and not self._archived_from_0(ledger):
            self._on_failed(str(error))
            return
        self._log.error("history_missing", why=str(error))
        self._begin_backfill(ledger, lambda: self._load(ledger, store, place))

    def _archived_from_0(self, ledger: Ledger) -> bool:
        run = ledger.catalogue.run
        return bool(
            self._access is not None
            and run
            and not self._archived.start(run[0].header.previous).log_end
        )

    def _begin_backfill(self, ledger: Ledger, on_whole: Callable[[], None] | None = None) -> None:
        """Fetch what is missing of the history, if anything is."""
        self._backfill = HistoryBackfill(
            self._config,
            self._clock,
            self._disk,
            self._quorum,
            ledger,
            self._on_failed,
            self._log,
            self._archived,
            self._access,
            on_whole,
        )
        self._backfill.start()

    def _mend_and_load(
        self, error: DamagedLedgerError, ledger: Ledger, store: CheckpointStore, place: Mark
    ) -> None:
        try:
            self._mending.begin(error, ledger.mark(), lambda: self._open_again(place))
        except LedgerError as final:
            self._on_failed(f"the image can't be loaded: {final}")
