"""The age that a stale read gives is never too small, and doesn't grow without need."""

import msgspec
import pytest

from controller.replica.freshness import ImageFreshness
from metadata.image import EMPTY
from tests.unit.controller.real_cluster import RealCluster


def at(offset):
    return msgspec.structs.replace(EMPTY, offset=offset)


@pytest.fixture
def fresh():
    return ImageFreshness()


def test_before_anything_is_told_the_age_is_not_known(fresh):
    assert fresh.age_ms(at(10), 100.0) is None
    fresh.told(20, at(10), 100.0)
    assert fresh.age_ms(at(10), 101.0) is None


def test_what_is_told_counts_from_its_moment_once_it_is_reached(fresh):
    fresh.told(10, at(10), 100.0)
    fresh.told(20, at(10), 101.0)
    assert fresh.age_ms(at(10), 103.0) == 3_000
    assert fresh.age_ms(at(19), 103.0) == 3_000
    assert fresh.age_ms(at(20), 103.0) == 2_000


def test_a_node_that_is_always_a_little_behind_does_not_grow_old(fresh):
    for second in range(1_000):
        fresh.told(second, at(second - 1), float(second))
    assert fresh.age_ms(at(998), 1_000.0) == 2_000


def test_a_node_that_hangs_grows_old_however_much_is_told(fresh):
    fresh.told(0, at(0), 0.0)
    for second in range(1, 1_000):
        fresh.told(second, at(0), float(second))
    assert fresh.age_ms(at(0), 1_000.0) == 1_000_000
    assert fresh.age_ms(at(1), 1_000.0) == 999_000


def age(cluster, node):
    status, reply = cluster.ask("GET", "/v1/topics", node=node, query={"consistency": "stale"})
    assert status == 200
    return reply["ageMs"]


@pytest.mark.simulation
def test_a_leader_that_is_cut_off_grows_old_before_it_knows():
    cluster = RealCluster()
    cluster.run(2.0)
    old = cluster.shared.leader
    assert age(cluster, old) < 300
    cluster.network.cut([old], [node for node in cluster.hosts if node != old])
    cluster.run(0.35)
    assert cluster.controllers[old].active
    assert 340 <= age(cluster, old) < 650


@pytest.mark.simulation
def test_what_waited_in_sockets_while_a_follower_was_paused_does_not_make_it_young():
    cluster = RealCluster()
    cluster.run(2.0)
    leader = cluster.shared.leader
    paused, other = (node for node in cluster.hosts if node != leader)
    assert age(cluster, paused) < 500
    cluster.run(0.2)
    cluster.hosts[paused].pause()
    cluster.run(0.5)
    cluster.network.cut([paused], [leader, other])
    cluster.run(5.0)
    cluster.hosts[paused].resume()
    cluster.run(0.001)
    assert age(cluster, paused) >= 5_000


@pytest.mark.simulation
def test_a_follower_of_a_deposed_leader_grows_old_with_it():
    cluster = RealCluster(nodes=5)
    cluster.run(2.0)
    old = cluster.shared.leader
    follower, *others = (node for node in cluster.hosts if node != old)
    assert age(cluster, follower) < 600
    cluster.network.cut([old, follower], others)
    cluster.run(0.4)
    assert cluster.controllers[follower].quorum.leader_and_epoch().leader == old
    assert age(cluster, follower) >= 390


@pytest.mark.simulation
def test_a_controller_that_has_heard_from_nobody_since_its_start_does_not_know():
    cluster = RealCluster()
    cluster.run(1.0)
    for node in list(cluster.controllers):
        cluster.kill(node)
    cluster.start(1)
    cluster.run(2.0)
    assert age(cluster, 1) is None
    cluster.start(2)
    cluster.run_until(lambda: cluster.shared.leader is not None)
    cluster.run(1.0)
    assert age(cluster, 1) < 600


def test_one_controller_alone_is_always_current():
    cluster = RealCluster(nodes=1)
    cluster.run(1.0)
    assert age(cluster, 1) == 0
