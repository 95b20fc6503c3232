"""A journal that is almost full takes no proposal: callers get an error, and nothing waits."""

import pytest

from runtime.simulated.process import Death
from tests.unit.controller.cluster import Cluster, keep_alive
from tests.unit.controller.real_cluster import RealCluster


def body(name, partitions=1):
    return {"topics": [{"name": name, "numPartitions": partitions, "replicationFactor": 1}]}


@pytest.mark.simulation
def test_a_leader_without_room_says_so_and_goes_on_when_there_is_some():
    cluster = RealCluster(nodes=1)
    one, two = cluster.online(1, 2)
    faults = cluster.hosts[1].faults
    faults.capacity_bytes = cluster.hosts[1].platter.used_bytes() + 1024 * 1024
    keep_alive(cluster, [one, two], 3.0)
    status, reply = cluster.ask("POST", "/v1/topics", body("x"))
    assert (status, reply["code"]) == (507, "DISK_FULL")
    keep_alive(cluster, [one], 15.0)
    assert not cluster.broker(2).fenced  # it is silent, but nothing can be written
    assert cluster.ask("GET", "/v1/topics")[0] == 200
    faults.capacity_bytes = None
    keep_alive(cluster, [one], 3.0)
    assert cluster.broker(2).fenced
    assert not cluster.broker(1).fenced
    cluster.create_topic("x", factor=1)
    cluster.kill(1, Death.POWER)
    cluster.start(1)
    cluster.run_until(lambda: cluster.shared.leader is not None)
    cluster.assert_equal()


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.online(1)
    return cluster


def test_a_silent_broker_that_cannot_be_fenced_does_not_keep_the_leader_busy(cluster):
    quorum = cluster.shared.nodes[1]
    quorum.room = 0
    cluster.run(30.0)
    assert not cluster.broker(1).fenced
    assert 10 < quorum.refused < 30
    quorum.room = None
    cluster.run(2.0)
    assert cluster.broker(1).fenced


def test_without_room_for_the_end_of_a_transaction_the_leader_resigns(cluster):
    quorum = cluster.shared.nodes[1]
    quorum.room = 2
    replies = cluster.send("POST", "/v1/topics", body("big", 30_000))
    late = cluster.send("POST", "/v1/topics", body("late"))
    cluster.run(0.1)
    assert quorum.resigned
    assert replies[0].status == 503
    assert late[0].status == 503
    quorum.room = None
    cluster.lead(2)
    assert cluster.image.transaction is None
    cluster.create_topic("after", factor=1)
    assert sorted(cluster.image.topics.by_name) == ["after"]
    cluster.assert_equal()


def test_a_leader_without_room_to_begin_its_epoch_serves_and_begins_it_later(cluster):
    quorum = cluster.shared.nodes[2]
    quorum.room = 0
    cluster.processes[2].run(lambda: cluster.shared.lead(2))
    cluster.run(0.5)
    assert not cluster.controllers[2].active
    status, reply = cluster.ask("POST", "/v1/topics", body("early"), node=2)
    assert (status, reply["code"]) == (507, "DISK_FULL")
    assert cluster.ask("GET", "/v1/topics", node=2)[0] == 200
    quorum.room = None
    cluster.run(1.5)
    assert cluster.controllers[2].active
    first = next(b for b in cluster.batches() if b.header.epoch == cluster.shared.epoch)
    assert first.header.provenance.operation == "BeginEpoch"
    cluster.create_topic("late", factor=1)
    cluster.assert_equal()


@pytest.mark.simulation
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_when_no_controller_has_room_one_still_leads_and_no_broker_is_fenced(seed):
    cluster = RealCluster(seed=seed)
    brokers = cluster.online(1, 2)
    cluster.create_topic("t", factor=2)
    for host in cluster.hosts.values():
        host.faults.capacity_bytes = host.platter.used_bytes() + 1024 * 1024
    cluster.run(8.0)
    answered = 0
    for _ in range(30):
        cluster.run(1.0)
        for node in cluster.controllers:
            for broker in brokers:
                replies = broker.send(node=node)
                cluster.run(0.02)
                answered += bool(replies) and replies[0].error is None
    assert answered >= 2 * 27
    for host in cluster.hosts.values():
        host.faults.capacity_bytes = None
    cluster.run_until(lambda: cluster.shared.leader is not None)
    assert not any(b.fenced for b in cluster.image.cluster.brokers.values())
    cluster.create_topic("u", factor=2)
    cluster.settle()
    cluster.assert_equal()
