"""DescribeConfigs: whole lists with defaults, the source of each value, and what is refused."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.clients.config_answers import RESOURCES_MAX
from metadata.configs.definitions import DEFINITIONS
from metadata.records import ConfigRecord, ConfigResourceType
from tests.unit.kafka_listener.clients.front import Front, broker, topic

DESCRIBE_CONFIGS = 32
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
BOOLEAN, STRING, INT, LONG, LIST, PASSWORD = 1, 2, 3, 5, 7, 9
OF_TOPIC, OF_BROKER, OF_ALL, STATIC, DEFAULT = 1, 2, 3, 4, 5


@pytest.fixture
def front() -> Front:
    return Front(
        broker(1),
        broker(2),
        topic(1, "orders"),
        ConfigRecord(ConfigResourceType.TOPIC, "orders", "retention.ms", "1000"),
        ConfigRecord(ConfigResourceType.BROKER, "", "log.retention.ms", "2000"),
        ConfigRecord(ConfigResourceType.BROKER, "1", "log.retention.ms", "3000"),
        ConfigRecord(ConfigResourceType.BROKER, "1", "ssl.keystore.password", "secret"),
        ConfigRecord(ConfigResourceType.GROUP, "readers", "consumer.session.timeout.ms", "50000"),
        own={"log.retention.hours": "5", "log.segment.bytes": "1048576"},
    )


def described(front, kind, name, version=4, keys=None, **more):
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}
    said = front.ask(DESCRIBE_CONFIGS, version, {"Resources": [resource], **more})
    (result,) = said["Results"]
    assert (result["ResourceType"], result["ResourceName"]) == (kind, name)
    return result


def configs(result) -> dict:
    assert result["ErrorCode"] == 0, result["ErrorMessage"]
    return {one["Name"]: one for one in result["Configs"]}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "orders"), (BROKER, "1"), (GROUP, "new")])
def test_every_key_that_kafka_shows_is_there(front, version, kind, name):
    shown = {key for key, known in DEFINITIONS[kind].items() if not known.internal}
    found = configs(described(front, kind, name, version))
    assert found.keys() == shown
    assert found


def test_a_value_says_where_it_comes_from(front):
    found = configs(described(front, TOPIC, "orders", IncludeSynonyms=True))
    retention = found["retention.ms"]
    assert (retention["Value"], retention["ConfigSource"]) == ("1000", OF_TOPIC)
    assert (retention["ConfigType"], retention["ReadOnly"]) == (LONG, False)
    assert [(s["Name"], s["Value"], s["Source"]) for s in retention["Synonyms"]] == [
        ("retention.ms", "1000", OF_TOPIC),
        ("log.retention.ms", "3000", OF_BROKER),
        ("log.retention.ms", "2000", OF_ALL),
        ("log.retention.hours", "18000000", STATIC),
        ("retention.ms", "604800000", DEFAULT),
    ]
    segment = found["segment.bytes"]
    assert (segment["Value"], segment["ConfigSource"]) == ("1048576", STATIC)
    policy = found["cleanup.policy"]
    assert (policy["Value"], policy["ConfigSource"], policy["ConfigType"]) == (
        "delete",
        DEFAULT,
        LIST,
    )
    assert found["preallocate"]["ConfigType"] == BOOLEAN


def test_synonyms_and_texts_come_only_if_asked_for(front):
    found = configs(described(front, TOPIC, "orders", IncludeDocumentation=True))
    assert all(one["Synonyms"] == [] for one in found.values())
    assert all(one["Documentation"] is None for one in found.values())


def test_a_secret_is_never_shown(front):
    found = configs(described(front, BROKER, "1", IncludeSynonyms=True))
    secret = found["ssl.keystore.password"]
    assert (secret["Value"], secret["IsSensitive"]) == (None, True)
    assert secret["ConfigType"] == PASSWORD
    assert [s["Value"] for s in secret["Synonyms"]] == [None]


def test_a_brokers_fixed_keys_are_read_only(front):
    found = configs(described(front, BROKER, "2"))
    assert found["log.dirs"]["ReadOnly"]
    assert not found["log.retention.ms"]["ReadOnly"]
    assert (found["log.retention.ms"]["Value"], found["log.retention.ms"]["ConfigSource"]) == (
        "2000",
        OF_ALL,
    )


def test_the_default_of_all_brokers_has_what_is_set(front):
    assert configs(described(front, BROKER, "")).keys() == {"log.retention.ms"}


@pytest.mark.parametrize("keys", [None, []], ids=["none", "empty"])
def test_without_keys_all_are_shown(front, keys):
    assert len(configs(described(front, TOPIC, "orders", keys=keys))) > 25


def test_only_the_keys_that_were_asked_for_are_shown(front):
    found = configs(described(front, TOPIC, "orders", keys=["retention.ms", "no.such.key"]))
    assert found.keys() == {"retention.ms"}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "absent", KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", KafkaCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", KafkaCode.INVALID_REQUEST),
        (BROKER, "one", KafkaCode.INVALID_REQUEST),
        (BROKER, "99999999999999999999", KafkaCode.INVALID_REQUEST),
        (LOGGER, "1", KafkaCode.INVALID_REQUEST),
        (METRICS, "", KafkaCode.INVALID_REQUEST),
        (GROUP, "", KafkaCode.INVALID_REQUEST),
        (3, "x", KafkaCode.INVALID_REQUEST),
    ],
)
def test_a_resource_that_is_not_there_gets_a_sentence(front, kind, name, code):
    result = described(front, kind, name)
    assert (result["ErrorCode"], result["Configs"]) == (code, [])
    assert len(result["ErrorMessage"]) > 10


def test_resources_are_answered_in_their_order(front):
    asked = [(TOPIC, "absent"), (TOPIC, "orders"), (BROKER, "1")]
    fields = [
        {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": None}
        for kind, name in asked
    ]
    said = front.ask(DESCRIBE_CONFIGS, 4, {"Resources": fields})
    assert [(r["ResourceType"], r["ResourceName"]) for r in said["Results"]] == asked
    assert [bool(r["Configs"]) for r in said["Results"]] == [False, True, True]


def test_after_its_lease_an_agent_describes_no_configs(front):
    front.why_not = "this broker is fenced"
    result = described(front, TOPIC, "orders")
    assert result["ErrorCode"] == KafkaCode.BROKER_NOT_AVAILABLE
    assert result["ErrorMessage"] == "this broker is fenced"


def test_a_resource_that_is_named_many_times_is_described_once():
    front = Front(topic(1, "orders"))
    one = {"ResourceType": 2, "ResourceName": "orders", "ConfigurationKeys": None}
    found = front.ask(32, 4, {"Resources": [one] * 1_000})
    assert [result["ResourceName"] for result in found["Results"]] == ["orders"]


def test_more_resources_than_an_answer_should_hold_are_refused():
    groups = [
        {"ResourceType": 32, "ResourceName": f"g{n}", "ConfigurationKeys": None}
        for n in range(RESOURCES_MAX + 1)
    ]
    found = Front().ask(32, 4, {"Resources": groups})
    assert {(one["ErrorCode"], len(one["Configs"])) for one in found["Results"]} == {
        (KafkaCode.INVALID_REQUEST, 0)
    }
