"""CreateTopics, DeleteTopics and CreatePartitions in every version, asked with Kafka's bytes."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.uuids import uuid_text
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient, codes

NO_ID = bytes(16)


@pytest.fixture
def cluster():
    cluster = Cluster(nodes=1)
    cluster.online(1, 2, 3)
    return cluster


@pytest.fixture
def client(cluster):
    return KafkaClient(cluster)


def new(name, partitions=2, factor=3, assignments=(), **configs):
    return {
        "Name": name,
        "NumPartitions": partitions,
        "ReplicationFactor": factor,
        "Assignments": [
            {"PartitionIndex": index, "BrokerIds": list(ids)}
            for index, ids in enumerate(assignments)
        ],
        "Configs": [{"Name": key, "Value": value} for key, value in configs.items()],
    }


def create(client, *topics, version=7, **more):
    return client.ask(19, version, Topics=list(topics), **more)["Topics"]


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_in_every_version(cluster, client, version):
    (topic,) = create(client, new("t"), version=version)
    assert topic["ErrorCode"] == 0
    image = cluster.image.topics.named("t")
    assert cluster.partition("t", 1).replicas
    if version >= 7:
        assert topic["TopicId"] == image.topic_id
    if version >= 5:
        assert (topic["NumPartitions"], topic["ReplicationFactor"]) == (2, 3)


def test_the_answer_shows_the_configs_with_their_sources(client):
    config = {"cleanup.policy": "compact"}
    (topic,) = create(client, new("t", **config))
    shown = {each["Name"]: each for each in topic["Configs"]}
    assert shown["cleanup.policy"]["Value"] == "compact"
    assert shown["cleanup.policy"]["ConfigSource"] == 1
    assert shown["retention.ms"]["ConfigSource"] == 5
    assert len(shown) > 20


def test_provenance_names_the_client(cluster, client):
    create(client, new("t"))
    provenance = cluster.batches()[-1].header.provenance
    assert provenance.principal == "User:alice"
    assert provenance.client_id == "a-client"
    assert provenance.operation == "CreateTopics"
    assert provenance.client_address == "10.0.0.7"


REFUSED = [
    (new("bad name"), KafkaCode.INVALID_TOPIC_EXCEPTION),
    (new(""), KafkaCode.INVALID_TOPIC_EXCEPTION),
    (new("t", partitions=0), KafkaCode.INVALID_PARTITIONS),
    (new("t", factor=4), KafkaCode.INVALID_REPLICATION_FACTOR),
    (new("t", -1, -1, [[1, 1]]), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
    (new("t", -1, -1, [[-7]]), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
    (new("t", -1, -1, [[]]), KafkaCode.INVALID_REPLICA_ASSIGNMENT),
    (new("t", **{"retention.ms": "soon"}), KafkaCode.INVALID_CONFIG),
    (new("t", **{"no.such.key": "1"}), KafkaCode.INVALID_CONFIG),
    (new("t", **{"retention.ms": None}), KafkaCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("topic", "code"), REFUSED, ids=lambda each: str(each)[:40])
def test_each_topic_has_its_own_refusal(cluster, client, topic, code):
    """Alone, and beside a good topic, which is created."""
    (alone,) = create(client, topic)
    assert alone["Name"] == topic["Name"]
    assert alone["ErrorCode"] == code
    assert alone["ErrorMessage"]
    assert codes(create(client, topic, new("good"))) == [code, 0]
    assert cluster.image.topics.named("good")


def test_a_topic_that_exists_or_is_there_twice(cluster, client):
    create(client, new("t"))
    assert codes(create(client, new("t"))) == [KafkaCode.TOPIC_ALREADY_EXISTS]
    twice = create(client, new("a"), new("b"), new("a"))
    assert codes(twice) == [KafkaCode.INVALID_REQUEST, 0, KafkaCode.INVALID_REQUEST]
    assert cluster.image.topics.named("a") is None


def test_nothing_is_asked_for_an_empty_list(cluster, client):
    end = cluster.image.offset
    assert create(client) == []
    assert client.ask(20, 6, Topics=[], TimeoutMs=1)["Responses"] == []
    assert client.ask(37, 3, Topics=[], TimeoutMs=1, ValidateOnly=False)["Results"] == []
    assert cluster.image.offset == end
    assert not client.asked


def test_validate_only_writes_nothing(cluster, client):
    end = cluster.image.offset
    (topic,) = create(client, new("t"), validateOnly=True)
    assert codes([topic]) == [0]
    assert topic["NumPartitions"] == 2
    assert cluster.image.offset == end


def test_a_thousand_topics_in_one_request(cluster, client):
    topics = create(client, *(new(f"t{i}", 1, 1) for i in range(1000)))
    assert codes(topics) == [0] * 1000
    assert len({topic["TopicId"] for topic in topics}) == 1000
    deleted = client.ask(
        20, 6, Topics=[{"TopicId": topic["TopicId"], "Name": None} for topic in topics]
    )["Responses"]
    assert codes(deleted) == [0] * 1000
    assert {each["Name"] for each in deleted} == {f"t{i}" for i in range(1000)}


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_by_name_in_every_version(cluster, client, version):
    create(client, new("a"), new("b"))
    fields = {"TopicNames": ["a", "missing", "b"]}
    if version >= 6:
        fields = {"Topics": [{"Name": name} for name in fields["TopicNames"]]}
    found = client.ask(20, version, **fields, TimeoutMs=1000)["Responses"]
    assert codes(found) == [0, KafkaCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert [each["Name"] for each in found] == ["a", "missing", "b"]
    assert cluster.image.topics.named("a") is None


def test_topics_are_deleted_by_names_and_by_ids_together(cluster, client):
    a, b = (topic["TopicId"] for topic in create(client, new("a"), new("b")))
    wanted = [
        {"Name": None, "TopicId": b},
        {"Name": "a", "TopicId": NO_ID},
        {"Name": None, "TopicId": bytes(15) + b"\7"},
        {"Name": "a", "TopicId": a},
        {"Name": None, "TopicId": NO_ID},
    ]
    found = client.ask(20, 6, Topics=wanted, TimeoutMs=1000)["Responses"]
    unknown, invalid = KafkaCode.UNKNOWN_TOPIC_ID, KafkaCode.INVALID_REQUEST
    assert codes(found) == [0, 0, unknown, invalid, invalid]
    assert [each["Name"] for each in found] == ["b", "a", None, "a", None]
    assert found[1]["TopicId"] == a
    assert not cluster.image.topics.named("a"), uuid_text(a)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_deletion_that_is_switched_off(version):
    cluster = Cluster(nodes=1, topic_deletion=False)
    cluster.online(1)
    client = KafkaClient(cluster)
    create(client, new("t", 1, 1))
    fields = {"Topics": [{"Name": "t"}]} if version >= 6 else {"TopicNames": ["t"]}
    found = client.ask(20, version, **fields, TimeoutMs=1000)["Responses"]
    known = KafkaCode.TOPIC_DELETION_DISABLED if version >= 3 else KafkaCode.INVALID_REQUEST
    assert codes(found) == [known]


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version(cluster, client, version):
    create(client, new("a"), new("b"))
    wanted = [
        {"Name": "a", "Count": 4, "Assignments": None},
        {"Name": "b", "Count": 3, "Assignments": [{"BrokerIds": [3, 1, 2]}]},
        {"Name": "c", "Count": 3, "Assignments": None},
        {"Name": "d", "Count": 1, "Assignments": [{"BrokerIds": []}]},
    ]
    found = client.ask(37, version, Topics=wanted, TimeoutMs=1000, ValidateOnly=False)["Results"]
    unknown = KafkaCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(found) == [0, 0, unknown, unknown]
    assert cluster.partition("a", 3).replicas
    assert cluster.partition("b", 2).replicas == (3, 1, 2)


def test_a_standby_answers_not_controller():
    cluster = Cluster(nodes=3)
    cluster.online(1)
    client = KafkaClient(cluster, node=2)
    not_controller = KafkaCode.NOT_CONTROLLER
    assert codes(create(client, new("t"), new("u"))) == [not_controller, not_controller]
    deleted = client.ask(20, 6, Topics=[{"Name": "t"}], TimeoutMs=1)["Responses"]
    assert codes(deleted) == [not_controller]
    assert deleted[0]["ErrorMessage"]


def test_refusals_have_the_words_that_kafkas_own_tests_look_for(client):
    """Kafka's CreateTopicsRequestTest and AddPartitionsTest compare these sentences."""
    create(client, new("t"))
    (again,) = create(client, new("t"))
    assert again["ErrorCode"] == KafkaCode.TOPIC_ALREADY_EXISTS
    assert again["ErrorMessage"] == "Topic 't' already exists."
    (own,) = create(client, new("__cluster_metadata"))
    assert own["ErrorCode"] == KafkaCode.INVALID_REQUEST
    assert own["ErrorMessage"] == "Creation of internal topic __cluster_metadata is prohibited."
    gap = {**new("gap", -1, -1), "Assignments": [{"PartitionIndex": 1, "BrokerIds": [1]}]}
    (refused,) = create(client, gap)
    assert refused["ErrorCode"] == KafkaCode.INVALID_REPLICA_ASSIGNMENT
    assert "partitions should be a consecutive 0-based integer sequence" in refused["ErrorMessage"]
    more = {"Name": "t", "Count": 4, "Assignments": [{"BrokerIds": [1, 2, 3]}]}
    (refused,) = client.ask(37, 3, Topics=[more])["Results"]
    assert refused["ErrorCode"] == KafkaCode.INVALID_REPLICA_ASSIGNMENT
    assert (
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."
        in refused["ErrorMessage"]
    )
