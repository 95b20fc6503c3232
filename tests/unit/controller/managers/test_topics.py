"""Topics: each check of a request to create or delete them, and what happens to partitions."""

import pytest

from controller.managers.topics import _assigned
from metadata.buckets import BucketMap
from metadata.errors import LogbergError
from metadata.messages import NewTopic, WantedState
from metadata.messages.topics import ReplicaAssignment
from metadata.records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    RequestOutcomeRecord,
    TopicRecord,
)
from tests.unit.controller.cluster import SESSION_S, Broker, Cluster, keep_alive


@pytest.fixture
def cluster():
    cluster = Cluster(default_partitions=2, default_replication_factor=2)
    cluster.online(1, 2, 3)
    return cluster


def create(cluster, *topics, **more):
    return cluster.ask("POST", "/v1/topics", {"topics": list(topics), **more})


def assigned(name, *rows, **more):
    assignments = [{"partitionIndex": i, "brokerIds": list(r)} for i, r in rows]
    return {"name": name, "assignments": assignments, **more}


def test_a_topic_is_its_record_and_its_partitions_in_one_batch(cluster):
    end = cluster.image.offset
    reply = cluster.create_topic("orders", partitions=6, factor=3)
    topic, *partitions, outcome = cluster.records(end)
    assert isinstance(topic, TopicRecord)
    assert isinstance(outcome, RequestOutcomeRecord)
    assert [p.partition_id for p in partitions] == list(range(6))
    for partition in partitions:
        assert isinstance(partition, PartitionRecord)
        assert partition.isr == partition.replicas
        assert partition.leader == partition.isr[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    leaders = [p.leader for p in partitions]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    created = reply["topics"][0]
    assert (created["numPartitions"], created["replicationFactor"]) == (6, 3)
    assert reply["offset"] == cluster.image.offset == end + 8
    batch = cluster.batches()[-1].header
    assert batch.provenance.principal == "User:alice"
    assert batch.provenance.operation == "CreateTopics"
    cluster.assert_equal()


@pytest.mark.parametrize(
    ("topic", "status", "code"),
    [
        ({"name": "__cluster_metadata"}, 400, "INVALID_REQUEST"),
        ({"name": ""}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "."}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": ".."}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "a" * 250}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "a b"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "ä"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "there.is_one"}, 409, "TOPIC_ALREADY_EXISTS"),
        ({"name": "there_is.one"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "there.is.one"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "c", "configs": {"a": None}}, 400, "INVALID_CONFIG"),
        ({"name": "c", "configs": {"a": "1"}}, 400, "INVALID_CONFIG"),
        (assigned("m", (0, [1]), numPartitions=1), 400, "INVALID_REQUEST"),
        (assigned("m", (0, [1]), replicationFactor=1), 400, "INVALID_REQUEST"),
        (assigned("m", (1, [1])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [1]), (2, [1])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [1]), (0, [2])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [1, 1])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [9])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [1, 2]), (1, [3])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        (assigned("m", (0, [4])), 400, "INVALID_REPLICA_ASSIGNMENT"),
        ({"name": "f", "replicationFactor": 0}, 400, "INVALID_REPLICATION_FACTOR"),
        ({"name": "f", "replicationFactor": -2}, 400, "INVALID_REPLICATION_FACTOR"),
        ({"name": "f", "replicationFactor": 5}, 400, "INVALID_REPLICATION_FACTOR"),
        ({"name": "p", "numPartitions": 0}, 400, "INVALID_PARTITIONS"),
        ({"name": "p", "numPartitions": -2}, 400, "INVALID_PARTITIONS"),
        ({"name": "p", "numPartitions": 2_000_000}, 400, "POLICY_VIOLATION"),
    ],
)
def test_what_is_refused(cluster, topic, status, code):
    cluster.create_topic("there.is_one", factor=1)
    Broker(cluster, 4).register()  # fenced
    end = cluster.image.offset
    answered, reply = create(cluster, topic)
    assert (answered, reply["code"]) == (status, code), reply
    cluster.run(0.1)
    assert cluster.image.offset == end


