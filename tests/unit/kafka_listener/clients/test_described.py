"""DescribeCluster, DescribeTopicPartitions, ListConfigResources, and FindCoordinator's refusal."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.clients.allowed_operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    Voter,
    VoterEndpoint,
    VoterKRaftVersions,
    VotersRecord,
)
from tests.unit.kafka_listener.clients.front import (
    CLUSTER_ID,
    LISTENER,
    Front,
    broker,
    partition,
    topic,
    topic_id,
)

CLUSTER, PARTITIONS, RESOURCES, COORDINATOR, LOG_DIRS = 60, 75, 74, 10, 35
VOTERS = VotersRecord(
    tuple(
        Voter(number, bytes(16), endpoints, VoterKRaftVersions(0, 1))
        for number, endpoints in (
            (7, (VoterEndpoint("QUORUM", "s", 1), VoterEndpoint(LISTENER, "seven", 9090))),
            (8, (VoterEndpoint("QUORUM", "e", 2),)),
            (9, (VoterEndpoint(LISTENER, "nine", 9091),)),
        )
    )
)


@pytest.fixture
def front() -> Front:
    """Topics a to c with 3 partitions each; the last one has an ELR."""
    topics = [topic(number, "abc"[number]) for number in range(3)]
    parts = [partition(part, number) for number in range(2) for part in range(3)]
    last = [
        partition(part, 2, eligible_leader_replicas=(2,), last_known_elr=(1,)) for part in range(3)
    ]
    return Front(broker(1, rack="a"), broker(2), broker(3, fenced=True), *topics, *parts, *last)


# DescribeLogDirs.


@pytest.mark.parametrize("version", [1, 4, 5])
def test_no_log_directories_are_shown(front, version):
    wanted = [{"Topic": "a", "Partitions": [0]}]
    said = front.ask(LOG_DIRS, version, {"Topics": wanted})
    assert said["Results"] == []
    assert said["ErrorCode"] == 0


def test_a_broker_that_may_not_serve_shows_no_log_directories(front):
    front.why_not = "this broker is fenced"
    said = front.ask(LOG_DIRS, 4, {"Topics": None})
    assert said["ErrorCode"] == KafkaCode.BROKER_NOT_AVAILABLE


# DescribeCluster.


def test_the_cluster_is_described_with_live_brokers(front):
    said = front.ask(CLUSTER, 1, {"IncludeClusterAuthorizedOperations": True})
    assert (said["ErrorCode"], said["ClusterId"]) == (0, CLUSTER_ID)
    assert (said["ControllerId"], said["EndpointType"]) == (1, 1)
    assert said["ClusterAuthorizedOperations"] == ON_CLUSTER
    assert [(b["BrokerId"], b["Host"], b["Port"], b["Rack"]) for b in said["Brokers"]] == [
        (1, "host-1", 9001, "a"),
        (2, "host-2", 9002, None),
    ]
    assert front.ask(CLUSTER, 0, {})["ClusterAuthorizedOperations"] == NOT_ASKED


def test_fenced_brokers_are_described_if_a_client_asks(front):
    said = front.ask(CLUSTER, 2, {"IncludeFencedBrokers": True})
    assert [(b["BrokerId"], b["IsFenced"]) for b in said["Brokers"]] == [
        (1, False),
        (2, False),
        (3, True),
    ]


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, KafkaCode.MISMATCHED_ENDPOINT_TYPE), (3, KafkaCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_a_broker_describes_no_controllers(front, kind, code):
    said = front.ask(CLUSTER, 1, {"EndpointType": kind})
    assert said["ErrorCode"] == code
    assert said["ErrorMessage"]


def test_after_its_lease_an_agent_does_not_describe_the_cluster(front):
    front.why_not = "this broker is fenced: nobody answered"
    for key, version, fields in ((CLUSTER, 1, {}), (RESOURCES, 1, {"ResourceTypes": []})):
        said = front.ask(key, version, fields)
        assert said["ErrorCode"] == KafkaCode.BROKER_NOT_AVAILABLE
    assert front.ask(CLUSTER, 1, {})["ErrorMessage"] == front.why_not


def test_a_controller_describes_the_voters_with_a_kafka_listener():
    front = Front(VOTERS, broker(1))
    front.handlers = front.of_controller
    said = front.ask(CLUSTER, 1, {"EndpointType": 2})
    assert (said["EndpointType"], said["ControllerId"]) == (2, 2)
    assert [(b["BrokerId"], b["Host"], b["Port"]) for b in said["Brokers"]] == [
        (7, "seven", 9090),
        (9, "nine", 9091),
    ]
    said = front.ask(CLUSTER, 1, {"EndpointType": 1})
    assert said["ErrorCode"] == KafkaCode.MISMATCHED_ENDPOINT_TYPE


def test_a_controller_has_two_of_the_handlers(front):
    assert front.of_controller.keys() == {CLUSTER, 32}
    assert front.handlers.keys() == {3, COORDINATOR, 32, LOG_DIRS, CLUSTER, RESOURCES, PARTITIONS}


# DescribeTopicPartitions.


def page(front, *names: str, limit: int = 2000, cursor=None):
    fields = {"Topics": [{"Name": name} for name in names], "ResponsePartitionLimit": limit}
    return front.ask(PARTITIONS, 0, {**fields, "Cursor": cursor})


def shown(said) -> list[tuple[str, list[int]]]:
    return [(t["Name"], [p["PartitionIndex"] for p in t["Partitions"]]) for t in said["Topics"]]


def test_all_topics_are_described_with_their_elr(front):
    said = page(front)
    assert shown(said) == [("a", [0, 1, 2]), ("b", [0, 1, 2]), ("c", [0, 1, 2])]
    assert said["NextCursor"] is None
    last = said["Topics"][2]
    assert (last["TopicId"], last["TopicAuthorizedOperations"]) == (topic_id(2), ON_TOPIC)
    assert last["Partitions"][0]["EligibleLeaderReplicas"] == [2]
    assert last["Partitions"][0]["LastKnownElr"] == [1]
    assert last["Partitions"][0]["LeaderEpoch"] == 4


@pytest.mark.parametrize("limit", range(1, 10))
@pytest.mark.parametrize("names", [(), ("c", "a", "b")], ids=["all", "listed"])
def test_pages_join_to_the_whole_list(front, limit, names):
    found: list[tuple[str, int]] = []
    cursor = None
    for _ in range(20):
        said = page(front, *names, limit=limit, cursor=cursor)
        one = [(name, part) for name, parts in shown(said) for part in parts]
        assert len(one) <= limit
        found += one
        cursor = said["NextCursor"]
        if cursor is None:
            break
    assert found == [(name, part) for name in "abc" for part in range(3)]


def test_a_cursor_on_a_deleted_topic_goes_on_behind_it(front):
    said = page(front, cursor={"TopicName": "aa", "PartitionIndex": 2})
    assert shown(said) == [("b", [0, 1, 2]), ("c", [0, 1, 2])]


def test_an_unknown_topic_is_named_with_its_error(front):
    said = page(front, "nope", "b", "bad name")
    errors = {t["Name"]: t["ErrorCode"] for t in said["Topics"]}
    assert errors == {
        "b": 0,
        "bad name": KafkaCode.INVALID_TOPIC_EXCEPTION,
        "nope": KafkaCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_page_has_two_thousand_partitions_at_most():
    many = [partition(number, 0) for number in range(2_500)]
    front = Front(broker(1), broker(2), topic(0, "large"), *many)
    said = page(front, limit=1_000_000)
    assert shown(said) == [("large", list(range(2_000)))]
    assert said["NextCursor"] == {"TopicName": "large", "PartitionIndex": 2_000}


@pytest.mark.parametrize(
    ("limit", "cursor"), [(0, None), (-1, None), (5, {"TopicName": "a", "PartitionIndex": -1})]
)
def test_a_page_that_makes_no_sense_is_refused(front, limit, cursor):
    said = page(front, "a", limit=limit, cursor=cursor)
    assert [t["ErrorCode"] for t in said["Topics"]] == [KafkaCode.INVALID_REQUEST]


def test_after_its_lease_an_agent_describes_no_partitions(front):
    front.why_not = "fenced"
    (only,) = page(front, "a")["Topics"]
    assert (only["ErrorCode"], only["Partitions"]) == (KafkaCode.LEADER_NOT_AVAILABLE, [])
    assert page(front)["Topics"] == []


# ListConfigResources.


@pytest.fixture
def configured() -> Front:
    return Front(
        broker(1),
        topic(1, "orders"),
        ConfigRecord(ConfigResourceType.CLIENT_METRICS, "clients", "interval.ms", "1000"),
        ConfigRecord(ConfigResourceType.GROUP, "readers", "consumer.session.timeout.ms", "50000"),
    )


@pytest.mark.parametrize(
    ("version", "kinds", "expected"),
    [
        (0, None, [("clients", 16)]),
        (1, [], [("orders", 2), ("1", 4), ("1", 8), ("clients", 16), ("readers", 32)]),
        (1, [32, 2, 32], [("readers", 32), ("orders", 2)]),
    ],
)
def test_resources_with_configs_are_listed(configured, version, kinds, expected):
    said = configured.ask(RESOURCES, version, {} if kinds is None else {"ResourceTypes": kinds})
    assert said["ErrorCode"] == 0
    found = [(r["ResourceName"], r["ResourceType"]) for r in said["ConfigResources"]]
    # Version 0 has no types: a client of it reads client metrics.
    assert found == expected


def test_an_unknown_type_of_resource_is_refused(configured):
    said = configured.ask(RESOURCES, 1, {"ResourceTypes": [2, 99]})
    assert said["ErrorCode"] == KafkaCode.UNSUPPORTED_VERSION


# FindCoordinator.


@pytest.mark.parametrize("version", range(7))
def test_coordinators_are_refused_for_good_with_a_sentence(front, version):
    asked = {"CoordinatorKeys": ["g", "h"]} if version >= 4 else {"Key": "g"}
    said = front.ask(COORDINATOR, version, asked)
    refused = said["Coordinators"] if version >= 4 else [said]
    assert [one["ErrorCode"] for one in refused] == [KafkaCode.INVALID_REQUEST] * len(refused)
    if version >= 1:
        assert "no consumer groups" in refused[0]["ErrorMessage"]
