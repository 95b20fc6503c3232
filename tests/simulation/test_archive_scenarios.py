"""Segments that move to an archive while faults strike the nodes, the network and the archive."""

from dataclasses import replace

import pytest

from runtime.simulated.nemesis import Nemesis
from tests.simulation.archiving import ArchiveFaults, ArchiveInvariant, read_whole
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape
from tests.simulation.fault_kinds import KINDS

pytestmark = pytest.mark.simulation

SHAPE = Shape(
    faults_s=15.0,
    archived=True,
    broker_fault_schedule=0.2,
    checkpoint_bytes=6_000,
    tail_bytes=4_000,
    segment_bytes=6_000,
    changes_per_s=12.0,
)
REST_S = 90.0


def faulty_run(seed: int, shape: Shape = SHAPE) -> tuple[Cluster, ArchiveInvariant, ArchiveFaults]:
    """A cluster with an archive that came to rest after faults."""
    cluster = Cluster(seed, shape)
    invariant = ArchiveInvariant(cluster)
    kinds = list(KINDS.values())
    nemesis = Nemesis(cluster, kinds[seed % len(kinds)])
    faults = ArchiveFaults(cluster)
    cluster.start_all()
    assert cluster.world.run_for(10, lambda: cluster.leader() is not None)
    nemesis.start()
    faults.start()
    cluster.world.run_for(shape.faults_s)
    nemesis.heal()
    faults.end()
    cluster.healed = True
    for node_id, host in cluster.hosts.items():
        if not host.running:
            cluster.start(node_id)
    cluster.broker_faults.heal()
    cluster.world.run_for(5)
    cluster.busy = False
    assert cluster.world.run_for(REST_S, cluster.at_rest), cluster.unrest()
    cluster.world.run_for(15)
    assert cluster.stopped == []
    return cluster, invariant, faults


def all_known(cluster: Cluster) -> bool:
    """Every node knows where all of the history is."""
    return all(c._storage.history_from == 0 for c in cluster.controllers.values())


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_no_offset_is_lost_and_every_node_shows_the_whole_log(seed: int) -> None:
    cluster, invariant, faults = faulty_run(seed)
    assert invariant.removed > 5, "segments left nodes"
    assert faults.met.total() > 3, faults.met
    assert cluster.world.run_for(60, lambda: all_known(cluster))
    logs = {node_id: read_whole(cluster, node_id) for node_id in cluster.hosts}
    assert logs[1] == logs[2] == logs[3]
    assert invariant.reached() >= min(c.ledger.log_end for c in cluster.controllers.values())


def test_a_node_that_lost_its_disk_finds_its_history_in_the_archive() -> None:
    cluster, _, _ = faulty_run(5, replace(SHAPE, brokers=0, broker_fault_schedule=0))
    whole = read_whole(cluster, 1)
    host = cluster.hosts[3]
    host.kill()
    host.platter.names.clear()
    cluster.start(3)
    end = cluster.controllers[1].image.offset
    assert cluster.world.run_for(60, lambda: cluster.controllers[3].image.offset >= end)
    assert cluster.world.run_for(60, lambda: all_known(cluster))
    assert read_whole(cluster, 3)[: len(whole)] == whole
