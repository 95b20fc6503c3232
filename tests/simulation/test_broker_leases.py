"""I19 and I20 read what fenced a broker from a node's files, which may be damaged."""

import pytest

from ledger.batch import MAGIC
from runtime.simulated.world import SimulationFailedError
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

pytestmark = pytest.mark.simulation

JUDGED, DAMAGED = "fenced for silence", "not judged: the ledger is damaged"


def a_cluster_whose_broker_is_silent() -> tuple[Cluster, int]:
    """Broker 2 has ended and is not fenced yet; returns the leader too, the first to fence it."""
    cluster = Cluster(5, Shape(broker_fault_schedule=0.0))
    cluster.expect_damage()
    cluster.start_all()
    cluster.world.run_for(2)
    cluster.broker_hosts[2].kill()
    cluster.busy = False
    leader = cluster.leader()
    assert leader is not None
    return cluster, leader


def damage_ledger(cluster: Cluster, node_id: int) -> None:
    """Damage the newest batch, which a reader passes on its way to later ones."""
    platter = cluster.hosts[node_id].platter
    newest = max(name for name in platter.names if name.endswith(".log"))
    platter.flip_bit(newest, platter.names[newest].content.rindex(MAGIC))


def test_a_fencing_in_a_damaged_file_is_counted_and_not_judged() -> None:
    """Damage seed 80045: the leader had not read the damage, and the judge failed the run."""
    cluster, leader = a_cluster_whose_broker_is_silent()
    assert cluster.fault_atlas is not None
    cluster.fault_atlas.victims = [leader]
    damage_ledger(cluster, leader)
    cluster.world.run_for(8)
    assert (cluster.leases.counts[JUDGED], cluster.leases.counts[DAMAGED]) == (0, 1)


def test_the_ledger_of_a_node_that_nobody_damaged_must_be_read() -> None:
    cluster, leader = a_cluster_whose_broker_is_silent()
    damage_ledger(cluster, leader)
    with pytest.raises(SimulationFailedError, match="DamagedLedgerError"):
        cluster.world.run_for(8)


def test_the_judge_leaves_a_fault_of_the_disk_to_the_process() -> None:
    cluster, leader = a_cluster_whose_broker_is_silent()
    faults = cluster.hosts[leader].faults
    faults.fail("read")
    cluster.world.run_for(8)
    assert cluster.leases.counts[JUDGED] == 1
    assert "read" in faults._failing
