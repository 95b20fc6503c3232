"""Requests of Kafka's protocol are judged: by our routes, or before the handler that answers."""

from typing import Any

import pytest

from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.needed_rights import BY_ROUTES, KAFKA_ACCESS, guarded
from kafka_listener.asking.request import KafkaFailure, KafkaRequest
from kafka_listener.listener import ControllerListener
from kafka_listener.wire.messages import (
    RequestHeader,
    decode_request,
    decode_response,
    decode_response_header,
    encode_message,
    encode_request,
    encode_request_header,
    encode_response,
)
from metadata.records import AclOperation, AclPermissionType, AclResourceType
from runtime.http.requests import Caller
from tests.kafka_quorum import fetch_fields
from tests.unit.controller.access.requests import granted
from tests.unit.controller.access.test_guard import entry
from tests.unit.controller.cluster import Cluster

pytestmark = pytest.mark.simulation

FETCH, CREATE_TOPICS, DESCRIBE_ACLS, DESCRIBE_CONFIGS = 1, 19, 29, 32
DESCRIBE_QUORUM, ENVELOPE, FETCH_SNAPSHOT, DESCRIBE_CLUSTER = 55, 58, 59, 60
BROKER = Caller("Broker:101", "certificate", "10.0.0.5")
NOBODY = Caller()
FIELDS: dict[int, tuple[int, dict[str, Any]]] = {
    CREATE_TOPICS: (
        7,
        {
            "Topics": [
                {
                    "Name": "t",
                    "NumPartitions": 1,
                    "ReplicationFactor": 1,
                    "Assignments": [],
                    "Configs": [],
                }
            ],
            "timeoutMs": 1000,
            "validateOnly": True,
        },
    ),
    DESCRIBE_ACLS: (
        3,
        {
            "ResourceTypeFilter": 1,
            "ResourceNameFilter": None,
            "PatternTypeFilter": 1,
            "PrincipalFilter": None,
            "HostFilter": None,
            "Operation": 1,
            "PermissionType": 1,
        },
    ),
    DESCRIBE_CONFIGS: (
        4,
        {
            "Resources": [
                {"ResourceType": 4, "ResourceName": "", "ConfigurationKeys": None},
            ],
            "IncludeSynonyms": False,
            "IncludeDocumentation": False,
        },
    ),
    DESCRIBE_QUORUM: (
        2,
        {
            "Topics": [
                {"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]},
            ]
        },
    ),
    DESCRIBE_CLUSTER: (
        1,
        {"IncludeClusterAuthorizedOperations": False, "EndpointType": 2},
    ),
}
ALLOWED = {
    "nobody": set(),
    "viewer": {DESCRIBE_ACLS, DESCRIBE_CONFIGS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER},
    "operator": set(FIELDS),
    "admin": set(FIELDS),
    "root": set(FIELDS),
}
REFUSED = (KafkaCode.CLUSTER_AUTHORIZATION_FAILED, KafkaCode.TOPIC_AUTHORIZATION_FAILED)


class JudgedCluster(Cluster):
    """Controllers with whole listeners, where rights are enforced."""

    def __init__(self, **config: Any) -> None:
        self.listeners: dict[Any, ControllerListener] = {}
        super().__init__(
            nodes=1,
            authorization="on",
            super_users=frozenset({"User:root"}),
            on_made=self._made,
            **config,
        )

    def _made(self, controller: Any, config: Any, clock: Any, disk: Any, log: Any) -> None:
        self.listeners[controller] = ControllerListener(
            controller, config, clock=clock, disk=disk, log=log
        )

    def kafka(
        self, api_key: int, version: int, fields: dict[str, Any], caller: Caller
    ) -> dict[str, Any]:
        sent = decode_request(api_key, version, encode_request(api_key, version, fields))
        request = KafkaRequest(api_key, version, "a-client", sent, caller, listener="CONTROLLER")
        answers: list[Any] = []

        def ask() -> None:
            try:
                self.listeners[self.leader].handlers[api_key](request, answers.append)
            except KafkaFailure as error:
                answers.append(failure(api_key, version, sent, error.code, error.message))

        self.processes[1].run(ask)
        self.run_until(lambda: bool(answers))
        found = answers[0]
        if isinstance(found, tuple):
            found = b"".join(found)
        body = found if isinstance(found, bytes) else encode_response(api_key, version, found)
        return dict(decode_response(api_key, version, body))

    def forward(self, api_key: int, user: str, caller: Caller) -> tuple[int, Any]:
        version, fields = FIELDS[api_key]
        head = encode_request_header(RequestHeader(api_key, version, 7, "a-client"))
        name = {"Type": "User", "Name": user, "TokenAuthenticated": False}
        envelope = {
            "RequestData": head + encode_request(api_key, version, fields),
            "RequestPrincipal": b"\0\0" + encode_message("DefaultPrincipalData", 0, name),
            "ClientHostAddress": bytes((10, 1, 2, 3)),
        }
        answer = self.kafka(ENVELOPE, 0, envelope, caller)
        if answer["ResponseData"] is None:
            return answer["ErrorCode"], None
        data = bytes(answer["ResponseData"])
        _, body_at = decode_response_header(api_key, version, data)
        return answer["ErrorCode"], decode_response(api_key, version, data, body_at)


@pytest.fixture(scope="module")
def cluster() -> JudgedCluster:
    made = JudgedCluster(delegations={101: frozenset({"User:*"})})
    granted(made)
    return made


def codes(found: Any) -> list[int]:
    """Return every error code of a response, wherever it stands."""
    if isinstance(found, dict):
        own = [found["ErrorCode"]] if "ErrorCode" in found else []
        return own + [code for value in found.values() for code in codes(value)]
    return [code for value in found for code in codes(value)] if isinstance(found, list) else []


def test_every_request_that_is_served_says_what_it_needs(cluster):
    served = set(cluster.listeners[cluster.leader].handlers)
    assert served <= BY_ROUTES | set(KAFKA_ACCESS)
    assert not BY_ROUTES & set(KAFKA_ACCESS)


@pytest.mark.parametrize("api_key", sorted(FIELDS))
@pytest.mark.parametrize("role", sorted(ALLOWED))
def test_a_role_may_in_kafka_what_it_may_over_http(cluster, role, api_key):
    version, fields = FIELDS[api_key]
    answer = cluster.kafka(api_key, version, fields, Caller(f"User:{role}", "SCRAM", "10.0.0.8"))
    refused = any(code in REFUSED for code in codes(answer))
    assert refused != (api_key in ALLOWED[role]), answer
    if refused and api_key == CREATE_TOPICS:
        (topic,) = answer["Topics"]
        assert topic["ErrorCode"] == KafkaCode.TOPIC_AUTHORIZATION_FAILED
        assert "it lacks CREATE on TOPIC t" in topic["ErrorMessage"]


def test_each_resource_that_is_refused_counts_as_an_attempt(cluster):
    version, fields = FIELDS[DESCRIBE_CONFIGS]
    two = [{"ResourceType": 2, "ResourceName": name, "ConfigurationKeys": None} for name in "tu"]
    alice = Caller("User:alice", "SCRAM", "10.0.0.8")
    noted = cluster.leader.trail.noted
    before = sum(noted.values())
    answer = cluster.kafka(DESCRIBE_CONFIGS, version, {**fields, "Resources": two}, alice)
    assert codes(answer) == [KafkaCode.TOPIC_AUTHORIZATION_FAILED] * 2
    assert "it lacks DESCRIBE_CONFIGS on TOPIC t" in answer["Results"][0]["ErrorMessage"]
    assert sum(noted.values()) - before == 2


@pytest.mark.parametrize(
    ("caller", "name", "allowed"),
    [
        (BROKER, "__consumer_offsets", True),
        (BROKER, "__share_group_state", True),
        (BROKER, "orders", False),
        (Caller("User:nobody", "SCRAM", "10.0.0.8"), "__consumer_offsets", False),
        (NOBODY, "__consumer_offsets", False),
    ],
)
def test_a_broker_creates_kafkas_internal_topics_in_its_own_name(cluster, caller, name, allowed):
    version, fields = FIELDS[CREATE_TOPICS]
    wanted = {**fields, "Topics": [{**fields["Topics"][0], "Name": name}]}
    (topic,) = cluster.kafka(CREATE_TOPICS, version, wanted, caller)["Topics"]
    assert (topic["ErrorCode"] in REFUSED) != allowed, topic


@pytest.mark.parametrize("role", sorted(ALLOWED))
def test_a_forwarded_request_has_the_rights_of_its_user(cluster, role):
    error, answer = cluster.forward(CREATE_TOPICS, role, BROKER)
    assert error == 0
    refused = any(code in REFUSED for code in codes(answer))
    assert refused != (CREATE_TOPICS in ALLOWED[role])


def test_a_broker_without_the_grant_forwards_for_nobody(cluster):
    other = Caller("Broker:102", "certificate", "10.0.0.6")
    error, answer = cluster.forward(CREATE_TOPICS, "root", other)
    assert error == 0
    assert set(codes(answer)) == {KafkaCode.CLUSTER_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("caller", [NOBODY, Caller("User:admin", "token", "10.0.0.8")])
def test_who_is_no_broker_forwards_nothing(cluster, caller):
    error, answer = cluster.forward(CREATE_TOPICS, "root", caller)
    assert (error, answer) == (KafkaCode.CLUSTER_AUTHORIZATION_FAILED, None)


@pytest.mark.parametrize(
    ("caller", "replica", "allowed"),
    [
        (BROKER, 101, True),
        (BROKER, 102, False),
        (BROKER, -1, True),
        (Caller("User:operator", "token"), 101, False),
        (NOBODY, 101, False),
    ],
)
def test_a_broker_reads_the_log_as_itself_only(cluster, caller, replica, allowed):
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": cluster.shared.epoch if hasattr(cluster.shared, "epoch") else 1,
        "SnapshotId": {"EndOffset": 1, "Epoch": 1},
        "Position": 0,
    }
    fields = {
        "ClusterId": None,
        "ReplicaId": replica,
        "MaxBytes": 1000,
        "Topics": [{"Name": "__cluster_metadata", "Partitions": [partition]}],
    }
    answer = cluster.kafka(FETCH_SNAPSHOT, 1, fields, caller)
    refused = KafkaCode.CLUSTER_AUTHORIZATION_FAILED in codes(answer)
    assert refused != allowed, answer


@pytest.mark.parametrize("denied", [False, True])
def test_a_fetch_that_waited_is_judged_when_it_is_answered(denied):
    cluster = JudgedCluster()
    offset, answers = cluster.image.offset, []
    cluster.run(0.5)
    fields = fetch_fields(
        1, cluster=None, replica=101, offset=offset, last_epoch=1, watermark=offset, wait_ms=5_000
    )
    sent = decode_request(FETCH, 18, encode_request(FETCH, 18, fields))
    request = KafkaRequest(FETCH, 18, "a-client", sent, BROKER, listener="CONTROLLER")
    handle = cluster.listeners[cluster.leader].handlers[FETCH]
    cluster.processes[1].run(lambda: handle(request, answers.append))
    cluster.run(0.3)
    assert not answers
    written = entry(
        AclOperation.CLUSTER_ACTION,
        "kafka-cluster",
        AclResourceType.CLUSTER,
        BROKER.principal,
        AclPermissionType.DENY if denied else AclPermissionType.ALLOW,
    )
    cluster.write(written)
    cluster.run_until(lambda: bool(answers))
    [answer] = answers
    code = KafkaCode.CLUSTER_AUTHORIZATION_FAILED if denied else KafkaCode.NONE
    assert answer.get("ErrorCode", 0) == code
    assert bool(answer.get("Responses")) is not denied


def test_a_request_without_an_entry_is_refused(cluster):
    def handler(_request: Any, _answer: Any) -> None:
        pytest.fail("it reached its handler")

    handle = guarded(9_999, handler, cluster.leader.access_refusal)
    request = KafkaRequest(9_999, 0, "a-client", {}, Caller("User:admin", "token", "10.0.0.8"))
    with pytest.raises(KafkaFailure, match="declares none") as raised:
        handle(request, lambda _response: None)
    assert raised.value.code is KafkaCode.CLUSTER_AUTHORIZATION_FAILED
