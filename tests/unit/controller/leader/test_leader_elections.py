"""Elections of many partitions: in rounds by request, in passes by the leader itself."""

from typing import Any

import pytest

from controller.leader import periodic_elections
from controller.managers import asked_elections, leader_elections
from metadata.codec import decode_records
from metadata.messages import ElectionType, ElectLeadersRequest, WantedState
from metadata.records import PartitionChangeRecord
from metadata.uuids import uuid7, uuid_text
from tests.unit.controller.cluster import Cluster, keep_alive

PARTITIONS = 20
PATH = "/v1/partitions/elect"


def made(**config):
    cluster: Any = Cluster(nodes=1, **config)
    cluster.brokers = cluster.online(1, 2)
    cluster.assign("t", *[(1, 2)] * PARTITIONS)
    return cluster


def move_leaders(cluster, leader=2, count=PARTITIONS):
    topic_id = cluster.image.topics.named("t").topic_id
    cluster.write(*(PartitionChangeRecord(n, topic_id, leader=leader) for n in range(count)))


def rounds(cluster, operation):
    """How many partitions each batch of an operation changes."""
    return [
        sum(isinstance(r, PartitionChangeRecord) for r in decode_records(batch.records))
        for batch in cluster.batches()
        if batch.header.provenance.operation == operation
    ]


def leaders(cluster):
    return [cluster.partition("t", n).leader for n in range(PARTITIONS)]


def test_all_partitions_are_elected_in_rounds(monkeypatch):
    monkeypatch.setattr(leader_elections, "ROUND", 8)
    cluster = made()
    move_leaders(cluster)
    status, reply = cluster.ask(
        "POST", PATH, {"electionType": "PREFERRED", "topicPartitions": None}
    )
    assert status == 200
    assert (reply["elected"], reply["failed"]) == (PARTITIONS, 0)
    assert leaders(cluster) == [1] * PARTITIONS
    assert rounds(cluster, "ElectLeaders") == [8, 8, 4]
    rows = reply["replicaElectionResults"][0]["partitionResult"]
    assert sorted(row["partitionId"] for row in rows) == list(range(PARTITIONS))
    # Nothing is left to elect: those that need no election are not in the answer.
    status, reply = cluster.ask(
        "POST", PATH, {"electionType": "PREFERRED", "topicPartitions": None}
    )
    assert (reply["elected"], reply["replicaElectionResults"]) == (0, [])


def test_the_answer_about_all_is_bounded_and_counts_all(monkeypatch):
    monkeypatch.setattr(asked_elections, "SHOWN_MAX", 3)
    cluster = made()
    move_leaders(cluster)
    _, reply = cluster.ask("POST", PATH, {"electionType": "PREFERRED"})
    assert reply["elected"] == PARTITIONS
    assert len(reply["replicaElectionResults"][0]["partitionResult"]) == 3


def test_a_round_ends_also_when_nothing_can_be_elected(monkeypatch):
    """Very many partitions without a possible leader must not keep other decisions waiting."""
    monkeypatch.setattr(leader_elections, "LOOKS_MAX", 6)
    cluster = made()
    cluster.brokers[0].fetch(WantedState.FENCED)
    keep_alive(cluster, cluster.brokers[1:], 0.5)
    election = cluster.leader._leader.elections.elect(ElectLeadersRequest(ElectionType.PREFERRED))
    unfinished = []
    while not unfinished or unfinished[-1]:
        work, result = election.decide(cluster.image), None
        while result is None:
            try:
                next(work)
            except StopIteration as ended:
                result = ended.value
        assert not result.records
        unfinished.append(result.unfinished)
        if result.unfinished:
            election.resume(result.round_answer.body)
    assert unfinished == [True, True, True, False]
    assert election.complete(result.reply).failed == PARTITIONS


def test_a_dry_run_shows_the_records_and_elects_nobody():
    cluster = made()
    move_leaders(cluster, count=2)
    body = {"electionType": "PREFERRED", "dryRun": True}
    status, reply = cluster.ask("POST", PATH, body)
    assert status == 200
    assert [record["data"]["leader"] for record in reply["records"]] == [1, 1]
    assert leaders(cluster)[:2] == [2, 2]


def test_a_request_is_done_once():
    cluster = made()
    move_leaders(cluster, count=1)
    wall_ms = cluster.processes[1].clock.wall_ms()
    headers = {"x-logberg-request-id": uuid_text(uuid7(wall_ms, 5))}
    body = {"electionType": "PREFERRED", "topicPartitions": [{"topic": "t", "partitions": [0]}]}
    first = cluster.ask("POST", PATH, body, headers=headers)
    assert cluster.ask("POST", PATH, body, headers=headers) == first
    assert rounds(cluster, "ElectLeaders") == [1]


def test_too_many_partitions_in_a_list():
    cluster = made()
    topics = [{"topic": "t", "partitions": list(range(6_000))}] * 2
    body = {"electionType": "PREFERRED", "topicPartitions": topics}
    status, reply = cluster.ask("POST", PATH, body)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("passes", [[20], [8, 8, 4]])
def test_leaders_are_balanced_so_many_in_a_pass(monkeypatch, passes):
    monkeypatch.setattr(periodic_elections, "PASS_MAX", passes[0])
    cluster = made(leader_balance_s=30.0)
    move_leaders(cluster)
    keep_alive(cluster, cluster.brokers, 35.0)
    assert leaders(cluster) == [1] * PARTITIONS
    assert rounds(cluster, "BalanceLeaders") == passes
    balanced = [b for b in cluster.batches() if b.header.provenance.operation == "BalanceLeaders"]
    assert all(b.header.provenance.principal == "Controller:1" for b in balanced)


def test_leaders_are_not_balanced_where_that_is_switched_off():
    cluster = made(leader_balance_s=0.0)
    move_leaders(cluster)
    keep_alive(cluster, cluster.brokers, 400.0)
    assert leaders(cluster) == [2] * PARTITIONS


def test_a_balanced_cluster_decides_nothing():
    cluster = made(leader_balance_s=1.0)
    end = cluster.image.offset
    keep_alive(cluster, cluster.brokers, 10.0)
    assert cluster.image.offset == end
