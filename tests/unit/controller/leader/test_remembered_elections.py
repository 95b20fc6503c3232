"""An election of many partitions that is sent again is answered with what its rounds found."""

import json
from typing import Any

import pytest

from controller.leader import proposer
from controller.managers import asked_elections, leader_elections
from metadata.codec import decode_records
from metadata.records import PartitionChangeRecord, RequestOutcomeRecord
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.leader.test_changes import request_id

PATH = "/v1/partitions/elect"
PARTITIONS = 30
ROUND = 4
OUT = (2, 9, 20)
"""Partitions whose preferred replica is not in sync."""
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"
UNAVAILABLE = "PREFERRED_LEADER_NOT_AVAILABLE"


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(leader_elections, "ROUND", ROUND)
    monkeypatch.setattr(leader_elections, "LOOKS_MAX", 7)
    cluster: Any = Cluster()
    cluster.monkeypatch = monkeypatch
    cluster.online(1, 2)
    cluster.assign("t", *[(1, 2)] * PARTITIONS)
    cluster.topic_id = cluster.image.topics.named("t").topic_id
    cluster.write(
        *(
            PartitionChangeRecord(n, cluster.topic_id, leader=2, isr=(2,) if n in OUT else None)
            for n in range(PARTITIONS)
        )
    )
    cluster.since = cluster.image.offset
    return cluster


def elect(cluster, key, topics=None, **more):
    """Send a request; `topics` are pairs of a name and numbers, None is about all."""
    named = topics and [{"topic": name, "partitions": list(numbers)} for name, numbers in topics]
    message = {"electionType": "PREFERRED", "topicPartitions": named}
    headers = {"x-logberg-request-id": key, **more}
    return cluster.send("POST", PATH, message, headers=headers)


def answered(cluster, replies):
    cluster.run_until(lambda: bool(replies))
    return replies[0].status, json.loads(replies[0].body)


def elections(cluster):
    """Return the partitions that each round elected a leader of."""
    return [
        [r.partition_id for r in decode_records(b.records) if isinstance(r, PartitionChangeRecord)]
        for b in cluster.leader.ledger.batches(cluster.since)
        if b.header.provenance.operation == "ElectLeaders"
    ]


def results(reply):
    """Return what became of each partition, in the order of the answer."""
    return [
        (each["topic"], row["partitionId"], (row["error"] or {}).get("code") or row["leaderId"])
        for each in reply["replicaElectionResults"]
        for row in each["partitionResult"]
    ]


def after_a_failover(cluster, rounds_before, *asked, **more):
    """Return the answer to a request whose first leader fails between two rounds."""
    key = request_id(cluster)
    cluster.monkeypatch.setattr(proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1)
    cluster.processes[1].clock.cost_us = 2_000
    lost = elect(cluster, key, *asked, **more)
    cluster.run_until(lambda: len(elections(cluster)) >= rounds_before)
    assert not lost
    (shown,) = cluster.ask("GET", "/v1/status")[1]["requests"]
    assert (shown["operation"], shown["requestId"]) == ("ElectLeaders", key)
    assert rounds_before * ROUND <= shown["done"] < shown["total"] >= PARTITIONS
    cluster.processes[1].clock.cost_us = 0
    cluster.lead(2)
    there = len(elections(cluster))
    assert rounds_before <= there < 7, "it failed between two rounds"
    status, reply = answered(cluster, lost)
    assert (status, reply["code"]) == (503, "REQUEST_TIMED_OUT")
    first = answered(cluster, elect(cluster, key, *asked, **more))
    assert answered(cluster, elect(cluster, key, *asked, **more)) == first
    assert len(elections(cluster)) > there
    numbers = [number for some in elections(cluster) for number in some]
    assert sorted(numbers) == sorted(set(range(PARTITIONS)) - set(OUT)), "once, each of them"
    assert all(len(some) <= ROUND for some in elections(cluster))
    cluster.assert_equal()
    return first


@pytest.mark.parametrize("rounds_before", [1, 2, 6])
def test_named_partitions_keep_their_answers_through_a_failover(cluster, rounds_before):
    # Two topics take turns, there are strangers, and some partitions are named twice.
    topics = [("t", range(12)), ("nothing", [0]), ("t", [3, *range(12, PARTITIONS), 99]), ("u", [])]
    status, reply = after_a_failover(cluster, rounds_before, topics)
    assert status == 200
    named = [*range(12), 3, *range(12, PARTITIONS)]
    found = [("t", n, UNAVAILABLE if n in OUT else 1) for n in named]
    assert results(reply) == [*found, ("t", 99, UNKNOWN), ("nothing", 0, UNKNOWN)]
    assert (reply["elected"], reply["failed"]) == (len(named) - len(OUT), len(OUT) + 2)


@pytest.mark.parametrize("rounds_before", [1, 2, 6])
def test_an_election_of_all_keeps_its_answers_through_a_failover(cluster, rounds_before):
    status, reply = after_a_failover(cluster, rounds_before)
    assert status == 200
    assert results(reply) == [("t", n, UNAVAILABLE if n in OUT else 1) for n in range(PARTITIONS)]
    assert (reply["elected"], reply["failed"]) == (PARTITIONS - len(OUT), len(OUT))


def test_the_answer_about_all_shows_its_first_partitions_whoever_elected_them(cluster, monkeypatch):
    monkeypatch.setattr(asked_elections, "SHOWN_MAX", 10)
    status, reply = after_a_failover(cluster, 2)
    assert status == 200
    assert [number for _, number, _ in results(reply)] == list(range(10))
    assert (reply["elected"], reply["failed"]) == (PARTITIONS - len(OUT), len(OUT))


def test_a_condition_that_held_is_not_asked_again_by_the_next_leader(cluster):
    expect = {"x-logberg-expect-offset": str(cluster.image.offset)}
    status, reply = after_a_failover(cluster, 2, [("t", range(PARTITIONS))], **expect)
    assert (status, reply["elected"]) == (200, PARTITIONS - len(OUT))


def test_the_rounds_of_an_election_are_paid_for_once(cluster):
    quota = cluster.leader._leader.quota
    before = quota.charged
    topics = [("t", range(PARTITIONS))]
    assert answered(cluster, elect(cluster, request_id(cluster), topics))[0] == 200
    assert quota.charged - before == PARTITIONS


def test_a_long_answer_is_no_reason_to_refuse_the_end_of_an_election(cluster, monkeypatch):
    """A round before has elected leaders: the caller must be told."""
    monkeypatch.setattr(leader_elections, "LOOKS_MAX", 1_000)
    topics = [("t", range(PARTITIONS)), ("nobody-made-it", range(9_000))]
    key = request_id(cluster)
    replies = elect(cluster, key, topics)
    status, reply = answered(cluster, replies)
    assert status == 200
    assert len(replies[0].body) > 512 * 1024
    assert (reply["elected"], reply["failed"]) == (PARTITIONS - len(OUT), len(OUT) + 9_000)
    outcomes = [r for r in cluster.records(cluster.since) if isinstance(r, RequestOutcomeRecord)]
    # What many partitions came to takes little room.
    assert len(outcomes) > 9
    assert sum(len(r.answer) for r in outcomes[:-1]) < 2_000
    cluster.lead(2)
    again = elect(cluster, key, topics)
    answered(cluster, again)
    assert again[0].body == replies[0].body
