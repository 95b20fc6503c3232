"""ElectLeaders and reassignments, asked with Kafka's bytes."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from tests.unit.controller.cluster import Cluster, keep_alive
from tests.unit.kafka_listener.kafka_kit import KafkaClient, codes

UNKNOWN = KafkaCode.UNKNOWN_TOPIC_OR_PARTITION
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def cluster():
    return Cluster(nodes=1)


@pytest.fixture(autouse=True)
def brokers(cluster):
    brokers = cluster.online(1, 2, 3, 4)
    cluster.assign("t", [1, 2, 3], [2, 3, 1])
    return brokers


@pytest.fixture
def client(cluster):
    return KafkaClient(cluster)


def elect(client, version, topics, kind=PREFERRED):
    fields = {"TopicPartitions": topics, "TimeoutMs": 1000}
    if version >= 1:
        fields["ElectionType"] = kind
    return client.ask(43, version, **fields)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_election_in_every_version(client, version):
    wanted = [
        {"Topic": "t", "Partitions": [0, 7]},
        {"Topic": "missing", "Partitions": [0]},
        {"Topic": "t", "Partitions": []},
    ]
    found = elect(client, version, wanted)
    by_name = {each["Topic"]: each["PartitionResult"] for each in found["ReplicaElectionResults"]}
    assert codes(by_name["missing"]) == [UNKNOWN]
    assert [(each["PartitionId"], each["ErrorCode"]) for each in by_name["t"]] == [
        (0, KafkaCode.ELECTION_NOT_NEEDED),
        (7, UNKNOWN),
    ]


def test_the_preferred_leader_is_elected(cluster, brokers, client):
    """Broker 1 goes and comes back; of all partitions only those that need it are named."""
    one, *others = brokers
    keep_alive(cluster, others, 12.0)
    assert cluster.partition("t", 0).leader == 2
    one.epoch = -1
    one.bring_online()
    key = (cluster.image.topics.named("t").topic_id, 0)
    assert cluster.alter_isr(key, [1, 2, 3])["isr"] == [1, 2, 3]
    found = elect(client, 2, None)
    (topic,) = found["ReplicaElectionResults"]
    assert topic["Topic"] == "t"
    assert codes(topic["PartitionResult"]) == [0]
    assert cluster.partition("t", 0).leader == 1
    assert elect(client, 2, None)["ReplicaElectionResults"] == []


def test_an_election_of_one_partition_is_refused_at_the_partition(client):
    needless = KafkaCode.ELECTION_NOT_NEEDED
    for name, index, code in [("t", 0, needless), ("t", 7, UNKNOWN), ("missing", 0, UNKNOWN)]:
        found = elect(client, 2, [{"Topic": name, "Partitions": [index]}])
        assert found["ErrorCode"] == 0
        (topic,) = found["ReplicaElectionResults"]
        assert (topic["Topic"], codes(topic["PartitionResult"])) == (name, [code])


def test_no_such_election(client):
    assert elect(client, 2, None, kind=7)["ErrorCode"] == KafkaCode.INVALID_REQUEST


def reassign(client, version=0, topics=(), **more):
    return client.ask(45, version, Topics=list(topics), TimeoutMs=1000, **more)


def to(name, *moves):
    partitions = [{"PartitionIndex": index, "Replicas": replicas} for index, replicas in moves]
    return {"Name": name, "Partitions": partitions}


def running(client, topics=None):
    found = client.ask(46, 0, Topics=topics, TimeoutMs=1000)
    assert found["ErrorCode"] == 0
    return {
        (topic["Name"], each["PartitionIndex"]): each
        for topic in found["Topics"]
        for each in topic["Partitions"]
    }


@pytest.mark.parametrize("version", [0, 1])
def test_a_reassignment_is_started_listed_and_cancelled(client, version):
    started = reassign(client, version, [to("t", (0, [2, 3, 4]), (1, [2, 3, 1]))])
    assert started["ErrorCode"] == 0
    (topic,) = started["Responses"]
    assert codes(topic["Partitions"]) == [0, 0]
    found = running(client)
    assert set(found) == {("t", 0)}
    assert found["t", 0]["AddingReplicas"] == [4]
    assert found["t", 0]["RemovingReplicas"] == [1]
    assert set(found["t", 0]["Replicas"]) == {1, 2, 3, 4}
    assert running(client, [{"Name": "t", "PartitionIndexes": [0]}]) == found
    assert running(client, [{"Name": "t", "PartitionIndexes": [1]}]) == {}
    assert running(client, []) == {}
    cancelled = reassign(client, version, [to("t", (0, None))])
    assert codes(cancelled["Responses"][0]["Partitions"]) == [0]
    assert running(client) == {}


REFUSED = [
    (to("t", (0, None)), KafkaCode.NO_REASSIGNMENT_IN_PROGRESS),
    (to("t", (9, [1])), UNKNOWN),
    (to("missing", (0, [1])), UNKNOWN),
    (to("t", (0, [])), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
    (to("t", (0, [1, 1])), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
    (to("t", (0, [1, 99])), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
    (to("t", (0, [1, -1])), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
]


@pytest.mark.parametrize(("move", "code"), REFUSED, ids=str)
def test_each_partition_has_its_own_refusal(client, move, code):
    """Alone, and beside a good one, which is started."""
    (topic,) = reassign(client, 1, [move])["Responses"]
    assert codes(topic["Partitions"]) == [code]
    found = reassign(client, 1, [move, to("t", (1, [2, 3, 4]))])
    assert found["ErrorCode"] == 0
    results = {
        (topic["Name"], each["PartitionIndex"]): each
        for topic in found["Responses"]
        for each in topic["Partitions"]
    }
    first = (move["Name"], move["Partitions"][0]["PartitionIndex"])
    assert results[first]["ErrorCode"] == code
    assert results[first]["ErrorMessage"]
    assert results["t", 1]["ErrorCode"] == 0


def test_the_number_of_replicas_may_be_held(client):
    move = to("t", (0, [1, 2]))
    found = reassign(client, 1, [move], AllowReplicationFactorChange=False)
    code = KafkaCode.INVALID_REPLICATION_FACTOR
    assert codes(found["Responses"][0]["Partitions"]) == [code]
    assert found["AllowReplicationFactorChange"] is False


def test_nothing_to_move(client):
    assert reassign(client)["Responses"] == []
    assert not client.asked
