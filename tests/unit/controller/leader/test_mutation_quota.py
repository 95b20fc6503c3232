"""A change of too many partitions is refused or delayed before anything is decided."""

import pytest

from controller.managers import assignments
from metadata.messages.topics import CreateTopicsRequest, NewTopic
from metadata.records import PartitionRecord, TopicRecord
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster


@pytest.fixture
def cluster():
    cluster = Cluster(partition_mutations_per_s=10, partition_mutations_burst=100)
    cluster.online(1)
    return cluster


def create(cluster, name, partitions, **options):
    topic = {"name": name, "numPartitions": partitions, "replicationFactor": 1}
    return cluster.ask("POST", "/v1/topics", {"topics": [topic]} | options)


def left(cluster):
    _, text = cluster.ask("GET", "/metrics")
    lines = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
    return float(lines["logberg_partition_mutations_left"])


def test_a_topic_of_a_million_partitions_is_refused_by_default_and_nothing_is_placed(monkeypatch):
    cluster = Cluster()
    cluster.online(1)
    monkeypatch.setattr(assignments, "place", lambda *_: pytest.fail("a replica was placed"))
    end = cluster.leader.ledger.log_end
    for dry_run in (False, True):
        status, reply = create(cluster, "huge", 1_000_000, dryRun=dry_run)
        assert (status, reply["code"]) == (400, "POLICY_VIOLATION")
        assert "200000" in reply["message"]
        assert "partitions_per_request_max" in reply["message"]
    assert cluster.leader.ledger.log_end == end


def test_a_hundred_thousand_partitions_pass_by_default_and_then_again():
    parts = Cluster(nodes=1).leader._leader
    manager, quota = parts.topics, parts.quota
    for _ in range(2):
        topic = NewTopic(name="t", num_partitions=100_000, replication_factor=3)
        quota.charge(manager.creates(CreateTopicsRequest(topics=(topic,))), 1)


def test_many_topics_of_one_request_share_the_limit():
    cluster = Cluster(partitions_per_request_max=5)
    cluster.online(1)
    asked = [{"name": f"t{n}", "numPartitions": 2, "replicationFactor": 1} for n in range(3)] + [
        {
            "name": "assigned",
            "assignments": [{"partitionIndex": i, "brokerIds": [1]} for i in (0, 1)],
        }
    ]
    status, reply = cluster.ask("POST", "/v1/topics", {"topics": asked})
    assert status == 200
    codes = [topic["error"] and topic["error"]["code"] for topic in reply["topics"]]
    assert codes == [None, None, "POLICY_VIOLATION", "POLICY_VIOLATION"]


def test_one_change_may_overdraw_and_the_next_one_is_told_when_to_come_back(cluster):
    assert create(cluster, "first", 100)[0] == 200
    assert create(cluster, "overdraws", 50)[0] == 200
    replies = cluster.send(
        "POST",
        "/v1/topics",
        {"topics": [{"name": "waits", "numPartitions": 1, "replicationFactor": 1}]},
    )
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status == 429
    status, reply = create(cluster, "waits", 1)
    assert (status, reply["code"], reply["retriable"]) == (429, "THROTTLED", True)
    assert 4_500 <= reply["retryAfterMs"] <= 5_000
    assert replies[0].headers["retry-after"] == "5"
    cluster.run((reply["retryAfterMs"] - 100) / 1000)
    assert create(cluster, "waits", 1)[0] == 429
    cluster.run(0.1)
    assert create(cluster, "waits", 1)[0] == 200


def test_deleted_partitions_and_those_of_a_broker_that_is_forgotten_count(cluster):
    create(cluster, "t", 30)
    before = left(cluster)
    cluster.ask("DELETE", "/v1/topics/t")
    assert before - left(cluster) == pytest.approx(30, abs=2)
    create(cluster, "u", 30)
    cluster.run(9.5)
    before = left(cluster)
    assert cluster.ask("DELETE", "/v1/brokers/1", query={"force": "true"})[0] == 200
    assert before - left(cluster) == pytest.approx(30, abs=2)


def test_what_is_refused_later_and_what_is_only_shown_costs_nothing(cluster):
    create(cluster, "there", 1)
    cluster.run(1.0)
    assert create(cluster, "there", 50)[1]["code"] == "TOPIC_ALREADY_EXISTS"
    status, shown = create(cluster, "shown", 50, dryRun=True)
    assert status == 200
    assert len(shown["records"]) == 51
    assert left(cluster) == 100


def test_an_answer_that_is_remembered_costs_nothing(cluster):
    headers = {"x-logberg-request-id": ""}
    body = {"topics": [{"name": "t", "numPartitions": 60, "replicationFactor": 1}]}
    _, reply = cluster.ask("POST", "/v1/topics", body)
    headers["x-logberg-request-id"] = reply["requestId"]
    before = left(cluster)
    status, again = cluster.ask("POST", "/v1/topics", body, headers=headers)
    assert (status, again["offset"]) == (200, reply["offset"])
    assert left(cluster) >= before


