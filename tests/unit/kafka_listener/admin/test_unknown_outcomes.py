"""A request whose change is refused, lost or late still gets one response, with Kafka's code."""

from typing import Any

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient

NEW = {"Name": "t", "NumPartitions": 8, "ReplicationFactor": 1}
USER = {"EntityType": "user", "EntityName": "bob"}
ACL = {
    "ResourceType": 2,
    "ResourceName": "t",
    "Principal": "User:bob",
    "Host": "*",
    "Operation": 3,
    "PermissionType": 3,
}
EVERY_ACL = {
    "ResourceTypeFilter": 1,
    "ResourceNameFilter": None,
    "PatternTypeFilter": 1,
    "PrincipalFilter": None,
    "HostFilter": None,
    "Operation": 1,
    "PermissionType": 1,
}
LEVEL = {"Feature": "eligible.leader.replicas.version", "MaxVersionLevel": 1}
CONFIG = {"ResourceType": 4, "ResourceName": ""}
CHANGES: dict[int, tuple[int, dict[str, Any]]] = {
    19: (7, {"Topics": [NEW]}),
    30: (3, {"Creations": [ACL]}),
    31: (3, {"Filters": [EVERY_ACL]}),
    33: (2, {"Resources": [{**CONFIG, "Configs": [{"Name": "log.retention.ms", "Value": "7"}]}]}),
    37: (3, {"Topics": [{"Name": "old", "Count": 3, "Assignments": None}]}),
    44: (
        1,
        {
            "Resources": [
                {
                    **CONFIG,
                    "Configs": [{"Name": "log.retention.ms", "ConfigOperation": 0, "Value": "7"}],
                }
            ]
        },
    ),
    45: (
        1,
        {"Topics": [{"Name": "old", "Partitions": [{"PartitionIndex": 0, "Replicas": [1, 2]}]}]},
    ),
    49: (
        1,
        {"Entries": [{"Entity": [USER], "Ops": [{"Key": "producer_byte_rate", "Value": 1.0}]}]},
    ),
    57: (2, {"FeatureUpdates": [LEVEL]}),
}
"""By api key: a version, and a request that changes something."""
LISTS = ("Topics", "Results", "Responses", "FilterResults", "Entries")


def error_of(response):
    """The one code of a response: at the top, or at its one entry."""
    if response.get("ErrorCode"):
        return response["ErrorCode"]
    (entry,) = next((response[name] for name in LISTS if response.get(name)), [response])
    if "Partitions" in entry:
        (entry,) = entry["Partitions"]
    return entry["ErrorCode"]


@pytest.fixture
def cluster():
    cluster = Cluster(nodes=3)
    cluster.online(1, 2)
    cluster.create_topic("old", factor=1)
    KafkaClient(cluster).ask(30, 3, Creations=[{**ACL, "Principal": "User:old"}])
    return cluster


@pytest.mark.parametrize("key", CHANGES)
def test_it_works_while_nothing_is_wrong(cluster, key):
    version, fields = CHANGES[key]
    assert error_of(KafkaClient(cluster).ask(key, version, **fields)) == 0


@pytest.mark.parametrize("key", CHANGES)
def test_a_leader_that_is_cut_off_leaves_the_outcome_open(cluster, key):
    """Nothing commits, so the client hears REQUEST_TIMED_OUT when the write's wait is over."""
    version, fields = CHANGES[key]
    leader = cluster.shared.leader
    cluster.shared.cut(leader)
    response = KafkaClient(cluster, node=leader).ask(key, version, **fields)
    assert error_of(response) in (KafkaCode.REQUEST_TIMED_OUT, KafkaCode.NOT_CONTROLLER)


@pytest.mark.parametrize("key", CHANGES)
def test_a_leader_that_loses_its_office_sends_the_client_on(cluster, key):
    version, fields = CHANGES[key]
    leader = cluster.shared.leader
    handle = cluster.controllers[leader].handle

    def deposed(request, on_reply):
        handle(request, on_reply)
        cluster.shared.nodes[leader].lose()

    client = KafkaClient(cluster, node=leader)
    client.handlers = client.handlers_of(deposed)
    code = error_of(client.ask(key, version, **fields))
    assert code in (KafkaCode.REQUEST_TIMED_OUT, KafkaCode.NOT_CONTROLLER)


@pytest.mark.parametrize("key", CHANGES)
def test_a_standby_sends_the_client_on(cluster, key):
    version, fields = CHANGES[key]
    response = KafkaClient(cluster, node=2).ask(key, version, **fields)
    assert error_of(response) == KafkaCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("version", "code"),
    [(7, KafkaCode.THROTTLING_QUOTA_EXCEEDED), (5, KafkaCode.REQUEST_TIMED_OUT)],
)
def test_a_client_over_its_quota_is_told_how_long_to_wait(version, code):
    """Clients that don't know the code of KIP-599 hear one after which they ask again, too."""
    cluster = Cluster(nodes=1, partition_mutations_per_s=1, partition_mutations_burst=8)
    cluster.online(1)
    client = KafkaClient(cluster)
    for name in ("t", "over"):
        assert error_of(client.ask(19, version, Topics=[{**NEW, "Name": name}])) == 0
    refused = client.ask(19, version, Topics=[{**NEW, "Name": "u"}])
    assert error_of(refused) == code
    assert refused["ThrottleTimeMs"] > 1000
    assert cluster.image.topics.named("u") is None
