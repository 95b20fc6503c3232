"""Opens a node's folder: the lock, the manifest, the journal, and what an operator accepts.

Rule: an operator's file is obeyed once. It is removed durably as soon as the journal holds what it
allowed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from quorum.config import QuorumConfig
from quorum.journal import RaftJournal
from quorum.journal.damage import DamagedError
from quorum.journal.installing import finish_installation
from quorum.journal.lineage import DRAWN_BYTES
from quorum.journal.manifest import JournalManifest
from quorum.journal.manifest_store import ManifestStore
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from runtime.randomness import Random

ACCEPT_LOSS: Final = "accept-loss"
"""The file by which an operator of an earlier release accepted a loss. `quorum recover` does it."""
ACCEPT_EPOCH: Final = "accept-epoch"
"""The file by which an operator accepts an impossible epoch in the journals (see the runbook)."""


class OpenedFolder(NamedTuple):
    """What stands in a folder."""

    journal: RaftJournal
    manifests: ManifestStore
    manifest: JournalManifest | None
    """Where the journal was cut; None: nowhere."""


def open_folder(
    config: QuorumConfig,
    disk: Disk,
    random: "Random",
    *,
    on_durable: Callable[[], None],
    on_failed: Callable[[OSError], None],
    log: FilteringBoundLogger,
) -> OpenedFolder:
    """Open the folder for a new incarnation of its node. Raises what `quorum.api` says."""
    disk.lock()
    _finish_recovery(disk, log)
    manifests = ManifestStore(disk, on_failed=on_failed, log=log)
    manifest = manifests.load()
    accepts_epoch = disk.exists(ACCEPT_EPOCH)
    journal = RaftJournal.open(
        disk,
        cluster_id=config.cluster_id,
        node_id=config.node_id,
        new_directory_id=random.randbytes(16),
        manifest=manifest,
        on_durable=on_durable,
        on_failed=on_failed,
        log=log,
        segment_bytes=config.segment_bytes,
        reserve_bytes=config.reserve_bytes,
        accepts_epoch=accepts_epoch,
    )
    if accepts_epoch:
        _remove_durably(disk, ACCEPT_EPOCH)
    journal.history.begin_incarnation(random.randbytes(DRAWN_BYTES))
    return OpenedFolder(journal, manifests, manifest)


def _finish_recovery(disk: Disk, log: FilteringBoundLogger) -> None:
    """Finish what `quorum recover` began. Raises DamagedError, OSError."""
    if disk.exists(ACCEPT_LOSS):
        raise DamagedError(
            f"the file {ACCEPT_LOSS} has no meaning any more: remove it. After the loss of a "
            "majority, `logberg quorum recover` begins a new generation of the cluster"
        )
    installed = finish_installation(disk)
    if installed is not None:
        log.warning("generation_installed", kept=installed.keep)


def _remove_durably(disk: Disk, name: str) -> None:
    """Remove an operator's file so that it is not obeyed again after a crash."""
    disk.unlink(name)
    disk.sync_folder("")
