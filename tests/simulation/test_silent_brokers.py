"""I20 tells a broker that could not speak from one that was not heard."""

import pytest

from controller.leader.heartbeats import Heartbeats
from runtime.simulated.network import PLAIN, WILD
from runtime.simulated.world import SimulationFailedError
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

pytestmark = pytest.mark.simulation

ENDED, HINDERED = "silent brokers: ended or paused", "silent brokers: hindered before"
US = 1_000_000


def a_cluster() -> Cluster:
    cluster = Cluster(5, Shape(broker_fault_schedule=0.0))
    cluster.start_all()
    cluster.world.run_for(2)
    return cluster


def fence(cluster: Cluster, since_s: float = 0.0) -> None:
    """The leader fences broker 2; `since_s`: it leads for so long."""
    leader, incarnation = cluster.leader(), cluster.brokers[2]
    assert leader is not None
    epoch = cluster.controllers[leader].quorum.leader_and_epoch().epoch
    cluster.silent_brokers._began_us[epoch] = cluster.world.now_us - int(since_s * US)
    cluster.silent_brokers.fenced(incarnation, incarnation.agent.broker_epoch, epoch)


@pytest.mark.parametrize("act", ["kill", "pause"])
def test_a_broker_that_ended_or_is_paused_may_be_fenced(act: str) -> None:
    cluster = a_cluster()
    getattr(cluster.broker_hosts[2], act)()
    cluster.world.run_for(8)
    assert cluster.leases.counts["fenced for silence"] == 1
    assert cluster.silent_brokers.counts[ENDED] == 1


def test_a_broker_that_runs_may_not_be_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that forgets contacts is caught."""
    cluster = a_cluster()
    monkeypatch.setattr(Heartbeats, "touch", lambda *_: None)
    with pytest.raises(SimulationFailedError, match="I20: broker"):
        cluster.world.run_for(8)


@pytest.mark.parametrize(("leads_s", "judged"), [(0.0, True), (1.0, False), (20.0, False)], ids=str)
def test_a_pause_counts_for_the_leader_that_saw_it(leads_s: float, judged: bool) -> None:
    cluster = a_cluster()
    cluster.broker_hosts[2].pause()
    cluster.world.run_for(1)
    cluster.broker_hosts[2].resume()
    cluster.world.run_for(0.5)
    if judged:
        with pytest.raises(SimulationFailedError, match="I20"):
            fence(cluster, leads_s)
    else:
        fence(cluster, leads_s)
        assert cluster.silent_brokers.counts[HINDERED] == 1


def test_a_network_that_loses_requests_counts_for_two_sessions() -> None:
    cluster = a_cluster()
    cluster.network.set_profile(WILD)
    fence(cluster, 30.0)
    cluster.network.set_profile(PLAIN)
    fence(cluster, 30.0)
    assert cluster.silent_brokers.counts[HINDERED] == 2
    cluster.world.run_for(2 * cluster.shape.session_s + 0.1)
    with pytest.raises(SimulationFailedError, match="I20"):
        fence(cluster, 30.0)


def test_without_broker_faults_no_broker_ends() -> None:
    cluster = a_cluster()
    cluster.world.run_for(10)
    assert not cluster.broker_faults.counts
    assert {host.incarnations for host in cluster.broker_hosts.values()} == {1}


def test_a_cut_can_hinder_a_broker_in_a_controllers_process() -> None:
    cluster = Cluster(5, Shape(broker_fault_schedule=0.0, combined=True))
    cluster.start_all()
    cluster.world.run_for(2)
    fence(cluster)
    assert cluster.silent_brokers.counts[HINDERED] == 1
    cluster.network.heal()
    with pytest.raises(SimulationFailedError, match="I20"):
        fence(cluster)
