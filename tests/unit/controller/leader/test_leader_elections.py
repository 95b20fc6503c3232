"""Elections of many partitions: in rounds by request, in passes by the leader itself."""

from typing import Any

import msgspec
import pytest

from controller.leader import periodic_elections
from controller.managers import asked_elections, leader_elections
from metadata.codec import decode_records
from metadata.messages import ElectionType, ElectLeadersRequest, WantedState
from metadata.records import PartitionChangeRecord
from metadata.uuids import uuid7, uuid_text
from tests.unit.controller.cluster import Cluster, keep_alive
from tests.unit.controller.counted import Counted

PARTITIONS = 20
PATH = "/v1/partitions/elect"


def made(partitions=PARTITIONS, **config):
    cluster: Any = Cluster(nodes=1, **config)
    cluster.brokers = cluster.online(1, 2)
    cluster.assign("t", *[(1, 2)] * partitions)
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


@pytest.mark.parametrize("move", [0, 2], ids=["none needs it", "all need it"])
@pytest.mark.parametrize(
    "wanted",
    [
        lambda count: None,
        lambda count: [{"topic": "t", "partitions": list(range(count))}],
        lambda count: [{"topic": "t", "partitions": list(range(count))[::-1]}],
        lambda count: [{"topic": f"unknown-{n}", "partitions": [0]} for n in range(count)],
    ],
    ids=["all", "one topic", "from the end", "many topics"],
)
def test_no_step_of_a_dry_run_grows_with_the_partitions(monkeypatch, wanted, move):
    """A dry run has one round. So its list, its records and its answer may be long."""
    cluster = made(partitions=2_000)
    counted = Counted(monkeypatch)

    def steps(count):
        """Return the most operations of a step, and how many steps there were."""
        if move:
            move_leaders(cluster, leader=move, count=count)
        body = {"electionType": "PREFERRED", "topicPartitions": wanted(count), "dryRun": True}
        request = msgspec.convert(body, ElectLeadersRequest)
        work = cluster.leader._leader.elections.elect(request).decide(cluster.image)
        found, going_on = [], True
        while going_on:
            with counted:
                going_on = next(work, counted) is None
            found.append(counted.count)
        return max(found), len(found)

    (few, short), (many, long) = steps(500), steps(2_000)
    assert many <= 1.2 * few
    assert long > 3 * short or (wanted(1) is None and not move)


def test_an_answer_of_many_rounds_is_in_the_order_of_the_request(monkeypatch):
    """Also where the request names a topic or a partition twice."""
    monkeypatch.setattr(leader_elections, "ROUND", 2)
    cluster = made()
    move_leaders(cluster, count=6)
    asked = [("t", [5, 1, 5]), ("unknown", [0]), ("t", [9, 0, 1, 4]), ("other", [7, 7]), ("t", [2])]
    body = {
        "electionType": "PREFERRED",
        "topicPartitions": [{"topic": name, "partitions": numbers} for name, numbers in asked],
    }
    _, reply = cluster.ask("POST", PATH, body)
    assert rounds(cluster, "ElectLeaders") == [2, 2, 1]
    found = {
        topic["topic"]: [
            (row["partitionId"], row["error"]["code"] if row.get("error") else row["leaderId"])
            for row in topic["partitionResult"]
        ]
        for topic in reply["replicaElectionResults"]
    }
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert found == {
        "t": [(5, 1), (1, 1), (5, 1), (9, "ELECTION_NOT_NEEDED"), (0, 1), (1, 1), (4, 1), (2, 1)],
        "unknown": [(0, unknown)],
        "other": [(7, unknown)] * 2,
    }
    assert (reply["elected"], reply["failed"]) == (7, 4)


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
