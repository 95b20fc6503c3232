"""DescribeClientQuotas and AlterClientQuotas, asked with Kafka's bytes."""

import math

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient, codes

INVALID = KafkaCode.INVALID_REQUEST
EXACT, DEFAULT, ANY = range(3)


@pytest.fixture
def client():
    return KafkaClient(Cluster(nodes=1))


def entity(**parts):
    return [
        {"EntityType": kind.replace("_", "-"), "EntityName": name} for kind, name in parts.items()
    ]


def ops(**values):
    return [
        {"Key": key, "Value": value or 0.0, "Remove": value is None}
        for key, value in values.items()
    ]


def alter(client, *entries, version=1, dry=False):
    rows = [{"Entity": who, "Ops": what} for who, what in entries]
    return client.ask(49, version, Entries=rows, ValidateOnly=dry)["Entries"]


def describe(client, *components, strict=False, version=1):
    rows = [
        {"EntityType": kind, "MatchType": match, "Match": name} for kind, match, name in components
    ]
    return client.ask(48, version, Components=rows, Strict=strict)


def shown(response):
    assert response["ErrorCode"] == 0
    return {
        tuple((part["EntityType"], part["EntityName"]) for part in entry["Entity"]): {
            each["Key"]: each["Value"] for each in entry["Values"]
        }
        for entry in response["Entries"]
    }


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_found_and_removed(client, version):
    rate = {"producer_byte_rate": 1024.0}
    altered = alter(
        client,
        (entity(user="bob"), ops(**rate)),
        (entity(user=None), ops(request_percentage=50.0)),
        (entity(user="bob", client_id="app"), ops(consumer_byte_rate=7.0)),
        (entity(ip="10.0.0.1"), ops(connection_creation_rate=3.0)),
        version=version,
    )
    assert codes(altered) == [0] * 4
    bob, default = (("user", "bob"),), (("user", None),)
    everything = shown(describe(client, version=version))
    assert len(everything) == 4
    assert everything[bob] == rate
    assert set(shown(describe(client, ("user", EXACT, "bob"), strict=True))) == {bob}
    assert len(shown(describe(client, ("user", EXACT, "bob")))) == 2
    assert set(shown(describe(client, ("user", DEFAULT, None)))) == {default}
    assert len(shown(describe(client, ("user", ANY, None)))) == 3
    both = describe(client, ("user", EXACT, "bob"), ("client-id", EXACT, "app"))
    assert len(shown(both)) == 1
    assert codes(alter(client, (entity(user="bob"), ops(producer_byte_rate=None)))) == [0]
    assert bob not in shown(describe(client))


REFUSED = [
    ([], ops(producer_byte_rate=1.0)),
    (entity(planet="mars"), ops(producer_byte_rate=1.0)),
    (entity(user="bob", ip="10.0.0.1"), ops(producer_byte_rate=1.0)),
    (entity(user="bob"), ops(no_such_quota=1.0)),
    (entity(user="bob"), ops(producer_byte_rate=-1.0)),
    (entity(user="bob"), ops(producer_byte_rate=math.inf)),
    (entity(user="bob"), ops(producer_byte_rate=math.nan)),
    (entity(user=""), ops(producer_byte_rate=1.0)),
    (entity(user="b") * 2, ops(producer_byte_rate=1.0)),
]


@pytest.mark.parametrize(("who", "what"), REFUSED, ids=str)
def test_each_entity_has_its_own_refusal(client, who, what):
    """Alone, and beside a good one, which is set."""
    (alone,) = alter(client, (who, what))
    assert alone["ErrorCode"] == INVALID
    assert alone["ErrorMessage"]
    assert alone["Entity"] == who
    beside = alter(client, (who, what), (entity(user="good"), ops(producer_byte_rate=1.0)))
    assert codes(beside) == [INVALID, 0]
    assert set(shown(describe(client))) == {(("user", "good"),)}


def test_validate_only_writes_nothing(client):
    assert codes(alter(client, (entity(user="bob"), ops(producer_byte_rate=1.0)), dry=True)) == [0]
    assert shown(describe(client)) == {}
    assert alter(client) == []


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("planet", ANY, None)], KafkaCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], INVALID),
        ([("user", DEFAULT, "bob")], INVALID),
        ([("user", ANY, "bob")], INVALID),
        ([("user", 9, "bob")], INVALID),
        ([("user", ANY, None), ("user", ANY, None)], INVALID),
    ],
)
def test_wrong_filters(client, components, code):
    found = describe(client, *components)
    assert found["ErrorCode"] == code
    assert found["ErrorMessage"]
