"""The table of fault by operation: which operations were in progress when a fault struck.

    python -m tests.simulation.coverage [FOLDER]      adds up the recorded seeds of a folder

Rule: observing takes no event and no random number, so a run is the same without it. An operation
is recognised by the state of the product's own objects at that instant. A cell that stays empty
over hundreds of seeds is a hole, unless `IMPOSSIBLE` says why nothing can fill it.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker_agent.states import BrokerState
from quorum.raft.core import Role
from runtime.simulated.fault_schedules import (
    ALL_BUT_DAMAGE,
    DAMAGE,
    FOLDERS,
    LOST,
    ROT,
    TRIGGERED,
)
from tests.evidence.pieces import added, default_folder, read_pieces

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
CHANGE_OF_VOTERS = "change of voters"
"""Of the kind `voters` only. It is not among the operations above, because a seed of the kind
`hunt` chooses among those by its number."""
REASSIGNMENT, CHANGE_OF_CLIENTS = "reassignment", "change of clients"
DRAWN_OPERATIONS = (REASSIGNMENT, CHANGE_OF_CLIENTS)
"""Those of `drawn_operations`, where a seed draws them. They stand apart from the others, because a
seed of the kind `hunt` chooses among those by its number."""
_NOT_FORMED = "nothing is damaged before every node has found its place: a first start isn't judged"
_NOT_YET = "brokers are tormented from the third second on"
IMPOSSIBLE: dict[tuple[str, str], str] = {
    **{(kind, "forming"): _NOT_FORMED for kind in (*ROT, *LOST, *FOLDERS) if kind != "read_error"},
    **{(f"broker {act}", "forming"): _NOT_YET for act in ("kill", "power", "pause", "stop")},
}
"""Fault and operation that can't meet, or almost never, and why. A cell that is filled is no hole,
whatever stands here."""


def every_fault(coverage: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """Return the table with a row for every known fault, also for one that never struck."""
    known = [fault for fault in (*ALL_BUT_DAMAGE, *DAMAGE) if fault not in TRIGGERED]
    return {fault: coverage.get(fault, {}) for fault in dict.fromkeys([*known, *sorted(coverage)])}


def pairs(faults: Iterable[str], operations: Sequence[str]) -> list[tuple[str, str]]:
    """Return every fault with every operation that it can meet."""
    return [(f, o) for f in faults for o in operations if (f, o) not in IMPOSSIBLE]


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
    context = getattr(quorum, "context", None)
    if context is None or not hasattr(quorum, "_compaction"):
        return
    core = context.core
    if core is None:
        yield "forming"
        return
    leads = core.role is Role.LEADER
    if quorum.guard.elections._heard_at < 0 and not leads:
        # It has begun to live, and heard of no leader yet.
        yield "opening"
    if quorum.guard.proposals or (leads and context.view.last > core.commit_index):
        yield "proposal"
    reads = quorum.guard.reads
    if reads._waiting or reads._asking or reads._confirmed:
        yield "read"
    if core.role is Role.CANDIDATE or quorum.guard.elections.leader is None:
        yield "election"
    if quorum._compaction._manifests.writing:
        yield "compaction"
    if quorum.guard.catch_up.pending is not None:
        yield "jump"
    if quorum.guard.transfer.running:
        yield "transfer"
    if quorum.guard.proposals.has_change or context.voters.newest.index > core.commit_index:
        yield CHANGE_OF_VOTERS


def _in_controller(controller: Any) -> Iterator[str]:
    storage, proposer = controller._storage.files, controller._leader.proposer
    if proposer.waiting or proposer.busy:
        yield "decision"
    if controller._storage.snapshotting._busy:
        yield "checkpoint"
    if storage._catch_up._goal is not None:
        yield "pull"
    if storage._backfill is not None and storage._backfill._pull is not None:
        yield "backfill"
    if storage._cancel_load is not None:
        yield "loading"
    if storage._mending.note:
        yield "mending"
    if len(controller._http.held_requests):
        yield "metadata fetch held"
    if controller.image.transaction is not None:
        yield "transaction"
    pending = proposer.pending
    if pending is not None and pending.image.transaction is not None:
        yield "transaction"


def _around(cluster: Any) -> Iterator[str]:
    for incarnation in cluster.brokers.values():
        if incarnation.process.alive and incarnation.agent is not None:
            if incarnation.agent.state is BrokerState.STOPPING:
                yield "controlled shutdown"
            elif incarnation.agent.broker_epoch < 0:
                yield "registration"
    for change in cluster.admins.under_way.values():
        yield "delete topic" if change.delete else "create topic"
    if cluster.shape.moved and cluster.movers.moving():
        yield REASSIGNMENT
    if cluster.clients.under_way:
        yield CHANGE_OF_CLIENTS


def operations_of(simulator: str) -> Sequence[str]:
    """Return the columns of a simulator's table."""
    if simulator == "quorum":
        return QUORUM_OPERATIONS
    return (*CLUSTER_OPERATIONS, *DRAWN_OPERATIONS)


def holes(
    coverage: Mapping[str, Mapping[str, int]], operations: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the cells that no strike has filled and that could be filled."""
    return [
        (fault, operation)
        for fault, met in sorted(coverage.items())
        for operation in operations
        if not met.get(operation) and (fault, operation) not in IMPOSSIBLE
    ]


def table(coverage: Mapping[str, Mapping[str, int]], operations: Sequence[str]) -> Iterator[str]:
    """Yield the table's lines: a fault a line, an operation a column."""
    yield " " * 20 + " ".join(f"{operation[:8]:>8}" for operation in operations)
    for fault, met in sorted(coverage.items()):
        cells = (met.get(operation, 0) or "." for operation in operations)
        yield f"{fault:20}" + " ".join(f"{cell!s:>8}" for cell in cells)


def recorded(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """Add up what recorded runs of seeds met, by simulator."""
    runs = [piece for piece in read_pieces(folder) if piece.what == "seeds"]
    return {
        simulator: added(p for p in runs if p.figures["simulator"] == simulator).get("coverage", {})
        for simulator in ("cluster", "quorum")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Fault by operation, of recorded seeds.")
    parser.add_argument("folder", type=Path, nargs="?", default=default_folder())
    empty = 0
    for simulator, coverage in recorded(parser.parse_args().folder).items():
        operations = operations_of(simulator)
        print(simulator, *table(coverage, operations), sep="\n")
        for fault, operation in holes(coverage, operations):
            print(f"hole: {fault} has never met {operation}")
            empty += 1
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main())
