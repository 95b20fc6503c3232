"""One request reassigns very many partitions, in rounds; its answer has no limit of the log's."""

import json
from itertools import chain
from typing import Any

import pytest

from controller.managers import sweep
from metadata.codec import decode_records
from metadata.messages.reassignments import REASSIGNMENTS_PER_REQUEST
from metadata.messages.wire import OBJECTS_MAX
from metadata.records import BeginTransactionRecord, PartitionChangeRecord
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.leader.test_changes import body, request_id

PARTITIONS = OBJECTS_MAX + 800
NAME = "a-name-that-makes-the-answer-longer-than-what-one-record-of-the-log-can-hold-" + "x" * 40


@pytest.fixture(scope="module")
def made():
    cluster: Any = Cluster()
    cluster.online(1, 2)
    cluster.create_topic(NAME, partitions=PARTITIONS, factor=2)
    cluster.online(3)
    return cluster


@pytest.fixture
def cluster(made):
    """Each test has all partitions at rest, on brokers 1 and 2."""
    yield made
    made.processes[1].clock.cost_us = 0
    sent(made, wanted(None), request_id(made), wait=True)
    if made.shared.leader != 1:
        made.lead(1)


def wanted(replicas, count=PARTITIONS, **more):
    row = {} if replicas is None else {"replicas": replicas}
    return [{"topic": NAME, "partition": n, **row, **more} for n in range(count)]


def sent(cluster, partitions, key, *, wait=False, **options):
    headers = {"x-logberg-request-id": key, **options.pop("headers", {})}
    message = {"partitions": partitions, **options}
    replies = cluster.send("POST", "/v1/reassignments", message, headers=headers)
    if not wait:
        return replies
    cluster.run_until(lambda: bool(replies))
    return replies[0].status, json.loads(replies[0].body)


def answered(cluster, replies):
    cluster.run_until(lambda: bool(replies))
    return replies[0].status, json.loads(replies[0].body)


def codes(reply):
    return {(row.get("error") or {}).get("code") for row in reply["partitions"]}


def written(cluster, since):
    """Return the numbers of the partitions that each batch of reassignments changed."""
    return [
        [r.partition_id for r in decode_records(b.records) if isinstance(r, PartitionChangeRecord)]
        for b in cluster.leader.ledger.batches(since)
        if b.header.provenance.operation == "AlterPartitionReassignments"
    ]


def under_way(cluster):
    return cluster.ask("GET", "/v1/status")[1]["requests"]


def running(cluster):
    return sum(lacks.moving for lacks in cluster.image.topics.lacks.values())


def test_one_request_is_written_in_rounds_and_others_come_in_between(cluster):
    since, key = cluster.image.offset, request_id(cluster)
    cluster.processes[1].clock.cost_us = 20
    replies = sent(cluster, wanted([1, 2, 3]), key)
    small = [cluster.send("POST", "/v1/topics", body(f"beside-{n}")) for n in range(3)]
    status, reply = answered(cluster, replies)
    cluster.run_until(lambda: all(small))
    assert status == 200
    assert codes(reply) == {None}
    assert [row["partition"] for row in reply["partitions"]] == list(range(PARTITIONS))
    assert len(replies[0].body) > 512 * 1024
    assert replies[0].headers["x-logberg-request-id"] == key
    rows = written(cluster, since)
    assert max(map(len, rows)) == sweep.ROUND
    assert list(chain(*rows)) == list(range(PARTITIONS))
    assert not any(isinstance(r, BeginTransactionRecord) for r in cluster.records(since))
    assert running(cluster) == PARTITIONS
    order = [b.header.provenance.operation for b in cluster.leader.ledger.batches(since)]
    assert "CreateTopics" in order[: len(order) - order[::-1].index("AlterPartitionReassignments")]
    # Sent again, to any leader, it is the same answer, and nothing is written.
    end = cluster.image.offset
    again = sent(cluster, wanted([1, 2, 3]), key)
    assert answered(cluster, again)[0] == 200
    assert again[0].body == replies[0].body
    assert cluster.image.offset == end
    cluster.lead(2)
    again = sent(cluster, wanted([1, 2, 3]), key)
    assert answered(cluster, again)[0] == 200
    assert again[0].body == replies[0].body


def test_two_callers_of_the_same_request_both_get_the_whole_answer(cluster):
    key = request_id(cluster)
    cluster.processes[1].clock.cost_us = 20
    first, second = (sent(cluster, wanted([1, 2, 3]), key) for _ in range(2))
    answered(cluster, first)
    answered(cluster, second)
    assert first[0].body == second[0].body
    assert len(json.loads(second[0].body)["partitions"]) == PARTITIONS