def test_a_new_leader_begins_with_a_full_bucket(cluster):
    create(cluster, "first", 100)
    create(cluster, "overdraws", 50)
    assert create(cluster, "waits", 1)[0] == 429
    cluster.lead(2)
    cluster.lead(1)
    assert create(cluster, "waits", 1)[0] == 200


def test_a_topic_that_is_larger_than_the_limit_can_still_be_deleted():
    cluster = Cluster(partitions_per_request_max=5)
    cluster.online(1)
    for number in (1, 2):
        topic_id = bytes([number]) * 16
        cluster.write(
            TopicRecord(f"old-{number}", topic_id),
            *(PartitionRecord(i, topic_id, (1,), (1,), (), (), 1, 0, 0) for i in range(8)),
        )
    names = ["old-1", "old-2"]
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": names})
    assert (status, reply["code"]) == (400, "POLICY_VIOLATION")
    for name in names:
        assert cluster.ask("DELETE", f"/v1/topics/{name}")[0] == 200


def test_no_rate_means_no_quota():
    cluster = Cluster(partition_mutations_per_s=0, partition_mutations_burst=1)
    cluster.online(1)
    for number in range(3):
        assert create(cluster, f"t{number}", 10)[0] == 200


def limit(cluster, entity, rate):
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    operation = {"key": "controller_mutation_rate", "value": rate}
    body = {"entries": [{"entity": parts, "operations": [operation]}]}
    status, reply = cluster.ask("POST", "/v1/quotas", body)
    assert (status, reply["entries"][0]["error"]) == (200, None)


def as_client(principal, client_id=""):
    headers = {"x-logberg-client-id": client_id} if client_id else {}
    return {"caller": Caller(principal, "token", "10.0.0.1"), "headers": headers}


def make(cluster, name, partitions, principal, client_id=""):
    topic = {"name": name, "numPartitions": partitions, "replicationFactor": 1}
    return cluster.ask("POST", "/v1/topics", {"topics": [topic]}, **as_client(principal, client_id))


def test_a_users_quota_throttles_the_user_and_says_how_long():
    """KIP-599: the bucket saves up 11 seconds, and one change may overdraw it."""
    cluster = Cluster()
    cluster.online(1)
    limit(cluster, [("user", "al")], 2.0)
    assert make(cluster, "a", 30, "User:al")[0] == 200
    status, reply = make(cluster, "b", 1, "User:al")
    assert (status, reply["code"], reply["retriable"]) == (429, "THROTTLED", True)
    assert 3_500 <= reply["retryAfterMs"] <= 4_000
    assert "user 'al'" in reply["message"]
    assert make(cluster, "b", 1, "User:bob")[0] == 200
    cluster.run(reply["retryAfterMs"] / 1000)
    assert make(cluster, "c", 1, "User:al")[0] == 200


def test_a_default_quota_gives_each_client_a_bucket_of_its_own():
    cluster = Cluster()
    cluster.online(1)
    limit(cluster, [("user", None), ("client-id", None)], 1.0)
    assert make(cluster, "a", 12, "User:al", "x")[0] == 200
    assert make(cluster, "b", 1, "User:al", "x")[0] == 429
    assert make(cluster, "c", 1, "User:al", "y")[0] == 200
    assert make(cluster, "d", 1, "User:bob", "x")[0] == 200


def test_a_change_that_the_cluster_refuses_costs_the_client_nothing(cluster):
    limit(cluster, [("user", "al")], 10.0)
    assert make(cluster, "a", 100, "User:other")[0] == 200
    assert make(cluster, "b", 50, "User:other")[0] == 200
    bucket = cluster.leader._leader.client_quotas
    for n in range(30):
        assert make(cluster, f"t{n}", 10, "User:al")[0] == 429
    (own,) = bucket._buckets.values()
    assert own.tokens == own.burst
    assert bucket.refused == 0


def test_a_change_that_is_refused_for_itself_costs_the_client_nothing(cluster):
    limit(cluster, [("user", "al")], 1.0)
    for _ in range(5):
        assert make(cluster, "bad name", 10, "User:al")[0] == 400
    (own,) = cluster.leader._leader.client_quotas._buckets.values()
    assert own.tokens == own.burst


def test_another_leader_begins_with_full_buckets():
    cluster = Cluster()
    cluster.online(1)
    limit(cluster, [("user", "al")], 1.0)
    assert make(cluster, "a", 30, "User:al")[0] == 200
    assert make(cluster, "b", 1, "User:al")[0] == 429
    cluster.lead(2)
    assert make(cluster, "b", 1, "User:al")[0] == 200


def test_a_client_that_pays_twice_for_one_change_is_not_known(cluster):
    """A retry with the same request id is the same change, and costs nothing more."""
    limit(cluster, [("user", "al")], 10.0)
    request_id = uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 1))
    topic = {"name": "a", "numPartitions": 50, "replicationFactor": 1}
    for _ in range(4):
        caller = {"caller": Caller("User:al", "token", "10.0.0.1")}
        status, _ = cluster.ask(
            "POST",
            "/v1/topics",
            {"topics": [topic]},
            headers={"x-logberg-request-id": request_id},
            **caller,
        )
        assert status == 200
    (own,) = cluster.leader._leader.client_quotas._buckets.values()
    assert own.tokens >= own.burst - 50