def test_defaults_are_the_clusters(cluster):
    status, reply = create(cluster, {"name": "d"})
    assert status == 200
    topic = reply["topics"][0]
    assert (topic["numPartitions"], topic["replicationFactor"]) == (2, 2)


def test_without_live_brokers_nothing_is_placed():
    cluster = Cluster()
    assert create(cluster, {"name": "x", "replicationFactor": 1})[1]["code"] == (
        "INVALID_REPLICATION_FACTOR"
    )
    Broker(cluster, 1).register()
    status, reply = create(cluster, {"name": "x", "replicationFactor": 1})
    assert (status, reply["code"]) == (400, "INVALID_REPLICATION_FACTOR")
    assert "fenced" in reply["message"]


def test_topics_of_one_request_are_judged_one_by_one(cluster):
    end = cluster.image.offset
    status, reply = create(
        cluster,
        {"name": "good", "numPartitions": 1},
        {"name": "twice"},
        {"name": "twice"},
        {"name": "go.od"},
        {"name": "go_od"},
        {"name": "bad", "replicationFactor": 9},
    )
    assert status == 200
    codes = [(t["name"], (t["error"] or {}).get("code")) for t in reply["topics"]]
    assert codes == [
        ("good", None),
        ("twice", "INVALID_REQUEST"),
        ("twice", "INVALID_REQUEST"),
        ("go.od", None),
        ("go_od", "INVALID_TOPIC_EXCEPTION"),
        ("bad", "INVALID_REPLICATION_FACTOR"),
    ]
    assert sorted(cluster.image.topics.by_name) == ["go.od", "good"]
    assert len([b for b in cluster.batches() if b.header.base_offset >= end]) == 1


def test_a_manual_assignment_counts_only_live_replicas_in_the_isr(cluster):
    Broker(cluster, 4).register()
    cluster.assign("m", (4, 2, 1), (3, 4, 2))
    assert cluster.partition("m", 0).isr == (2, 1)
    assert cluster.partition("m", 0).leader == 2
    assert cluster.partition("m", 1).isr == (3, 2)


def test_directories_are_the_brokers_only_one_or_unassigned():
    cluster = Cluster()
    cluster.online(1, log_dirs=(b"1" * 16,))
    cluster.online(2, log_dirs=(b"2" * 16, b"3" * 16))
    cluster.assign("m", (1, 2))
    assert cluster.partition("m").directories == (b"1" * 16, bytes(15) + b"\x01")


def test_a_stopping_broker_is_given_nothing(cluster):
    cluster.assign("busy", (1, 2, 3))
    Broker(cluster, 9)
    one = Broker(cluster, 1, incarnation=cluster.broker(1).incarnation_id).register()
    one.fetch(WantedState.STOPPING)
    cluster.run(0.1)
    assert cluster.broker(1).in_controlled_shutdown
    status, reply = create(cluster, {"name": "x", "replicationFactor": 3})
    assert (status, reply["code"]) == (400, "INVALID_REPLICATION_FACTOR")
    cluster.create_topic("y", partitions=10, factor=2)
    topic_id = cluster.image.topics.named("y").topic_id
    assert all(1 not in p.replicas for _, p in cluster.image.topics.partitions_of(topic_id))


def test_racks_are_spread():
    cluster = Cluster()
    for broker_id in range(6):
        cluster.online(broker_id, rack="abc"[broker_id % 3])
    cluster.create_topic("r", partitions=12, factor=3)
    topic_id = cluster.image.topics.named("r").topic_id
    for _, partition in cluster.image.topics.partitions_of(topic_id):
        assert len({b % 3 for b in partition.replicas}) == 3


