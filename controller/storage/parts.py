"""The parts of this room, wired: what a controller has of its files."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.replica.applier import Applier
from controller.storage.archive_access import ArchiveAccess
from controller.storage.archiving import Archiving
from controller.storage.damage import DamageRecord
from controller.storage.history import ReadableHistory
from controller.storage.opening import OnLoaded, Storage
from controller.storage.scrubbing import Scrubbing
from controller.storage.snapshotting import Snapshotting
from controller.storage.tree_keeping import FrontierPlace, TreeKeeping
from ledger.archive_place import Archive
from ledger.archived_history import ArchivedHistory
from ledger.errors import LedgerError
from ledger.ledger import Ledger
from ledger.merkle.frontier import Frontier
from metadata.image import MetadataImage
from quorum.api import Mark, Quorum
from runtime.clock import Clock
from runtime.disk.interface import Disk
from snapshots.checkpoint import FRONTIER
from snapshots.errors import CheckpointError
from snapshots.store import CheckpointStore


class StorageParts:
    """Opens and replaces files, writes checkpoints, and looks for damage."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        applier: Applier,
        *,
        on_loaded: OnLoaded,
        on_failed: Callable[[str], None],
        on_settled: Callable[[], None],
        archive: Archive | None,
        log: FilteringBoundLogger,
    ) -> None:
        """`on_loaded` gets ledger, image and place, at a start and after each catch-up.

        `on_failed` stops the node. `on_settled` is explained in `Snapshotting`.
        """
        self._on_loaded = on_loaded
        self.free_bytes = disk.free_bytes
        self.damage = DamageRecord(clock)
        self._archived = ArchivedHistory(disk, config.cluster_id, log)
        access = None if archive is None else ArchiveAccess(archive, config.cluster_id)
        self.history = ReadableHistory(
            config, clock, disk, quorum, self._archived, access, self.open_ledger, log
        )
        self.tree = TreeKeeping(clock, disk, on_failed, log) if config.head_seed else None
        self.snapshotting = Snapshotting(
            config,
            clock,
            applier,
            quorum.compact,
            on_failed,
            on_settled,
            log,
            frontier=lambda: None if self.tree is None else self.tree.frontier(),
        )
        self.files = Storage(
            config,
            clock,
            disk,
            quorum,
            applier,
            self._loaded,
            on_failed,
            self.damage,
            self.snapshotting.lost,
            self._archived,
            access,
            log,
        )
        self.archiving: Archiving | None = None
        if access is not None:
            self.archiving = Archiving(
                config,
                clock,
                disk,
                quorum,
                self._archived,
                access,
                self.files.damaged,
                on_failed,
                log,
            )
        self.scrubbing = Scrubbing(config, clock, disk, quorum.scrub, self.files, log)

    def open(self, place: Mark | None) -> None:
        """Open the files at the quorum's mark. Raises what `Ledger.open` raises."""
        self._archived.load()
        self.history.clear()
        self.files.open(place)

    def stop(self) -> None:
        """Write and move nothing any more, and read nothing back."""
        self.snapshotting.stop()
        self.scrubbing.stop()
        self.history.stop()
        if self.archiving is not None:
            self.archiving.stop()
        if self.tree is not None:
            self.tree.close()

    def caught_up(self, mark: Mark) -> None:
        """The quorum has taken a mark over: replace the ledger, and load."""
        self.scrubbing.stop()
        if self.archiving is not None:
            self.archiving.stop()
        if self.tree is not None:
            self.tree.stop()
        self.files.caught_up(mark)

    @property
    def history_from(self) -> int:
        """The first offset that is here or in the archive; 0 until the ledger is open."""
        return 0 if self.files.ledger is None else self.history.log_start

    def open_ledger(self) -> Ledger:
        """The ledger. Only for requests: they are refused before the ledger is open."""
        assert self.files.ledger is not None
        return self.files.ledger

    def _loaded(self, ledger: Ledger, image: MetadataImage, place: Mark) -> None:
        assert self.files.store is not None
        self.snapshotting.begin(ledger, self.files.store)
        self.scrubbing.begin(ledger, self.files.store)
        if self.archiving is not None:
            self.archiving.begin(ledger, self.files.store)
        if self.tree is not None:
            self.tree.begin(ledger, _frontier_of(self.files.store))
        self._on_loaded(ledger, image, place)


def _frontier_of(store: CheckpointStore) -> FrontierPlace | None:
    """Return the frontier that the newest checkpoint says; None if it says none."""
    newest = store.newest()
    if newest is None:
        return None
    try:
        header = store.header(newest)
        encoded = header.extensions.get(FRONTIER)
        if encoded is None:
            return None
        return FrontierPlace(Frontier.decode(encoded), header.offset, header.chain_hash)
    except (CheckpointError, LedgerError, OSError):
        return None  # a damaged checkpoint is found by whoever loads it
