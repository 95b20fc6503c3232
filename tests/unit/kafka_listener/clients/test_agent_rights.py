"""An agent judges what it answers itself by the entries of its image (ADR 0092)."""

from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from broker_agent.config import AgentConfig
from broker_agent.people import AgentPeople
from controller.access.guard import AccessGuard, Asker
from kafka_listener.agent_listener import agent_listener_handlers
from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.needed_rights import (
    AGENT_ACCESS,
    AGENT_BY_ROUTES,
    guarded_on_agent,
)
from kafka_listener.asking.request import Fields, KafkaFailure, KafkaRequest
from kafka_listener.clients.allowed_operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from kafka_listener.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from metadata.image import EMPTY, MetadataImage
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    Record,
    RemoveAccessControlEntryRecord,
)
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World
from runtime.sockets.refusals import Refusals
from tests.unit.image.replaying import replayed
from tests.unit.kafka_listener.clients.front import CLUSTER_ID, LISTENER, broker, partition, topic

METADATA, CONFIGS, LOG_DIRS, CLUSTER, RESOURCES, PARTITIONS = 3, 32, 35, 60, 74, 75
ALICE = Caller("User:alice", "SCRAM", "10.0.0.7")
ROOT = Caller("User:root", "token", "10.0.0.9")
TOPIC_TYPE, BROKER_TYPE, GROUP_TYPE = 2, 4, 32


def entry(
    operation: AclOperation,
    name: str,
    kind: AclResourceType = AclResourceType.TOPIC,
    number: int = 1,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern: AclPatternType = AclPatternType.LITERAL,
    host: str = "*",
    principal: str = "User:alice",
) -> AccessControlEntryRecord:
    uuid = number.to_bytes(16, "big")
    return AccessControlEntryRecord(
        uuid, kind, name, pattern, principal, host, operation, permission
    )


class JudgedFront:
    """An agent's whole listener, as clients ask it."""

    def __init__(self, authorization: str = "on", key: ClusterKey | None = None) -> None:
        self.world = World(1)
        clock = SimulatedHost(self.world, SimulatedNetwork(self.world), 1).boot().clock
        config = AgentConfig(
            cluster_id=CLUSTER_ID,
            broker_id=1,
            controllers=("https://c",),
            authorization=authorization,
            super_users=frozenset({"User:root"}),
        )
        self.refusals = Refusals(structlog.get_logger(), clock.call_later)
        self.guard = AccessGuard(config, self.refusals)
        self.agent: Any = SimpleNamespace(config=config, image=EMPTY, may_serve=lambda: True)
        self.asked: list[Any] = []
        agent: Any = self.agent
        self.people = AgentPeople(key, config.super_users, clock, lambda: self.image)
        self.handlers = agent_listener_handlers(
            agent,
            lambda request, _reply: self.asked.append(request),
            clock,
            {},
            self.guard,
            self.people,
        )
        topics = [topic(number, name) for number, name in enumerate(("a", "ab", "b"))]
        self.replay(broker(1), broker(2), *topics, *(partition(0, number) for number in range(3)))

    @property
    def image(self) -> MetadataImage:
        return self.agent.image

    def replay(self, *records: Record) -> None:
        self.agent.image = replayed(*records, image=self.agent.image)

    def ask(self, api_key: int, version: int, fields: Fields, caller: Caller = ALICE) -> Fields:
        sent = decode_request(api_key, version, encode_request(api_key, version, fields))
        request = KafkaRequest(api_key, version, "c", sent, caller, listener=LISTENER)
        bodies: list[Any] = []
        try:
            self.handlers[api_key](request, bodies.append)
        except KafkaFailure as refused:
            bodies.append(failure(api_key, version, sent, refused.code, refused.message))
        self.world.run_for(1.0)
        (body,) = bodies
        if isinstance(body, tuple):
            body = b"".join(body)
        encoded = body if isinstance(body, bytes) else encode_response(api_key, version, body)
        return decode_response(api_key, version, encoded)

    def names(self, caller: Caller = ALICE) -> list[str]:
        said = self.ask(METADATA, 12, {"Topics": None}, caller)
        return [each["Name"] for each in said["Topics"]]


@pytest.fixture
def front() -> JudgedFront:
    return JudgedFront()


