"""IncrementalAlterConfigs and AlterConfigs, asked with Kafka's bytes."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.records import ConfigResourceType
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient, codes

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID = KafkaCode.INVALID_REQUEST


@pytest.fixture
def cluster():
    cluster = Cluster(nodes=1)
    cluster.online(1)
    cluster.create_topic("a", factor=1)
    cluster.create_topic("b", factor=1)
    return cluster


@pytest.fixture
def client(cluster):
    return KafkaClient(cluster)


def change(kind, name, *operations):
    return {
        "ResourceType": kind,
        "ResourceName": name,
        "Configs": [
            {"Name": key, "ConfigOperation": operation, "Value": value}
            for key, operation, value in operations
        ],
    }


def alter(client, *resources, version=1, dry=False):
    return client.ask(44, version, Resources=list(resources), ValidateOnly=dry)["Responses"]


def replace(client, kind, name, version=2, dry=False, **configs):
    resource = {
        "ResourceType": kind,
        "ResourceName": name,
        "Configs": [{"Name": key, "Value": value} for key, value in configs.items()],
    }
    return client.ask(33, version, Resources=[resource], ValidateOnly=dry)["Responses"]


def own(cluster, kind, name):
    return dict(cluster.image.configs.resources.get((int(ConfigResourceType(kind)), name), {}))


@pytest.mark.parametrize("version", [0, 1])
def test_each_operation_in_every_version(cluster, client, version):
    key = "cleanup.policy"
    steps = [
        ((key, SET, "delete"), {key: "delete"}),
        ((key, APPEND, "compact"), {key: "delete,compact"}),
        ((key, SUBTRACT, "delete"), {key: "compact"}),
        ((key, DELETE, None), {}),
    ]
    for operation, expected in steps:
        assert codes(alter(client, change(TOPIC, "a", operation), version=version)) == [0]
        assert own(cluster, TOPIC, "a") == expected


def test_the_default_of_all_brokers_and_one_broker(cluster, client):
    changed = alter(
        client,
        change(BROKER, "", ("log.cleaner.threads", SET, "2")),
        change(BROKER, "1", ("log.cleaner.threads", SET, "3")),
    )
    assert codes(changed) == [0, 0]
    assert [each["ResourceName"] for each in changed] == ["", "1"]
    assert own(cluster, BROKER, "") == {"log.cleaner.threads": "2"}
    assert own(cluster, BROKER, "1") == {"log.cleaner.threads": "3"}


REFUSED = [
    (change(TOPIC, "missing", ("retention.ms", SET, "1")), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    (change(TOPIC, "a", ("no.such.key", SET, "1")), KafkaCode.INVALID_CONFIG),
    (change(TOPIC, "a", ("retention.ms", APPEND, "1")), KafkaCode.INVALID_CONFIG),
    (change(TOPIC, "a", ("retention.ms", SET, None)), INVALID),
    (change(TOPIC, "a", ("retention.ms", 9, "1")), INVALID),
    (change(TOPIC, "a", ("retention.ms", -1, "1")), INVALID),
    (change(TOPIC, "a", ("", SET, "1")), INVALID),
    (change(TOPIC, "a", ("k" * 1001, SET, "1")), INVALID),
    (change(TOPIC, "a", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")), INVALID),
    (change(TOPIC, "", ("retention.ms", SET, "1")), INVALID),
    (change(BROKER, "one", ("log.cleaner.threads", SET, "1")), INVALID),
    (change(LOGGER, "1", ("kafka", SET, "DEBUG")), INVALID),
    (change(0, "a", ("retention.ms", SET, "1")), INVALID),
    (change(-3, "a", ("retention.ms", SET, "1")), INVALID),
]


@pytest.mark.parametrize(("resource", "code"), REFUSED, ids=lambda each: str(each)[:60])
def test_each_resource_has_its_own_refusal(cluster, client, resource, code):
    """Alone, and beside a good one, which is changed."""
    (alone,) = alter(client, resource)
    assert alone["ErrorCode"] == code
    assert alone["ErrorMessage"]
    assert alone["ResourceName"] == resource["ResourceName"]
    good = change(TOPIC, "b", ("retention.ms", SET, "7"))
    assert codes(alter(client, resource, good)) == [code, 0]
    assert own(cluster, TOPIC, "b") == {"retention.ms": "7"}


def test_a_resource_that_is_there_twice(cluster, client):
    resource = change(TOPIC, "a", ("retention.ms", SET, "7"))
    assert codes(alter(client, resource, resource)) == [INVALID, INVALID]
    assert codes(replace_all(client, [TOPIC, "a"], [TOPIC, "a"])) == [INVALID, INVALID]
    assert own(cluster, TOPIC, "a") == {}


def replace_all(client, *resources):
    rows = [{"ResourceType": kind, "ResourceName": name, "Configs": []} for kind, name in resources]
    return client.ask(33, 2, Resources=rows, ValidateOnly=False)["Responses"]


def test_nothing_to_do(cluster, client):
    end = cluster.image.offset
    assert alter(client) == []
    assert codes(alter(client, change(TOPIC, "a"))) == [0]
    assert codes(replace(client, TOPIC, "a")) == [0]
    assert cluster.image.offset == end


def test_validate_only_writes_nothing(cluster, client):
    end = cluster.image.offset
    good = change(TOPIC, "a", ("retention.ms", SET, "7"))
    bad = change(TOPIC, "b", ("retention.ms", SET, "x"))
    assert codes(alter(client, good, bad, dry=True)) == [0, KafkaCode.INVALID_CONFIG]
    assert codes(replace(client, TOPIC, "a", dry=True, **{"retention.ms": "7"})) == [0]
    assert cluster.image.offset == end


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_replacement_deletes_what_it_does_not_name(cluster, client, version):
    alter(client, change(TOPIC, "a", ("retention.ms", SET, "7"), ("segment.ms", SET, "9")))
    wanted = {"retention.ms": "8", "cleanup.policy": "compact"}
    assert codes(replace(client, TOPIC, "a", version, **wanted)) == [0]
    assert own(cluster, TOPIC, "a") == wanted
    assert codes(replace(client, TOPIC, "a", version)) == [0]
    assert own(cluster, TOPIC, "a") == {}


def test_a_replacement_of_broker_configs(cluster, client):
    for name in ("", "1"):
        assert codes(replace(client, BROKER, name, **{"log.cleaner.threads": "2"})) == [0]
        assert own(cluster, BROKER, name) == {"log.cleaner.threads": "2"}
    assert codes(replace(client, BROKER, "")) == [0]
    assert own(cluster, BROKER, "") == {}
    assert own(cluster, BROKER, "1") == {"log.cleaner.threads": "2"}


def test_a_replacement_that_meets_another_change_is_decided_anew(cluster, client):
    """Somebody sets a key between the read and the change: it is gone afterwards, too."""
    handle, waiting = client._handle, ["segment.ms"]

    def between(request, on_reply):
        if request.method == "PATCH" and waiting:
            key = waiting.pop()
            body = {"configs": [{"name": key, "value": "9"}]}
            cluster.send("PATCH", "/v1/configs/topic/a", body)
        handle(request, on_reply)

    client.handlers = client.handlers_of(between)
    assert codes(replace(client, TOPIC, "a", **{"retention.ms": "8"})) == [0]
    assert not waiting
    assert own(cluster, TOPIC, "a") == {"retention.ms": "8"}


def test_a_replacement_gives_up_on_a_resource_that_never_rests(cluster, client):
    handle, values = client._handle, iter(range(1, 100))

    def between(request, on_reply):
        if request.method == "PATCH":
            body = {"configs": [{"name": "segment.ms", "value": str(next(values))}]}
            cluster.send("PATCH", "/v1/configs/topic/a", body)
        handle(request, on_reply)

    client.handlers = client.handlers_of(between)
    (result,) = replace(client, TOPIC, "a", **{"retention.ms": "8"})
    assert result["ErrorCode"] == KafkaCode.REQUEST_TIMED_OUT
    assert "retention.ms" not in own(cluster, TOPIC, "a")


REPLACEMENTS_REFUSED = [
    (TOPIC, "missing", {"retention.ms": "1"}, KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    (TOPIC, "a", {"retention.ms": None}, INVALID),
    (TOPIC, "a", {"retention.ms": "x"}, KafkaCode.INVALID_CONFIG),
    (TOPIC, "../a b", {}, KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    (LOGGER, "1", {}, INVALID),
]


@pytest.mark.parametrize(("kind", "name", "configs", "code"), REPLACEMENTS_REFUSED)
def test_replacements_that_are_refused(client, kind, name, configs, code):
    (result,) = replace(client, kind, name, **configs)
    assert result["ErrorCode"] == code
    assert result["ErrorMessage"]


def test_a_thousand_replacements_in_one_request(client):
    """Each is a read of its own; they follow one another without going deeper."""
    found = replace_all(client, *([TOPIC, f"missing{i}"] for i in range(1000)))
    assert codes(found) == [KafkaCode.UNKNOWN_TOPIC_OR_PARTITION] * 1000


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("streams.num.standby.replicas", "3", "less than or equal to group.streams.max.standby."),
        (
            "consumer.session.timeout.ms",
            "1",
            "greater than or equal to group.consumer.min.session.",
        ),
        ("consumer.session.timeout.ms", "999999999", "less than or equal to group.consumer.max."),
        (
            "streams.task.offset.interval.ms",
            "1",
            "greater than or equal to group.streams.min.task.",
        ),
    ],
)
def test_a_groups_limit_is_told_in_kafkas_words(client, key, value, said):
    """Kafka's ConfigCommandIntegrationTest looks for them: administrators' scripts may, too."""
    [result] = alter(client, change(32, "g", (key, SET, value)))
    assert result["ErrorCode"] == KafkaCode.INVALID_CONFIG
    assert f"{key} must be {said}" in result["ErrorMessage"]
