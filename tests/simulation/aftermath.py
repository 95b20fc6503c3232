"""After the faults: the operator looks for hidden damage, and each node must reach a clear end.

Rule: damage that nobody reads is found at a start, by `logberg log verify`, or by a request for the
damaged part. So the operator does each, as the runbook says. Then every node is a sound voter with
everything, or an observer or damaged voter that reports it, and nobody's history has changed.
"""

import json
from typing import Any

from ledger.errors import LedgerError
from ledger.verify import verify_ledger
from metadata.steps import finished
from runtime.http.requests import Reply, Request, whole
from snapshots.checkpoint import FOLDER
from snapshots.errors import CheckpointError
from snapshots.store import list_checkpoints, load_steps

ROUNDS = 12
ROUND_S = 1.5
START_S = 0.3


def restart_victims(cluster: Any) -> None:
    """Let who was damaged read its folder once more, one node after another."""
    fault_atlas = cluster.fault_atlas
    for node_id in fault_atlas.victims:
        cluster.hosts[node_id].kill()
        cluster.world.run_for(START_S)
        if not cluster.hosts[node_id].running:
            cluster.start(node_id)
        cluster.world.run_for(START_S)


def have_ledgers_mended(cluster: Any) -> None:
    """Ask each controller for what its own ledger misses, until every ledger verifies."""
    world, fault_atlas = cluster.world, cluster.fault_atlas
    for _ in range(ROUNDS):
        bad = _first_bad_offsets(cluster)
        if not bad:
            return
        for node_id, offset in bad.items():
            fault_atlas.facts["asked for a damaged segment"] += 1
            _ask(cluster, node_id, offset)
        world.run_for(ROUND_S)
    world.fail(f"I10: damage that was read is not mended: {bad}", None)


def put_bad_checkpoints_aside(cluster: Any) -> None:
    """Remove checkpoints that the loader refuses and that nobody has read since the damage.

    Checkpoints that the loader accepts stay, so that the judges can compare them.
    """
    for node_id in cluster.fault_atlas.victims:
        host = cluster.hosts[node_id]
        disk, cluster_id = host.disk(), cluster.fault_atlas.cluster_id
        for checkpoint in list_checkpoints(disk):
            try:
                finished(load_steps(disk, cluster_id, checkpoint))
            except CheckpointError:
                host.platter.remove(f"{FOLDER}/{checkpoint.name}")
                cluster.fault_atlas.facts["rotten checkpoints that nobody had read"] += 1


def _first_bad_offsets(cluster: Any) -> dict[int, int]:
    bad = {}
    for node_id, controller in cluster.running().items():
        finding = _first_bad(cluster, node_id, controller)
        if finding is not None:
            if node_id not in cluster.fault_atlas.victims:
                cluster.world.fail(f"I10: a sound node's ledger is damaged: {finding}", node_id)
            bad[node_id] = finding[0]
    return bad


def _first_bad(cluster: Any, node_id: int, controller: Any) -> tuple[int, str] | None:
    """Return where a ledger is bad first, and what is; None: it is sound."""
    if controller.ledger is None:
        # It still fetches one; what it had may say nothing any more, not even whose it was.
        return 0, "none yet"
    try:
        report = verify_ledger(cluster.hosts[node_id].disk(), live=True)
    except LedgerError as error:
        # Every segment was lost, or cut behind what the manifest still vouches for.
        return 0, str(error)
    if report.ok:
        return None
    found = report.first_bad
    return (0, "it does not verify") if found is None else (found.offset, str(found))


def _ask(cluster: Any, node_id: int, offset: int) -> None:
    controller = cluster.controllers[node_id]
    process = cluster.hosts[node_id].process

    def answered(answer: Reply) -> None:
        """Only the reading counts; an answer must be one that a client can read."""
        json.loads(whole(answer).body or b"{}")

    request = Request("GET", "/v1/log", query={"offset": str(offset)})
    process.schedule(0, lambda: controller.handle(request, answered), "operator asks")