def test_every_request_that_an_agent_serves_says_what_it_needs(front: JudgedFront) -> None:
    assert set(front.handlers) <= AGENT_BY_ROUTES | set(AGENT_ACCESS)
    assert not AGENT_BY_ROUTES & set(AGENT_ACCESS)


def test_a_request_without_an_entry_is_refused(front: JudgedFront) -> None:
    def judge(name: str, access: Any, request: Any, message: Any) -> Any:
        return front.guard.declared(name, access, Asker("User:root", "h"), message).refusal(
            front.image
        )

    def handler(_request: Any, _answer: Any) -> None:
        pytest.fail("it reached its handler")

    handle = guarded_on_agent(9_999, handler, judge)
    with pytest.raises(KafkaFailure, match="declares none"):
        handle(KafkaRequest(9_999, 0, "c", {}, ROOT), lambda _response: None)


def test_all_topics_are_those_that_the_client_may_describe(front: JudgedFront) -> None:
    assert front.names() == []
    assert front.names(ROOT) == ["a", "ab", "b"]
    front.replay(entry(AclOperation.DESCRIBE, "a", pattern=AclPatternType.PREFIXED))
    assert front.names() == ["a", "ab"]
    front.replay(entry(AclOperation.DESCRIBE, "ab", number=2, permission=AclPermissionType.DENY))
    assert front.names() == ["a"]
    front.replay(RemoveAccessControlEntryRecord((1).to_bytes(16, "big")))
    assert front.names() == []


def test_an_entry_for_a_host_shows_a_topic_there_only(front: JudgedFront) -> None:
    front.replay(entry(AclOperation.READ, "b", host="10.0.0.8"))
    assert front.names() == []
    assert front.names(Caller("User:alice", "SCRAM", "10.0.0.8")) == ["b"]


def test_a_topic_that_may_not_be_described_is_refused_whether_it_exists_or_not(
    front: JudgedFront,
) -> None:
    front.replay(entry(AclOperation.DESCRIBE, "a"))
    asked = {"Topics": [{"Name": name, "TopicId": bytes(16)} for name in ("a", "b", "nowhere")]}
    found = front.ask(METADATA, 12, asked)["Topics"]
    refused = KafkaCode.TOPIC_AUTHORIZATION_FAILED
    assert [each["ErrorCode"] for each in found] == [0, refused, refused]
    assert [len(each["Partitions"]) for each in found] == [1, 0, 0]
    assert all(each["TopicId"] == bytes(16) for each in found[1:])
    by_id = {"Topics": [{"Name": None, "TopicId": bytes(15) + b"\x02"}]}
    (one,) = front.ask(METADATA, 12, by_id)["Topics"]
    assert (one["ErrorCode"], one["Name"], one["Partitions"]) == (refused, None, [])


def test_describe_topic_partitions_shows_and_refuses_as_metadata_does(front: JudgedFront) -> None:
    front.replay(entry(AclOperation.DESCRIBE, "a"))
    everything = {"Topics": [], "ResponsePartitionLimit": 10, "Cursor": None}
    found = front.ask(PARTITIONS, 0, everything)
    assert [each["Name"] for each in found["Topics"]] == ["a"]
    assert found["NextCursor"] is None
    some = {**everything, "Topics": [{"Name": name} for name in ("b", "a")]}
    first, second = front.ask(PARTITIONS, 0, some)["Topics"]
    assert (first["Name"], first["ErrorCode"]) == ("a", 0)
    assert first["TopicAuthorizedOperations"] == 1 << AclOperation.DESCRIBE
    assert second["ErrorCode"] == KafkaCode.TOPIC_AUTHORIZATION_FAILED
    assert second["Partitions"] == []


def test_the_operations_of_a_client_are_those_that_the_entries_allow(front: JudgedFront) -> None:
    front.replay(entry(AclOperation.WRITE, "a"), entry(AclOperation.ALL, "b", number=2))
    asked = {"Topics": None, "IncludeTopicAuthorizedOperations": True}
    found = front.ask(METADATA, 12, asked)["Topics"]
    bits = (1 << AclOperation.WRITE) | (1 << AclOperation.DESCRIBE)
    assert [each["TopicAuthorizedOperations"] for each in found] == [bits, ON_TOPIC]
    found = front.ask(METADATA, 12, asked, ROOT)["Topics"]
    assert {each["TopicAuthorizedOperations"] for each in found} == {ON_TOPIC}
    found = front.ask(METADATA, 12, {"Topics": None})["Topics"]
    assert {each["TopicAuthorizedOperations"] for each in found} == {NOT_ASKED}


