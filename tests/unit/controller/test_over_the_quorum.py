"""The controller over the real quorum: elections, kills, losses of power, catch-ups."""

import pytest

from runtime.simulated.process import Death
from tests.unit.controller.cluster import keep_alive
from tests.unit.controller.real_cluster import RealCluster

pytestmark = pytest.mark.simulation


def test_a_cluster_forms_and_serves():
    cluster = RealCluster()
    cluster.online(1, 2, 3)
    cluster.create_topic("t", partitions=6, factor=3)
    cluster.settle()
    cluster.assert_equal()


@pytest.mark.parametrize("how", [Death.KILLED, Death.POWER])
def test_the_leader_dies_and_nothing_acknowledged_is_lost_and_nobody_is_fenced(how):
    cluster = RealCluster()
    brokers = cluster.online(1, 2, 3)
    for number in range(5):
        cluster.create_topic(f"t{number}", partitions=4, factor=3)
    keep_alive(cluster, brokers, 3.0)
    dead = cluster.shared.leader
    cluster.kill(dead, how)
    cluster.run_until(lambda: cluster.shared.leader is not None)
    keep_alive(cluster, brokers, 12.0)
    assert sorted(cluster.image.topics.by_name) == [f"t{n}" for n in range(5)]
    assert not any(b.fenced for b in cluster.image.cluster.brokers.values())
    cluster.start(dead)
    cluster.settle()
    cluster.assert_equal()


def test_one_controller_alone_serves_and_resumes():
    cluster = RealCluster(nodes=1)
    cluster.online(1)
    cluster.create_topic("t", factor=1)
    cluster.kill(1, Death.POWER)
    cluster.start(1)
    cluster.run_until(lambda: cluster.shared.leader is not None)
    assert cluster.image.topics.named("t") is not None
    cluster.assert_equal()


@pytest.mark.parametrize("nodes", [1, 3])
def test_restarts_do_not_keep_the_journal_from_being_cut(nodes):
    """Less log than the journal's tail comes between two restarts."""
    cluster = RealCluster(
        nodes, checkpoint_bytes=8_000, ledger_segment_bytes=6_000, tail_bytes=20_000, session_s=1e6
    )
    cluster.online(1)
    for _ in range(6):
        for _ in range(20):
            cluster.create_topic("again", factor=1)
            cluster.ask("DELETE", "/v1/topics/again")
        cluster.run(2.0)
        cluster.kill(1)
        cluster.start(1)
        cluster.settle()
    names = [f"journal/{name}" for name in cluster.disks[1].list("journal")]
    assert sum(map(cluster.disks[1].size, names)) < 90_000
    cluster.assert_equal()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_controller_that_was_long_away_jumps_and_backfills(seed):
    cluster = RealCluster(
        seed=seed, checkpoint_bytes=8_000, ledger_segment_bytes=6_000, tail_bytes=1_000
    )
    brokers = cluster.online(1)
    keep_alive(cluster, brokers, 1.5)  # in the second after an election no checkpoint is packed
    away = next(n for n in cluster.hosts if n != cluster.shared.leader)
    cluster.kill(away, Death.POWER)
    for _ in range(120):
        cluster.create_topic("again", factor=1)
        cluster.ask("DELETE", "/v1/topics/again")
    assert cluster.events("journal_compacted"), "so the leader has not all that the other lacks"
    keep_alive(cluster, brokers, 2.0)
    cluster.start(away)
    cluster.settle()
    keep_alive(cluster, brokers, 5.0)
    assert cluster.events("catch_up_ready")
    assert cluster.controllers[away].ledger.log_start == 0
    cluster.create_topic("last", factor=1)
    cluster.settle()
    cluster.assert_equal()