def test_a_dry_run_answers_with_the_records_and_writes_nothing(cluster):
    end = cluster.image.offset
    status, reply = create(cluster, {"name": "dry", "numPartitions": 2}, dryRun=True)
    assert status == 200
    assert reply["dryRun"] is True
    assert [r["type"] for r in reply["records"]] == ["TOPIC_RECORD"] + ["PARTITION_RECORD"] * 2
    assert reply["records"][0]["data"]["name"] == "dry"
    cluster.run(0.1)
    assert cluster.image.offset == end


# -- delete ----------------------------------------------------------------------------------------


def test_a_deleted_topic_is_gone_with_its_partitions(cluster):
    cluster.create_topic("t", partitions=3)
    end = cluster.image.offset
    status, reply = cluster.ask("DELETE", "/v1/topics/t")
    assert status == 200
    assert reply["topics"][0]["name"] == "t"
    assert isinstance(cluster.records(end)[0], RemoveTopicRecord)
    assert len(cluster.image.topics.partitions) == 0
    status, reply = cluster.ask("DELETE", "/v1/topics/t")
    assert (status, reply["code"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    again = cluster.create_topic("t")
    assert again["topics"][0]["topicId"] != reply
    cluster.assert_equal()


def test_topics_are_deleted_by_name_or_by_id_not_both(cluster):
    topic_id = cluster.create_topic("a")["topics"][0]["topicId"]
    cluster.create_topic("b")
    for body in ({"names": ["b"], "topicIds": [topic_id]}, {}):
        status, reply = cluster.ask("DELETE", "/v1/topics", body)
        assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    status, reply = cluster.ask("DELETE", "/v1/topics", {"topicIds": [topic_id]})
    assert status == 200
    assert reply["topics"][0]["name"] == "a"
    status, reply = cluster.ask("DELETE", "/v1/topics", {"topicIds": [topic_id]})
    assert (status, reply["code"]) == (404, "UNKNOWN_TOPIC_ID")
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": ["b", "nope", "nope"]})
    assert status == 200
    codes = [(t["error"] or {}).get("code") for t in reply["topics"]]
    assert codes == [None, "INVALID_REQUEST", "INVALID_REQUEST"]
    assert len(cluster.image.topics.by_id) == 0


def test_deletion_may_be_disabled():
    cluster = Cluster(topic_deletion=False)
    cluster.online(1)
    cluster.create_topic("t", factor=1)
    status, reply = cluster.ask("DELETE", "/v1/topics/t")
    assert (status, reply["code"]) == (403, "TOPIC_DELETION_DISABLED")


def test_a_dry_run_of_delete(cluster):
    cluster.create_topic("t")
    status, reply = cluster.ask("DELETE", "/v1/topics/t", query={"dryRun": "true"})
    assert status == 200
    assert [r["type"] for r in reply["records"]] == ["REMOVE_TOPIC_RECORD"]
    assert cluster.image.topics.named("t") is not None


# -- leaders and ISR over several events, through the whole controller -----------------------------


def seen(cluster, name="t"):
    p = cluster.partition(name)
    return p.leader, p.isr, p.leader_epoch, p.partition_epoch


def test_worked_cases_a_b_e_f_h_through_the_log():
    cluster = Cluster()
    one, two, three = cluster.online(1, 2, 3)
    cluster.assign("t", (1, 2, 3))
    assert seen(cluster) == (1, (1, 2, 3), 0, 0)
    keep_alive(cluster, [two, three], SESSION_S + 1)
    assert seen(cluster) == (2, (2, 3), 1, 1)  # a
    one.catch_up()
    cluster.run(0.1)
    assert not cluster.broker(1).fenced
    assert seen(cluster) == (2, (2, 3), 1, 1)  # b
    keep_alive(cluster, [one, three], SESSION_S + 1)
    assert seen(cluster) == (3, (3,), 2, 2)  # e
    keep_alive(cluster, [one], SESSION_S + 1)
    assert seen(cluster) == (-1, (3,), 3, 3)  # f
    two.catch_up()
    cluster.run(0.1)
    assert seen(cluster) == (-1, (3,), 3, 3)  # g, without ELR
    three.catch_up()
    cluster.run(0.1)
    assert seen(cluster) == (3, (3,), 4, 4)  # h
    cluster.assert_equal()


def test_an_unclean_election_never_elects_the_broker_that_is_being_fenced():
    cluster = Cluster()
    one, _ = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    cluster.write(ConfigRecord(2, "t", "unclean.leader.election.enable", "true"))
    keep_alive(cluster, [one], SESSION_S + 1)
    assert seen(cluster) == (1, (1,), 0, 1)
    cluster.run(SESSION_S + 1)
    assert seen(cluster)[0] == -1
    two = Broker(cluster, 2, incarnation=cluster.broker(2).incarnation_id).register()
    two.fetch()
    two.fetch()
    cluster.run(0.1)
    assert seen(cluster)[:2] == (2, (2,))
    assert cluster.partition("t").leader_recovery_state == 1


def test_worked_case_j_controlled_shutdown():
    cluster = Cluster()
    one, _, _ = cluster.online(1, 2, 3)
    cluster.assign("t", (1, 2, 3))
    one.fetch(WantedState.STOPPING)
    cluster.run(0.1)
    assert seen(cluster) == (2, (2, 3), 1, 1)
    assert cluster.broker(1).in_controlled_shutdown


def test_a_name_with_many_separators_is_looked_up_once(cluster, monkeypatch):
    """This name has 2^11 other spellings, and there may be 100,000 topics."""
    cluster.create_topic("a_" * 11)
    cluster.write(*(TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(50)))
    looked = []
    plain_get, plain_iter = BucketMap.get, BucketMap.__iter__
    monkeypatch.setattr(
        BucketMap, "get", lambda self, *a: (looked.append(a), plain_get(self, *a))[1]
    )
    monkeypatch.setattr(
        BucketMap, "__iter__", lambda self: (looked.extend(range(len(self))), plain_iter(self))[1]
    )
    topics = cluster.leader._leader.topics
    with pytest.raises(LogbergError, match="would be the same as 'a_a_"):
        topics.check_name(cluster.image, "a." * 11, {})
    assert len(looked) <= 2
    topics.check_name(cluster.image, "b." * 12, {})
    assert len(looked) <= 4


def test_a_long_assignment_is_checked_in_steps(cluster):
    """100,000 rows fit into one request."""
    rows = tuple(
        ReplicaAssignment(partition_index=number, broker_ids=(1, 2)) for number in range(2_000)
    )
    work = _assigned(cluster.image, NewTopic(name="t", assignments=rows))
    assert sum(1 for _ in work) == 2_000 // 64


def test_what_only_the_controller_reads_is_shown_under_kafkas_keys():
    """The node shows its own settings as static configs of the broker with its number."""
    cluster = Cluster(default_partitions=3, default_replication_factor=1, topic_deletion=False)
    cluster.online(1)
    status, reply = cluster.ask("GET", "/v1/configs/broker/1")
    assert status == 200
    shown = {c["name"]: (c["value"], c["source"]) for c in reply["configs"]}
    assert shown["num.partitions"] == ("3", "STATIC_BROKER_CONFIG")
    assert shown["default.replication.factor"] == ("1", "DEFAULT_CONFIG")
    assert shown["delete.topic.enable"] == ("false", "STATIC_BROKER_CONFIG")


def test_a_topic_gets_the_settings_partitions_and_replicas():
    cluster = Cluster(default_partitions=3, default_replication_factor=2)
    cluster.online(1, 2)
    topic = {"name": "t", "numPartitions": -1, "replicationFactor": -1}
    assert cluster.ask("POST", "/v1/topics", {"topics": [topic]})[0] == 200
    found = cluster.image.topics.named("t")
    partitions = cluster.image.topics.partitions_of(found.topic_id)
    assert [len(partition.replicas) for _, partition in partitions] == [2, 2, 2]
