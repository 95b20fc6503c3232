"""A request of many answers is written in rounds, and goes on behind them after a failover."""

import json
from typing import Any

import pytest

from controller.leader import proposer
from controller.leader.idempotency import RequestKey, round_key
from controller.managers import deletions, rounds
from metadata.codec import decode_records
from metadata.records import (
    BeginTransactionRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    RequestOutcomeRecord,
)
from metadata.uuids import uuid7, uuid7_time_ms
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.leader.test_changes import body, request_id

TOPICS = 30
ROUND = 4


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(deletions, "ROUND_TOPICS", ROUND)
    monkeypatch.setattr(rounds, "ROUND", ROUND)
    # Each round waits for the commit of the one before it, so a leader can be lost between two.
    monkeypatch.setattr(proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1)
    cluster: Any = Cluster()
    cluster.online(1, 2, 3)
    cluster.names = [f"t-{n}" for n in range(TOPICS)]
    topics = [{"name": n, "numPartitions": 2, "replicationFactor": 2} for n in cluster.names]
    assert cluster.ask("POST", "/v1/topics", {"topics": topics})[0] == 200
    cluster.since = cluster.image.offset
    return cluster


def batches(cluster, operation):
    """Return the records of each batch of an operation since the fixture."""
    return [
        list(decode_records(batch.records))
        for batch in cluster.leader.ledger.batches(cluster.since)
        if batch.header.provenance.operation == operation
    ]


def removed(cluster):
    return [
        [r.topic_id for r in records if isinstance(r, RemoveTopicRecord)]
        for records in batches(cluster, "DeleteTopics")
    ]


def delete(cluster, names, key, **options):
    headers = {"x-logberg-request-id": key}
    return cluster.send("DELETE", "/v1/topics", {"names": names}, headers=headers, **options)


def answered(cluster, replies):
    cluster.run_until(lambda: bool(replies))
    return replies[0].status, json.loads(replies[0].body)


def codes(reply, field="topics"):
    return [(row.get("error") or {}).get("code") for row in reply[field]]


