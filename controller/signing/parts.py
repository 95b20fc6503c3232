"""The parts of this room, wired."""

from collections.abc import Callable, Sequence

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.leader.proposer import Proposer
from controller.signing.evidence import HeadEvidence
from controller.signing.head_records import HeadRecords
from controller.signing.own_keys import OwnKeys
from controller.signing.signing import HeadSigning
from controller.signing.witnessing import HeadWitness, Witnessing
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
    proposer: Proposer,
    image: Callable[[], MetadataImage],
    voters: Callable[[], tuple[int, ...]],
    on_contradicted: Callable[[str], None],
    log: FilteringBoundLogger,
) -> HeadSigning | None:
    """Return what signs heads; None if the controller has no key for it."""
    keeping = storage.tree
    if keeping is None:
        return None
    node_id, cluster_id = config.node_id, config.cluster_id
    return HeadSigning(
        clock,
        disk,
        node_id,
        cluster_id,
        config.head_interval_s,
        own_keys=OwnKeys(disk, node_id, cluster_id, config.head_seed, config.new_head_seed, log),
        records=lambda on_written: HeadRecords(
            node_id, cluster_id, proposer, image, on_written, log
        ),
        tree=lambda: keeping.rooted,
        image=image,
        voters=voters,
        tell=quorum.tell,
        on_unreadable=keeping.rebuild,
        on_contradicted=on_contradicted,
        log=log,
    )


def head_witnessing(
    config: ControllerConfig,
    clock: Clock,
    disk: Disk,
    storage: StorageParts,
    signing: HeadSigning | None,
    witnesses: Sequence[HeadWitness],
    log: FilteringBoundLogger,
) -> Witnessing | None:
    """Return what shows heads to witnesses; None if there are no heads, or no witnesses."""
    keeping = storage.tree
    if signing is None or keeping is None or not witnesses:
        return None
    evidence = HeadEvidence(disk, log)

    def keep_evidence(theirs: str, why: str) -> None:
        ours = "" if signing.newest is None else signing.newest.note
        evidence.keep(theirs, ours, why)

    witnessing = Witnessing(
        clock,
        witnesses,
        config.witnesses_needed,
        config.witness_window_s,
        newest=lambda: None if signing.contradiction else signing.newest,
        tree=lambda: keeping.tree,
        is_ours=signing.is_ours,
        unsigned_ms=signing.waiting_ms,
        on_cosigned=signing.add_cosignature,
        keep_evidence=keep_evidence,
        log=log,
    )
    signing.tell_heads_to(witnessing.on_head)
    return witnessing
