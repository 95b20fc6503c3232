"""What was under way where a fault struck: the table of fault by operation, and its holes.

Rule: looking costs no dice and no event, so a run is the same with and without it. An operation
is named by what is visible in the product's own objects at that instant; a cell that stays empty
over hundreds of seeds is a hole, unless `IMPOSSIBLE` says why it can't be filled.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker_agent.states import BrokerState
from quorum.core import Role

QUORUM_OPERATIONS = (
    "proposal",
    "read",
    "election",
    "opening",
    "compaction",
    "jump",
    "transfer",
    "forming",
)
CLUSTER_OPERATIONS = (
    *QUORUM_OPERATIONS,
    "decision",
    "checkpoint",
    "pull",
    "backfill",
    "loading",
    "mending",
    "registration",
    "controlled shutdown",
    "metadata fetch held",
    "transaction",
    "create topic",
    "delete topic",
)
IMPOSSIBLE: dict[tuple[str, str], str] = {}
"""Fault and operation that can't meet, and why."""


def of_quorum(cluster: Any, nodes: Sequence[int]) -> list[str]:
    """Say what is under way on nodes of the quorum's simulator."""
    found: list[str] = []
    for node_id in nodes:
        owner = cluster.owners.get(node_id)
        if owner is None or not owner.process.alive or owner.quorum is None:
            continue
        found += _in_quorum(owner.quorum)
    return list(dict.fromkeys(found))


def of_cluster(cluster: Any, nodes: Sequence[int]) -> list[str]:
    """Say what is under way on controllers, and at clients and brokers while they are struck."""
    found: list[str] = []
    for node_id in nodes:
        controller = cluster.controllers.get(node_id)
        if controller is not None and cluster.hosts[node_id].running:
            found += _in_quorum(controller.quorum)
            found += _in_controller(controller)
    found += _around(cluster)
    return list(dict.fromkeys(found))


def _in_quorum(quorum: Any) -> Iterator[str]:
    inside = getattr(quorum, "inside", None)
    if inside is None or not hasattr(quorum, "_compaction"):
        return
    core = inside.core
    if core is None:
        yield "forming"
        return
    leads = core.role is Role.LEADER
    if quorum._elections._heard_at < 0 and not leads:
        # It has begun to live, and heard of no leader yet.
        yield "opening"
    if quorum._proposals or (leads and inside.view.last > core.commit_index):
        yield "proposal"
    reads = quorum._reads
    if reads._waiting or reads._asking or reads._confirmed:
        yield "read"
    if core.role is Role.CANDIDATE or quorum._elections.leader is None:
        yield "election"
    if quorum._compaction._manifests.writing:
        yield "compaction"
    if quorum._jump.pending is not None:
        yield "jump"
    if quorum._transfer.running:
        yield "transfer"


def _in_controller(controller: Any) -> Iterator[str]:
    storage, proposer = controller._storage, controller._proposer
    if proposer.waiting or proposer.busy:
        yield "decision"
    if controller._snapshotting._busy:
        yield "checkpoint"
    if storage._catch_up._job is not None:
        yield "pull"
    if storage._backfill is not None and storage._backfill._pull is not None:
        yield "backfill"
    if storage._cancel_load is not None:
        yield "loading"
    if storage._mending.note:
        yield "mending"
    if len(controller._parked):
        yield "metadata fetch held"
    if controller.image.transaction is not None:
        yield "transaction"
    pending = proposer.pending
    if pending is not None and pending.image.transaction is not None:
        yield "transaction"


def _around(cluster: Any) -> Iterator[str]:
    for life in cluster.brokers.values():
        if life.process.alive and life.agent is not None:
            if life.agent.state is BrokerState.STOPPING:
                yield "controlled shutdown"
            elif life.agent.broker_epoch < 0:
                yield "registration"
    for change in cluster.admins.under_way.values():
        yield "delete topic" if change.delete else "create topic"


def holes(coverage: Mapping[str, Counter[str]], operations: Sequence[str]) -> list[tuple[str, str]]:
    """Return the cells that no strike has filled and that could be filled."""
    return [
        (fault, operation)
        for fault, met in sorted(coverage.items())
        for operation in operations
        if not met[operation] and (fault, operation) not in IMPOSSIBLE
    ]
