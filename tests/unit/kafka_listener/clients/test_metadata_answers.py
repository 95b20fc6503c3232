"""Metadata, as clients of each version decode it."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.clients.allowed_operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from metadata.records import (
    BrokerRegistrationChangeRecord,
    FencingChange,
    PartitionChangeRecord,
    RemoveTopicRecord,
)
from tests.unit.kafka_listener.clients.front import (
    CLUSTER_ID,
    Front,
    broker,
    partition,
    topic,
    topic_id,
)

METADATA = 3
ALL_VERSIONS = range(14)


@pytest.fixture
def front() -> Front:
    return Front(
        broker(1, rack="a"),
        broker(2),
        broker(3, fenced=True),
        topic(1, "orders"),
        partition(0, 1, (1, 2), 1),
        partition(1, 1, (2, 3), 3),
        topic(2, "__consumer_offsets"),
        partition(0, 2, (2,), 2),
    )


def all_topics(version: int) -> dict:
    return {"Topics": [] if version == 0 else None}


def named(*names: str) -> dict:
    return {"Topics": [{"Name": name} for name in names]}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_names_live_brokers_topics_and_partitions(front, version):
    said = front.ask(METADATA, version, all_topics(version))
    assert [(b["NodeId"], b["Host"], b["Port"]) for b in said["Brokers"]] == [
        (1, "host-1", 9001),
        (2, "host-2", 9002),
    ]
    assert [b["Rack"] for b in said["Brokers"]] == (["a", None] if version >= 1 else [None] * 2)
    assert said["ControllerId"] == (1 if version >= 1 else -1)
    assert said["ClusterId"] == (CLUSTER_ID if version >= 2 else None)
    assert said["ErrorCode"] == 0
    internal, orders = said["Topics"]
    assert (internal["Name"], orders["Name"]) == ("__consumer_offsets", "orders")
    assert (internal["IsInternal"], orders["IsInternal"]) == (version >= 1, False)
    assert orders["TopicId"] == (topic_id(1) if version >= 10 else bytes(16))
    first = orders["Partitions"][0]
    assert (first["PartitionIndex"], first["LeaderId"], first["ErrorCode"]) == (0, 1, 0)
    assert first["LeaderEpoch"] == (4 if version >= 7 else -1)
    assert (first["ReplicaNodes"], first["IsrNodes"]) == ([1, 2], [1, 2])


@pytest.mark.parametrize(
    ("version", "code", "replicas", "offline"),
    [
        (0, KafkaCode.LEADER_NOT_AVAILABLE, [2], []),
        (1, KafkaCode.LEADER_NOT_AVAILABLE, [2, 3], []),
        (5, KafkaCode.LEADER_NOT_AVAILABLE, [2, 3], [3]),
        (6, KafkaCode.LISTENER_NOT_FOUND, [2, 3], [3]),
        (13, KafkaCode.LISTENER_NOT_FOUND, [2, 3], [3]),
    ],
)
def test_a_partition_of_a_fenced_leader_has_no_leader(front, version, code, replicas, offline):
    said = front.ask(METADATA, version, named("orders"))
    second = said["Topics"][0]["Partitions"][1]
    assert (second["ErrorCode"], second["LeaderId"]) == (code, -1)
    assert second["ReplicaNodes"] == second["IsrNodes"] == replicas
    assert second["OfflineReplicas"] == offline


def test_version_0_says_which_partition_lacks_a_replica():
    front = Front(broker(1), topic(1, "t"), partition(0, 1, (1, 2), 1))
    (only,) = front.ask(METADATA, 0, named("t"))["Topics"][0]["Partitions"]
    assert (only["ErrorCode"], only["LeaderId"]) == (KafkaCode.REPLICA_NOT_AVAILABLE, 1)
    assert only["ReplicaNodes"] == [1]
    (only,) = front.ask(METADATA, 1, named("t"))["Topics"][0]["Partitions"]
    assert (only["ErrorCode"], only["ReplicaNodes"]) == (0, [1, 2])


def test_a_partition_without_a_leader_is_not_available():
    front = Front(broker(1), topic(1, "t"), partition(0, 1, (1,), -1))
    (only,) = front.ask(METADATA, 13, named("t"))["Topics"][0]["Partitions"]
    assert (only["ErrorCode"], only["LeaderId"]) == (KafkaCode.LEADER_NOT_AVAILABLE, -1)


def test_a_replica_in_a_lost_directory_is_offline():
    lost = (bytes(15) + b"\x02", bytes(15) + b"\x09")
    front = Front(broker(1), broker(2), topic(1, "t"), partition(0, 1, (2, 1), 1, directories=lost))
    (only,) = front.ask(METADATA, 13, named("t"))["Topics"][0]["Partitions"]
    assert only["OfflineReplicas"] == [2]


def test_brokers_without_an_endpoint_of_the_clients_listener_are_not_named():
    front = Front(broker(1), broker(2, listener="OTHER"), topic(1, "t"), partition(0, 1, (2,), 2))
    said = front.ask(METADATA, 12, named("t"))
    assert [b["NodeId"] for b in said["Brokers"]] == [1]
    assert said["Topics"][0]["Partitions"][0]["ErrorCode"] == KafkaCode.LISTENER_NOT_FOUND


def test_another_live_broker_takes_changes_when_this_one_is_fenced():
    front = Front(broker(1, fenced=True), broker(2))
    assert front.ask(METADATA, 12, named())["ControllerId"] == 2
    assert Front(broker(1, fenced=True)).ask(METADATA, 12, named())["ControllerId"] == -1


def test_no_topics_are_asked_for_from_version_1_on(front):
    assert front.ask(METADATA, 1, named())["Topics"] == []
    assert len(front.ask(METADATA, 0, named())["Topics"]) == 2


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("absent", KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", KafkaCode.INVALID_TOPIC_EXCEPTION),
        ("..", KafkaCode.INVALID_TOPIC_EXCEPTION),
        ("a b", KafkaCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, KafkaCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_that_is_not_there_is_not_created(front, name, code):
    before = front.image
    asked = {**named(name, "orders"), "AllowAutoTopicCreation": True}
    missing, orders = front.ask(METADATA, 12, asked)["Topics"]
    assert (missing["ErrorCode"], missing["Name"], missing["Partitions"]) == (code, name, [])
    assert (orders["ErrorCode"], len(orders["Partitions"])) == (0, 2)
    assert front.image is before


def test_a_deleted_topic_is_unknown_at_the_next_offset(front):
    assert front.ask(METADATA, 12, named("orders"))["Topics"][0]["ErrorCode"] == 0
    front.replay(RemoveTopicRecord(topic_id(1)))
    gone = front.ask(METADATA, 12, named("orders"))["Topics"][0]
    assert gone["ErrorCode"] == KafkaCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", [None, ""], ids=["no name", "as Java's client"])
def test_topics_are_found_by_id_from_version_12_on(front, name):
    ids = {"Topics": [{"Name": name, "TopicId": topic_id(n)} for n in (1, 9)]}
    found, missing = front.ask(METADATA, 12, ids)["Topics"]
    assert (found["Name"], found["TopicId"], found["ErrorCode"]) == ("orders", topic_id(1), 0)
    assert (missing["Name"], missing["ErrorCode"]) == (None, KafkaCode.UNKNOWN_TOPIC_ID)
    assert missing["TopicId"] == topic_id(9)


def test_a_request_that_names_topics_in_a_wrong_way_is_refused(front):
    by_id = {"Topics": [{"Name": "orders", "TopicId": topic_id(1)}]}
    (refused,) = front.ask(METADATA, 11, by_id)["Topics"]
    assert refused["ErrorCode"] == KafkaCode.INVALID_REQUEST
    (refused,) = front.ask(METADATA, 12, {"Topics": [{"Name": None}]})["Topics"]
    assert refused["ErrorCode"] == KafkaCode.INVALID_REQUEST


def test_a_topic_that_is_asked_for_twice_is_answered_once(front):
    assert len(front.ask(METADATA, 12, named("orders", "orders"))["Topics"]) == 1


def test_what_a_client_may_do_is_said_if_it_asks(front):
    asked = {
        **named("orders"),
        "IncludeClusterAuthorizedOperations": True,
        "IncludeTopicAuthorizedOperations": True,
    }
    said = front.ask(METADATA, 8, asked)
    assert said["ClusterAuthorizedOperations"] == ON_CLUSTER
    assert said["Topics"][0]["TopicAuthorizedOperations"] == ON_TOPIC
    said = front.ask(METADATA, 8, named("orders"))
    assert said["ClusterAuthorizedOperations"] == NOT_ASKED
    assert said["Topics"][0]["TopicAuthorizedOperations"] == NOT_ASKED


# The lease.


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_after_its_lease_an_agent_names_no_broker_and_no_leader(front, version):
    front.why_not = "this broker is fenced"
    said = front.ask(METADATA, version, named("orders"))
    assert said["Brokers"] == []
    assert said["ControllerId"] == -1
    (orders,) = said["Topics"]
    assert (orders["ErrorCode"], orders["Partitions"]) == (KafkaCode.LEADER_NOT_AVAILABLE, [])


def test_a_kept_answer_is_not_given_after_the_lease(front):
    assert front.ask(METADATA, 12, named("orders"))["Brokers"]
    front.why_not = "this broker is fenced"
    assert front.ask(METADATA, 12, named("orders"))["Brokers"] == []
    front.why_not = ""
    assert front.ask(METADATA, 12, named("orders"))["Brokers"]


# What is kept.


def test_an_answer_is_made_once_for_each_image(front):
    front.ask(METADATA, 12, named("orders"))
    body = front.bodies[0]
    front.ask(METADATA, 12, named("orders"))
    assert front.bodies[0] is body
    front.replay(PartitionChangeRecord(0, topic_id(1), leader=2))
    said = front.ask(METADATA, 12, named("orders"))
    assert said["Topics"][0]["Partitions"][0]["LeaderId"] == 2


def test_a_fenced_broker_leaves_the_next_answer(front):
    epoch = front.image.cluster.brokers[2].broker_epoch
    front.ask(METADATA, 12, named("orders"))
    front.replay(BrokerRegistrationChangeRecord(2, epoch, FencingChange.FENCE))
    assert [b["NodeId"] for b in front.ask(METADATA, 12, named())["Brokers"]] == [1]