def test_the_next_leader_goes_on_behind_the_last_round(cluster):
    since, key = cluster.image.offset, request_id(cluster)
    moves = wanted([1, 2, 3])
    moves[3]["partition"] = PARTITIONS
    moves[-3]["partition"] = PARTITIONS + 1
    cluster.processes[1].clock.cost_us = 2_000
    lost = sent(cluster, moves, key)
    cluster.run_until(lambda: len(written(cluster, since)) >= 4)
    assert not lost
    (shown,) = under_way(cluster)
    assert (shown["operation"], shown["requestId"]) == ("AlterPartitionReassignments", key)
    assert 4 * sweep.ROUND <= shown["done"] < shown["total"] == PARTITIONS
    cluster.processes[1].clock.cost_us = 0
    cluster.lead(2)
    assert under_way(cluster) == []
    status, reply = answered(cluster, lost)
    assert (status, reply["code"]) == (503, "REQUEST_TIMED_OUT")
    assert 0 < running(cluster) < PARTITIONS - 2
    # A list and a cancellation beside it find what is there.
    listed = cluster.ask("GET", "/v1/reassignments", query={"limit": "1000"})[1]
    assert len(listed["partitions"]) == 1000
    one = cluster.ask(
        "POST", "/v1/reassignments", {"partitions": [{"topic": NAME, "partition": 0}]}
    )
    assert one[0] == 200
    status, reply = sent(cluster, moves, key, wait=True)
    assert status == 200
    errors = {
        n: row["error"]["code"] for n, row in enumerate(reply["partitions"]) if "error" in row
    }
    assert errors == dict.fromkeys((3, PARTITIONS - 3), "UNKNOWN_TOPIC_OR_PARTITION")
    assert running(cluster) == PARTITIONS - 3, "one was cancelled, two don't exist"
    changed = list(chain(*written(cluster, since)))
    assert sorted(changed) == sorted([0, *(set(range(PARTITIONS)) - {3, PARTITIONS - 3})])


def test_all_are_cancelled_in_one_request_and_those_that_do_not_run_are_told(cluster):
    assert sent(cluster, wanted([1, 2, 3], 1_000), request_id(cluster), wait=True)[0] == 200
    status, reply = sent(cluster, wanted(None), request_id(cluster), wait=True)
    assert status == 200
    told = [(row.get("error") or {}).get("code") for row in reply["partitions"]]
    assert told == [None] * 1_000 + ["NO_REASSIGNMENT_IN_PROGRESS"] * (PARTITIONS - 1_000)
    assert running(cluster) == 0


def test_a_dry_run_shows_everything_and_writes_nothing(cluster):
    end = cluster.image.offset
    status, reply = sent(cluster, wanted([1, 2, 3]), request_id(cluster), wait=True, dryRun=True)
    assert (status, reply["dryRun"]) == (200, True)
    assert len(reply["partitions"]) == len(reply["records"]) == PARTITIONS
    assert cluster.image.offset == end


def test_a_condition_is_about_every_partition_of_the_request(cluster):
    """Also about those that only a later round writes."""
    cluster.assign("other", [1, 2])
    offset = cluster.image.offset
    last = {"topic": "other", "partition": 0, "replicas": [2, 1]}
    assert cluster.ask("POST", "/v1/reassignments", {"partitions": [last]})[0] == 200
    end = cluster.image.offset
    status, reply = sent(
        cluster,
        [*wanted([1, 2, 3]), last],
        request_id(cluster),
        wait=True,
        headers={"x-logberg-expect-offset": str(offset)},
    )
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")
    assert cluster.image.offset == end


@pytest.mark.parametrize(
    ("code", "partitions"),
    [
        ("INVALID_REQUEST", [*wanted([1, 2, 3]), {"topic": NAME, "partition": "7"}]),
        ("BODY_TOO_LARGE", [{"topic": "t", "partition": 0}] * (REASSIGNMENTS_PER_REQUEST + 1)),
        ("INVALID_REQUEST", []),
    ],
)
def test_what_is_wrong_with_the_request_is_found_before_the_first_round(cluster, code, partitions):
    end = cluster.image.offset
    status, reply = sent(cluster, partitions, request_id(cluster), wait=True)
    assert (status, reply["code"]) == (413 if code == "BODY_TOO_LARGE" else 400, code)
    assert cluster.image.offset == end


def test_a_partition_that_is_named_twice_is_refused_wherever_it_is_named(cluster):
    moves = [*wanted([1, 2, 3], 1_000), wanted([2, 1, 3], 1)[0]]
    status, reply = sent(cluster, moves, request_id(cluster), wait=True)
    assert status == 200
    told = [(row.get("error") or {}).get("code") for row in reply["partitions"]]
    assert told == ["INVALID_REQUEST", *[None] * 999, "INVALID_REQUEST"]
