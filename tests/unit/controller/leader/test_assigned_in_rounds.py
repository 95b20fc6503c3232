"""AssignReplicasToDirs in rounds: sent again to the next leader, it has the same answer.

Nothing is remembered: an answer says only whether the replica lies where its broker says.
"""

import json
from typing import Any

import pytest

from controller.leader import proposer
from controller.managers import rounds
from metadata.codec import decode_records
from metadata.messages.directories import REPLICAS_PER_REQUEST
from metadata.records import PartitionChangeRecord, RequestOutcomeRecord
from metadata.uuids import uuid_text
from tests.unit.controller.cluster import CLUSTER_ID, Broker, Cluster

PARTITIONS = 40
ROUND = 4
FIRST, SECOND, FAILED = b"1" * 16, b"2" * 16, b"x" * 16
PATH = "/v1/brokers/1/directories"


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(rounds, "ROUND", ROUND)
    cluster: Any = Cluster()
    Broker(cluster, 1, log_dirs=(FIRST, SECOND)).bring_online()
    cluster.online(2)
    cluster.assign("t", *[(2, 1)] * PARTITIONS)
    cluster.topic_id = cluster.image.topics.named("t").topic_id
    cluster.since = cluster.image.offset
    return cluster


def body(cluster, count=PARTITIONS):
    directories = [FIRST, SECOND, FIRST, FAILED]
    rows = [
        {
            "topicId": uuid_text(cluster.topic_id),
            "partition": n,
            "directory": uuid_text(directories[n % 4]),
        }
        for n in range(count)
    ]
    epoch = cluster.broker(1).broker_epoch
    return {"clusterId": CLUSTER_ID, "brokerEpoch": epoch, "replicas": rows}


def written(cluster):
    return [
        [r.partition_id for r in decode_records(b.records) if isinstance(r, PartitionChangeRecord)]
        for b in cluster.leader.ledger.batches(cluster.since)
        if b.header.provenance.operation == "AssignReplicasToDirs"
    ]


def codes(reply):
    return [(row.get("error") or {}).get("code") for row in reply["replicas"]]


@pytest.mark.parametrize("rounds_before", [1, 5])
def test_the_next_leader_gives_the_same_answer_and_writes_only_the_rest(
    cluster, monkeypatch, rounds_before
):
    monkeypatch.setattr(proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1)
    count = PARTITIONS + 2
    cluster.processes[1].clock.cost_us = 2_000
    lost = cluster.send("POST", PATH, body(cluster, count))
    cluster.run_until(lambda: len(written(cluster)) >= rounds_before)
    assert not lost
    cluster.processes[1].clock.cost_us = 0
    cluster.lead(2)
    cluster.run_until(lambda: bool(lost))
    assert (lost[0].status, json.loads(lost[0].body)["code"]) == (503, "REQUEST_TIMED_OUT")
    there = sum(map(len, written(cluster)))
    assert rounds_before * ROUND <= there < PARTITIONS
    status, reply = cluster.ask("POST", PATH, body(cluster, count))
    assert status == 200
    assert codes(reply) == [*[None] * PARTITIONS, *["UNKNOWN_TOPIC_OR_PARTITION"] * 2]
    changed = [number for some in written(cluster) for number in some]
    assert sorted(changed) == list(range(PARTITIONS)), "once, each of them"
    end = cluster.image.offset
    assert codes(cluster.ask("POST", PATH, body(cluster, count))[1]) == codes(reply)
    assert cluster.image.offset == end
    assert not any(isinstance(r, RequestOutcomeRecord) for r in cluster.records(cluster.since))
    out = [n for n in range(PARTITIONS) if 1 not in cluster.partition("t", n).isr]
    assert out == list(range(3, PARTITIONS, 4)), "those on the directory that doesn't work"


def test_the_answers_of_all_rounds_are_in_the_order_of_the_request(cluster):
    wanted = body(cluster)
    wanted["replicas"][1]["partition"] = 77
    wanted["replicas"][-2]["partition"] = 78
    _, reply = cluster.ask("POST", PATH, wanted)
    assert [row["partition"] for row in reply["replicas"]] == [
        row["partition"] for row in wanted["replicas"]
    ]
    refused = [n for n, code in enumerate(codes(reply)) if code is not None]
    assert refused == [1, PARTITIONS - 2]
    assert max(map(len, written(cluster))) <= ROUND


def test_a_request_has_so_many_replicas_and_no_more(cluster):
    """The agent divides what it has to say, so that no body is too large to decode in one go."""
    status, reply = cluster.ask("POST", PATH, body(cluster, REPLICAS_PER_REQUEST))
    assert (status, len(reply["replicas"])) == (200, REPLICAS_PER_REQUEST)
    status, reply = cluster.ask("POST", PATH, body(cluster, REPLICAS_PER_REQUEST + 1))
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "length <= 2000" in reply["message"]
