"""When the faults end, a node that was just ending is started again."""

import errno
from typing import cast

import pytest

from broker_agent.catching_up import CatchingUp
from quorum.node import QuorumNode
from runtime.simulated.disk_faults import DiskProfile
from runtime.simulated.fault_schedules import FaultSchedule
from runtime.simulated.nemesis import Nemesis
from tests.simulation import quorum_cluster
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

pytestmark = pytest.mark.simulation

SLOW = DiskProfile(300_000, 300_000)
NOTHING = FaultSchedule({"kill": 1.0}, gap_s=(500.0, 600.0))


def a_cluster() -> Cluster:
    cluster = Cluster(5, Shape())
    cluster.start_all()
    cluster.world.run_for(3)
    return cluster


def comes_back(cluster: Cluster, node_id: int) -> None:
    """Heal, as a run of a seed does; a node that still runs is about to end."""
    dying = cluster.hosts[node_id].process
    assert dying.alive
    nemesis = Nemesis(cluster, NOTHING)
    nemesis.start()
    nemesis.heal()
    cluster.healed = True
    cluster.broker_faults.heal()
    assert cluster.world.run_for(1, lambda: not dying.alive)
    cluster.busy = False
    assert cluster.world.run_for(20, cluster.at_rest), cluster.unrest()


def test_a_node_whose_start_failed_on_a_slow_disk() -> None:
    cluster = a_cluster()
    host = cluster.hosts[2]
    host.kill()
    host.faults.set_profile(SLOW)
    host.faults.fail("read")
    cluster.start(2)
    comes_back(cluster, 2)


def test_a_node_that_stopped_itself_on_a_slow_disk() -> None:
    """Damage seed 642."""
    cluster = a_cluster()
    host = cluster.hosts[2]
    host.faults.fail("sync", error=errno.EROFS, lasting=True)
    context = cast("QuorumNode", cluster.controllers[2].quorum).context
    assert cluster.world.run_for(3, lambda: context.stopped)
    host.process.hold(300_000)
    comes_back(cluster, 2)


def test_a_quorum_node_that_stopped_itself_and_is_kept_by_its_disk_past_its_restart() -> None:
    cluster = quorum_cluster.QuorumCluster(5, quorum_cluster.Shape())
    cluster.start_all()
    cluster.proposers.start()
    cluster.world.run_for(2)
    host = cluster.hosts[2]
    host.faults.fail("write")
    assert cluster.world.run_for(3, lambda: bool(cluster.stopped))
    host.process.hold(700_000)
    assert cluster.world.run_for(5, lambda: host.incarnations == 2)
    cluster.busy = False
    assert cluster.world.run_for(20, cluster.caught_up)


def test_no_rest_while_an_agent_follows_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crowd seed 940007: publishers were not told yet of the image that the agent had."""
    cluster = a_cluster()
    cluster.busy = False
    assert cluster.world.run_for(20, cluster.at_rest), cluster.unrest()
    monkeypatch.setattr(CatchingUp, "following", True)
    assert not cluster.at_rest()