def test_many_topics_are_deleted_in_rounds_and_others_come_in_between(cluster):
    cluster.hold_the_turn()
    gone = delete(cluster, cluster.names, request_id(cluster))
    small = [cluster.send("POST", "/v1/topics", body(f"small-{n}")) for n in range(3)]
    status, reply = answered(cluster, gone)
    cluster.run_until(lambda: all(small))
    assert status == 200
    assert [topic["name"] for topic in reply["topics"]] == cluster.names
    assert codes(reply) == [None] * TOPICS
    rows = removed(cluster)
    assert [len(row) for row in rows] == [ROUND] * (TOPICS // ROUND) + [TOPICS % ROUND]
    assert len({topic_id for row in rows for topic_id in row}) == TOPICS
    assert not any(isinstance(r, BeginTransactionRecord) for r in cluster.records(cluster.since))
    order = [b.header.provenance.operation for b in cluster.leader.ledger.batches(cluster.since)]
    first, last = order.index("DeleteTopics"), len(order) - order[::-1].index("DeleteTopics")
    assert "CreateTopics" in order[first:last]
    cluster.processes[1].clock.cost_us = 0
    cluster.assert_equal()


def test_a_retry_gets_the_answer_of_all_rounds_from_any_leader(cluster):
    key = request_id(cluster)
    first = answered(cluster, delete(cluster, cluster.names, key))
    end = cluster.image.offset
    assert answered(cluster, delete(cluster, cluster.names, key)) == first
    assert cluster.image.offset == end
    cluster.lead(2)
    assert answered(cluster, delete(cluster, cluster.names, key)) == first
    assert len(removed(cluster)) == 8


@pytest.mark.parametrize("rounds_before", [1, 4])
def test_the_next_leader_goes_on_behind_the_last_round(cluster, rounds_before):
    names = ["nothing", *cluster.names, cluster.names[0]]
    key = request_id(cluster)
    cluster.processes[1].clock.cost_us = 2_000
    lost = delete(cluster, names, key)
    cluster.run_until(lambda: len(removed(cluster)) >= rounds_before)
    assert not lost
    (shown,) = cluster.ask("GET", "/v1/status")[1]["requests"]
    assert (shown["operation"], shown["requestId"]) == ("DeleteTopics", key)
    assert rounds_before * ROUND <= shown["done"] < shown["total"] == len(names)
    cluster.processes[1].clock.cost_us = 0
    cluster.lead(2)
    status, reply = answered(cluster, lost)
    assert (status, reply["code"]) == (503, "REQUEST_TIMED_OUT")
    there = len(cluster.image.topics.by_id)
    assert 0 < there < TOPICS
    status, reply = answered(cluster, delete(cluster, names, key))
    assert status == 200
    assert [topic["name"] for topic in reply["topics"]] == names
    expected = ["UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST", *[None] * (TOPICS - 1)]
    assert codes(reply) == [*expected, "INVALID_REQUEST"]
    ids = [topic_id for row in removed(cluster) for topic_id in row]
    assert len(ids) == len(set(ids)) == TOPICS - 1
    assert answered(cluster, delete(cluster, names, key)) == (status, reply)
    cluster.assert_equal()


def test_a_round_of_refusals_is_remembered_too(cluster):
    names = [*(f"nothing-{n}" for n in range(10)), *cluster.names[:3]]
    key = request_id(cluster)
    status, reply = answered(cluster, delete(cluster, names, key))
    assert status == 200
    assert codes(reply) == ["UNKNOWN_TOPIC_OR_PARTITION"] * 10 + [None] * 3
    # These topics appear later. The request has its answer, whoever gives it.
    cluster.create_topic("nothing-0")
    cluster.lead(2)
    assert answered(cluster, delete(cluster, names, key)) == (status, reply)
    assert cluster.image.topics.named("nothing-0") is not None


def test_a_last_round_of_refusals_is_remembered_too(cluster):
    """The request was executed: sent again, it must not delete what was created since."""
    names = [*cluster.names[:ROUND], "nothing-0"]
    key = request_id(cluster)
    first = answered(cluster, delete(cluster, names, key))
    assert codes(first[1]) == [*[None] * ROUND, "UNKNOWN_TOPIC_OR_PARTITION"]
    cluster.create_topic("nothing-0")
    for leader in (1, 2):
        if leader == 2:
            cluster.lead(2)
        assert answered(cluster, delete(cluster, names, key)) == first
    assert cluster.image.topics.named("nothing-0") is not None


def test_a_round_ends_with_the_topic_that_has_very_many_partitions(cluster, monkeypatch):
    monkeypatch.setattr(deletions, "ROUND_TOPICS", 100)
    monkeypatch.setattr(deletions, "ROUND_PARTITIONS", 6)
    cluster.create_topic("large", partitions=50)
    names = [cluster.names[0], "large", *cluster.names[1:8]]
    assert answered(cluster, delete(cluster, names, request_id(cluster)))[0] == 200
    assert [len(row) for row in removed(cluster)] == [2, 3, 3, 1]


def test_a_dry_run_shows_all_rounds_and_writes_nothing(cluster):
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": cluster.names, "dryRun": True})
    assert (status, len(reply["topics"]), len(reply["records"])) == (200, TOPICS, TOPICS)
    assert cluster.image.offset == cluster.since


def test_the_quota_is_paid_once_for_all_rounds(cluster):
    quota = cluster.leader._leader.quota
    before = quota.charged
    names = [*(f"nothing-{n}" for n in range(10)), *cluster.names, "nothing"]
    assert answered(cluster, delete(cluster, names, request_id(cluster)))[0] == 200
    assert quota.charged - before == 2 * TOPICS


def test_a_request_that_is_refused_between_two_rounds_goes_on_when_it_is_sent_again(cluster):
    key = request_id(cluster)
    cluster.shared.nodes[1].room = 3
    status, reply = answered(cluster, delete(cluster, cluster.names, key))
    assert (status, reply["code"]) == (507, "DISK_FULL")
    assert len(cluster.image.topics.by_id) == TOPICS - 3 * ROUND
    cluster.shared.nodes[1].room = None
    status, reply = answered(cluster, delete(cluster, cluster.names, key))
    assert (status, codes(reply)) == (200, [None] * TOPICS)


def test_cancelled_reassignments_are_told_once_by_two_leaders(cluster):
    moves = [{"topic": name, "partition": 0} for name in cluster.names[:12]]
    on = [{**move, "replicas": [1, 2, 3]} for move in moves]
    assert cluster.ask("POST", "/v1/reassignments", {"partitions": on})[0] == 200
    asked = [*moves[:3], {"topic": "nothing", "partition": 0}, *moves[3:]]
    key = request_id(cluster)

    def cancel():
        headers = {"x-logberg-request-id": key}
        return cluster.send("POST", "/v1/reassignments", {"partitions": asked}, headers=headers)

    cluster.since = cluster.image.offset
    cluster.processes[1].clock.cost_us = 2_000
    lost = cancel()
    cluster.run_until(lambda: len(batches(cluster, "AlterPartitionReassignments")) >= 2)
    assert not lost
    cluster.processes[1].clock.cost_us = 0
    cluster.lead(2)
    status, reply = answered(cluster, cancel())
    assert status == 200
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert codes(reply, "partitions") == [None] * 3 + [unknown] + [None] * 9
    written = batches(cluster, "AlterPartitionReassignments")
    changes = [r for records in written for r in records if isinstance(r, PartitionChangeRecord)]
    assert len(changes) == len({r.topic_id for r in changes})
    assert answered(cluster, cancel()) == (status, reply)


def test_a_deletion_on_condition_is_one_change(cluster):
    """A later round could find that its condition no longer holds, with a part done."""
    expect = {"x-logberg-expect-offset": str(cluster.image.offset)}
    change = {"configs": [{"name": "retention.ms", "value": "5"}]}
    assert cluster.ask("PATCH", "/v1/configs/topic/t-29", change)[0] == 200
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": cluster.names}, headers=expect)
    assert reply["code"] == "STALE_EXPECTED_OFFSET"
    assert len(cluster.image.topics.by_id) == TOPICS
    expect = {"x-logberg-expect-offset": str(cluster.image.offset)}
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": cluster.names}, headers=expect)
    assert (status, codes(reply)) == (200, [None] * TOPICS)
    assert [len(row) for row in removed(cluster)] == [TOPICS]


def test_a_condition_that_held_is_not_asked_again_by_the_next_leader(cluster):
    moves = [{"topic": name, "partition": 0, "replicas": [1, 2, 3]} for name in cluster.names]
    key = request_id(cluster)
    expect = {"x-logberg-expect-offset": str(cluster.image.offset), "x-logberg-request-id": key}

    def start():
        return cluster.send("POST", "/v1/reassignments", {"partitions": moves}, headers=expect)

    cluster.processes[1].clock.cost_us = 2_000
    lost = start()
    cluster.run_until(lambda: len(batches(cluster, "AlterPartitionReassignments")) >= 2)
    assert not lost
    cluster.processes[1].clock.cost_us = 0
    cluster.lead(2)
    status, reply = answered(cluster, start())
    assert (status, codes(reply, "partitions")) == (200, [None] * TOPICS)


def test_a_rounds_key_has_the_time_of_its_request_and_differs_from_all_others():
    keys = [RequestKey(uuid7(1_000, number), b"digest") for number in range(3)]
    derived = [round_key(key, number) for key in keys for number in range(40)]
    assert {uuid7_time_ms(key.request_id) for key in derived} == {1_000}
    assert {key.digest for key in derived} == {b"digest"}
    assert len({key.request_id for key in [*keys, *derived]}) == 3 + 120


def test_the_id_of_a_request_in_rounds_is_for_these_topics_only(cluster):
    key = request_id(cluster)
    assert answered(cluster, delete(cluster, cluster.names[:6], key))[0] == 200
    outcomes = [r for r in cluster.records(cluster.since) if isinstance(r, RequestOutcomeRecord)]
    assert len(outcomes) == 2
    status, reply = answered(cluster, delete(cluster, cluster.names[6:], key))
    assert (status, reply["code"]) == (409, "REQUEST_ID_REUSED")
