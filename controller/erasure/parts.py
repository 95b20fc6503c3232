"""The parts of this room, wired."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.erasure.keeping import SubjectKeysKeeping
from controller.erasure.key_files import KeyFiles
from controller.leader.parts import LeaderParts
from controller.replica.parts import ReplicaParts
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.disk.interface import Disk


def subject_keys(
    config: ControllerConfig,
    clock: Clock,
    disk: Disk,
    quorum: Quorum,
    replica: ReplicaParts,
    leader: LeaderParts,
    draw: Callable[[int], bytes],
    on_usable: Callable[[], None],
    on_failed: Callable[[str], None],
    log: FilteringBoundLogger,
) -> SubjectKeysKeeping | None:
    """Return what keeps the keys of subjects; None: there is no cluster key to keep them under."""
    key = config.cluster_key
    if key is None:
        return None
    return SubjectKeysKeeping(
        clock,
        config.node_id,
        quorum,
        leader.proposer,
        leader.own_provenance,
        key,
        KeyFiles(disk, key, draw, log),
        draw,
        image=lambda: replica.image,
        leads=lambda: leader.duties.active,
        is_current=lambda: (
            leader.duties.active
            or replica.freshness.age_ms(replica.image, clock.monotonic()) is not None
        ),
        on_usable=on_usable,
        on_failed=on_failed,
        log=log,
    )