def test_the_operations_on_the_cluster_are_none_for_who_may_not_describe_it(
    front: JudgedFront,
) -> None:
    asked = {"IncludeClusterAuthorizedOperations": True, "EndpointType": 1}

    def operations(caller: Caller = ALICE) -> int:
        found = front.ask(CLUSTER, 1, asked, caller)
        assert [each["BrokerId"] for each in found["Brokers"]] == [1, 2]
        return int(found["ClusterAuthorizedOperations"])

    front.replay(entry(AclOperation.CREATE, "kafka-cluster", AclResourceType.CLUSTER))
    assert operations() == 0
    cluster = AclResourceType.CLUSTER
    front.replay(entry(AclOperation.DESCRIBE, "kafka-cluster", cluster, number=2))
    assert operations() == (1 << AclOperation.CREATE) | (1 << AclOperation.DESCRIBE)
    assert operations(ROOT) == ON_CLUSTER


def test_each_resource_of_describe_configs_is_judged_by_itself(front: JudgedFront) -> None:
    group = AclResourceType.GROUP
    front.replay(
        entry(AclOperation.DESCRIBE_CONFIGS, "a"),
        entry(AclOperation.DESCRIBE_CONFIGS, "g", group, number=2),
    )
    wanted = [
        (TOPIC_TYPE, "a"), (TOPIC_TYPE, "b"), (GROUP_TYPE, "g"), (GROUP_TYPE, "h"),
        (BROKER_TYPE, "1"),
    ]  # fmt: skip
    asked = {
        "Resources": [
            {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": None}
            for kind, name in wanted
        ]
    }
    codes = [each["ErrorCode"] for each in front.ask(CONFIGS, 4, asked)["Results"]]
    assert codes == [
        0,
        KafkaCode.TOPIC_AUTHORIZATION_FAILED,
        0,
        KafkaCode.GROUP_AUTHORIZATION_FAILED,
        KafkaCode.CLUSTER_AUTHORIZATION_FAILED,
    ]
    codes = [each["ErrorCode"] for each in front.ask(CONFIGS, 4, asked, ROOT)["Results"]]
    assert set(codes) == {0}


@pytest.mark.parametrize(
    ("api_key", "version", "fields", "operation"),
    [
        (LOG_DIRS, 4, {"Topics": None}, AclOperation.DESCRIBE),
        (RESOURCES, 1, {"ResourceTypes": []}, AclOperation.DESCRIBE_CONFIGS),
    ],
)
def test_requests_about_the_whole_cluster_need_the_right_on_it(
    front: JudgedFront, api_key: int, version: int, fields: Fields, operation: AclOperation
) -> None:
    refused = KafkaCode.CLUSTER_AUTHORIZATION_FAILED
    assert front.ask(api_key, version, fields)["ErrorCode"] == refused
    assert front.refusals.counters["access_refused"] == 1
    front.replay(entry(operation, "kafka-cluster", AclResourceType.CLUSTER))
    assert front.ask(api_key, version, fields)["ErrorCode"] == 0


@pytest.mark.parametrize("authorization", ["off", "log-only"])
def test_without_enforcement_every_client_sees_everything(authorization: str) -> None:
    front = JudgedFront(authorization)
    assert front.names(Caller()) == ["a", "ab", "b"]
    asked = {"Topics": None, "IncludeTopicAuthorizedOperations": True}
    found = front.ask(METADATA, 12, asked)["Topics"]
    assert {each["TopicAuthorizedOperations"] for each in found} == {ON_TOPIC}
    assert front.ask(LOG_DIRS, 4, {"Topics": None})["ErrorCode"] == 0
    assert front.refusals.counters["access_refused"] == (authorization == "log-only")


def test_clients_of_different_rights_share_no_answer(front: JudgedFront) -> None:
    """Equal requests are made once, and then kept."""
    front.replay(entry(AclOperation.DESCRIBE, "a"))
    for _ in range(2):
        assert front.names() == ["a"]
        assert front.names(ROOT) == ["a", "ab", "b"]
        assert front.names(Caller("User:bob", "SCRAM", "10.0.0.7")) == []
