"""A replica whose log directory has failed stays out of the ISR, whatever its leader asks for."""

from typing import Any

import pytest

from controller.managers import sweep
from metadata.records import DIRECTORY_LOST, PartitionChangeRecord
from metadata.uuids import uuid_text
from runtime.simulated.clock import SimulatedClock
from tests.unit.controller.cluster import CLUSTER_ID, Broker, Cluster

PARTITIONS = 500
ROUND = 8
FAILS, WORKS = b"f" * 16, b"w" * 16


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(sweep, "ROUND", ROUND)
    cluster: Any = Cluster()
    cluster.online(1, 2)
    cluster.broker3 = Broker(cluster, 3, log_dirs=(FAILS, WORKS)).bring_online()
    cluster.assign("t", *[(1, 2, 3)] * PARTITIONS)
    cluster.topic_id = cluster.image.topics.named("t").topic_id
    put(cluster, {n: FAILS if n < PARTITIONS - 4 else WORKS for n in range(PARTITIONS)})
    cluster.since = cluster.image.offset
    return cluster


def put(cluster, directories):
    """Let broker 3 say in which directories its replicas lie."""
    replicas = [
        {"topicId": uuid_text(cluster.topic_id), "partition": n, "directory": uuid_text(directory)}
        for n, directory in directories.items()
    ]
    epoch = cluster.broker(3).broker_epoch
    body = {"clusterId": CLUSTER_ID, "brokerEpoch": epoch, "replicas": replicas}
    status, reply = cluster.ask("POST", "/v1/brokers/3/directories", body)
    assert status == 200, reply
    assert not any("error" in row for row in reply["replicas"])


def isr(cluster, number):
    return cluster.image.topics.partitions[cluster.topic_id, number].isr


def asked_back(cluster, number):
    """Return the answer to a leader that asks for broker 3 in the ISR."""
    return cluster.alter_isr((cluster.topic_id, number), (1, 2, 3))


def changed(cluster):
    return [
        record.partition_id
        for record in cluster.records(cluster.since)
        if isinstance(record, PartitionChangeRecord)
    ]


def fail(cluster):
    return cluster.broker3.send(offline_log_dirs=(uuid_text(FAILS),), max_wait_ms=0)


def test_a_replica_on_a_failed_directory_is_not_brought_back_between_the_rounds(
    cluster, monkeypatch
):
    """A leader that still counts it as in sync would make it leave twice, at two records."""
    monkeypatch.setattr(SimulatedClock, "SOON_US", 1_000)
    node = cluster.processes[1]
    node.clock.cost_us = 2_000
    assert cluster.alter_isr((cluster.topic_id, PARTITIONS - 1), (1, 2))["error"] is None
    cluster.since = cluster.image.offset
    fail(cluster)
    cluster.run_until(lambda: len(changed(cluster)) >= ROUND)
    assert FAILS in cluster.broker(3).log_dirs, "the rounds are over"
    number = changed(cluster)[0]
    answer = asked_back(cluster, number)
    assert answer["error"]["code"] == "INELIGIBLE_REPLICA"
    assert "broker 3 is leaving, or the log directory" in answer["error"]["message"]
    # Its replicas elsewhere come and go as before.
    assert FAILS in cluster.broker(3).log_dirs, "the rounds are over"
    assert asked_back(cluster, PARTITIONS - 1)["isr"] == [1, 2, 3]
    node.clock.cost_us = 0
    cluster.run(1.0)
    assert cluster.broker(3).log_dirs == (WORKS,)
    assert sorted(changed(cluster)) == [*range(PARTITIONS - 4), PARTITIONS - 1]


def test_a_replica_on_a_failed_directory_is_not_brought_back_after_the_rounds(cluster):
    fail(cluster)
    cluster.run(1.0)
    assert cluster.broker(3).log_dirs == (WORKS,)
    answer = asked_back(cluster, 0)
    assert answer["error"]["code"] == "INELIGIBLE_REPLICA"
    assert "has failed" in answer["error"]["message"]
    assert isr(cluster, 0) == (1, 2)
    # The broker has made the replica anew on the directory that works.
    put(cluster, {0: WORKS})
    assert asked_back(cluster, 0)["isr"] == [1, 2, 3]


def test_the_next_leader_refuses_it_as_soon_as_the_broker_has_told_it(cluster, monkeypatch):
    monkeypatch.setattr(SimulatedClock, "SOON_US", 1_000)
    for process in cluster.processes.values():
        process.clock.cost_us = 2_000
    fail(cluster)
    cluster.run_until(lambda: len(changed(cluster)) >= ROUND)
    assert FAILS in cluster.broker(3).log_dirs, "the rounds are over"
    cluster.lead(2)
    gone = changed(cluster)
    fail(cluster)
    cluster.run_until(lambda: len(changed(cluster)) > len(gone))
    assert FAILS in cluster.broker(3).log_dirs, "the rounds are over"
    assert asked_back(cluster, gone[0])["error"]["code"] == "INELIGIBLE_REPLICA"
    for process in cluster.processes.values():
        process.clock.cost_us = 0
    cluster.run(1.0)
    assert sorted(changed(cluster)) == list(range(PARTITIONS - 4))


def test_a_replica_on_a_lost_directory_stays_out_until_its_broker_says_where_it_is(cluster):
    put(cluster, {5: DIRECTORY_LOST})
    assert isr(cluster, 5) == (1, 2)
    assert asked_back(cluster, 5)["error"]["code"] == "INELIGIBLE_REPLICA"
    put(cluster, {5: WORKS})
    assert asked_back(cluster, 5)["isr"] == [1, 2, 3]
