"""The parts of this room, wired."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.signing.signing import HeadSigning
from controller.storage.parts import StorageParts
from metadata.image import MetadataImage
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.disk.interface import Disk


def head_signing(
    config: ControllerConfig,
    clock: Clock,
    disk: Disk,
    quorum: Quorum,
    storage: StorageParts,
    image: Callable[[], MetadataImage],
    voters: Callable[[], tuple[int, ...]],
    log: FilteringBoundLogger,
) -> HeadSigning | None:
    """Return what signs heads; None if the controller has no key for it."""
    keeping = storage.tree
    if keeping is None:
        return None
    return HeadSigning(
        clock,
        disk,
        config.node_id,
        config.cluster_id,
        config.head_seed,
        config.head_interval_s,
        tree=lambda: keeping.tree,
        generation=lambda: image().quorum.generation,
        voters=voters,
        tell=quorum.tell,
        on_unreadable=keeping.rebuild,
        log=log,
    )
