"""The parts of this room, wired: what a controller has of its files."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.replica.applier import Applier
from controller.storage.damage import DamageRecord
from controller.storage.opening import OnLoaded, Storage
from controller.storage.scrubbing import Scrubbing
from controller.storage.snapshotting import Snapshotting
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from quorum.api import Mark, Quorum
from runtime.clock import Clock
from runtime.disk.interface import Disk


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
        log: FilteringBoundLogger,
    ) -> None:
        """`on_loaded` gets ledger, image and place, at a start and after each catch-up.

        `on_failed` stops the node. `on_settled` is explained in `Snapshotting`.
        """
        self._on_loaded = on_loaded
        self.free_bytes = disk.free_bytes
        self.damage = DamageRecord(clock)
        self.snapshotting = Snapshotting(
            config, clock, applier, quorum.compact, on_failed, on_settled, log
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
            log,
        )
        self.scrubbing = Scrubbing(config, clock, disk, quorum.scrub, self.files, log)

    def open_ledger(self) -> Ledger:
        """The ledger. Only for requests: they are refused before the ledger is open."""
        assert self.files.ledger is not None
        return self.files.ledger

    def _loaded(self, ledger: Ledger, image: MetadataImage, place: Mark) -> None:
        assert self.files.store is not None
        self.snapshotting.begin(ledger, self.files.store)
        self.scrubbing.begin(ledger, self.files.store)
        self._on_loaded(ledger, image, place)
