"""UpdateFeatures, asked with Kafka's bytes."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.messages import SupportedFeature
from tests.unit.controller.cluster import DECLARED, Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient

ELR = "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.fixture
def cluster():
    cluster = Cluster(nodes=1)
    cluster.online(1)
    return cluster


@pytest.fixture
def client(cluster):
    return KafkaClient(cluster)


def update(client, version, *levels, kind=UPGRADE, dry=False):
    rows = [{"Feature": name, "MaxVersionLevel": level} for name, level in levels]
    fields = {"FeatureUpdates": rows}
    if version >= 1:
        fields["ValidateOnly"] = dry
        for row in rows:
            row["UpgradeType"] = kind
    elif kind != UPGRADE:
        for row in rows:
            row["AllowDowngrade"] = True
    return client.ask(57, version, **fields)


def level(cluster, name):
    return cluster.image.features.levels.get(name, 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_level_is_raised_and_lowered_in_every_version(cluster, client, version):
    raised = update(client, version, (ELR, 1))
    assert raised["ErrorCode"] == 0
    assert level(cluster, ELR) == 1
    assert update(client, version, (ELR, 0), kind=SAFE)["ErrorCode"] == 0
    assert level(cluster, ELR) == 0
    if version < 2:
        (named,) = raised["Results"]
        assert (named["Feature"], named["ErrorCode"]) == (ELR, 0)


REFUSED = [
    ("no.such.feature", 1, UPGRADE),
    ("metadata.version", 999, UPGRADE),
    ("metadata.version", -1, UPGRADE),
    (ELR, 0, UNSAFE),
    (ELR, 1, 0),
    ("", 1, UPGRADE),
]


@pytest.mark.parametrize(("name", "wanted", "kind"), REFUSED)
def test_an_update_that_is_refused_is_an_error_at_the_top(cluster, client, name, wanted, kind):
    end = cluster.image.offset
    found = update(client, 2, (name, wanted), kind=kind)
    assert found["ErrorCode"] in (KafkaCode.INVALID_UPDATE_VERSION, KafkaCode.INVALID_REQUEST)
    assert found["ErrorMessage"]
    assert cluster.image.offset == end


def test_what_concerns_kafkas_brokers_only_is_asked_of_brokers_only(cluster, client):
    """Broker 1 is an agent, which has no such feature; afterwards only one of Kafka's is there."""
    refused = update(client, 2, ("group.version", 1))
    assert refused["ErrorCode"] == KafkaCode.INVALID_UPDATE_VERSION
    assert "broker 1" in refused["ErrorMessage"]
    assert update(client, 2, ("group.version", 9))["ErrorCode"] == KafkaCode.INVALID_UPDATE_VERSION
    assert cluster.ask("DELETE", "/v1/brokers/1", query={"force": "true"})[0] == 200
    kafkas = SupportedFeature(
        name="group.version", min_supported_version=0, max_supported_version=1
    )
    cluster.online(2, features=(*DECLARED, kafkas))
    assert update(client, 2, ("group.version", 1))["ErrorCode"] == 0
    assert level(cluster, "group.version") == 1
    _, listed = cluster.ask("GET", "/v1/features")
    assert {each["name"]: each["level"] for each in listed["features"]}["group.version"] == 1


def test_validate_only_and_nothing(cluster, client):
    end = cluster.image.offset
    assert update(client, 1, (ELR, 1), dry=True)["ErrorCode"] == 0
    assert update(client, 1)["ErrorCode"] == 0
    assert cluster.image.offset == end
