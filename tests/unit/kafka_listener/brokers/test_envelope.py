"""What brokers forward for clients: who stands in the log, and which error stands where."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.errors import LogbergError
from metadata.messages import CreateTopicsReply, CreateTopicsRequest
from metadata.messages.topics import NewTopic
from runtime.http.requests import Caller
from tests.unit.kafka_listener.brokers.listening import KafkaBroker, ListeningCluster

CREATE = {
    "Topics": [
        {"Name": "t", "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": []}
    ],
    "timeoutMs": 1000,
    "validateOnly": False,
}
BROKER = Caller("Broker:101", "certificate", "10.0.0.5")


def creating(asking):
    """A plain handler of CreateTopics: the real one is another room's."""

    def handle(request, answer):
        (topic,) = request.fields["Topics"]
        message = CreateTopicsRequest((NewTopic(topic["Name"], 1, 1),))

        def done(outcome):
            if isinstance(outcome, LogbergError):
                code, words = KafkaCode[outcome.code.name], outcome.message
            else:
                code, words = KafkaCode.NONE, None
            row = {"Name": topic["Name"], "ErrorCode": code, "ErrorMessage": words}
            answer({"Topics": [row]})

        asking.change(request, "POST", "/v1/topics", message, CreateTopicsReply, done)

    return {19: handle, 1: handle}


def last_cause(cluster):
    header = cluster.batches()[-1].header
    return header.cause(lambda _id: "")


def test_the_log_names_user_broker_and_the_client_s_address():
    cluster = ListeningCluster(creating, delegations={101: frozenset({"User:*"})})
    KafkaBroker(cluster, 101, BROKER).bring_online()
    error, answer = cluster.forward(19, 7, CREATE, caller=BROKER)
    assert (error, answer["Topics"][0]["ErrorCode"]) == (0, 0)
    cause = last_cause(cluster)
    assert cause["principal"] == "Broker:101"
    assert cause["authMethod"] == "certificate"
    assert cause["onBehalfOf"] == "User:alice"
    assert cause["clientAddress"] == "10.1.2.3"
    assert cause["clientId"] == "a-client"
    assert "actedAs" not in cause


def test_without_authentication_the_broker_s_own_client_id_names_it():
    cluster = ListeningCluster(creating)
    KafkaBroker(cluster, 101).bring_online()
    error, answer = cluster.forward(19, 7, CREATE, client_id="101")
    assert (error, answer["Topics"][0]["ErrorCode"]) == (0, 0)
    cause = last_cause(cluster)
    assert (cause["principal"], cause["authMethod"]) == ("User:ANONYMOUS", "none")
    assert (cause["actedAs"], cause["onBehalfOf"]) == ("Broker:101", "User:alice")
    assert cause["clientAddress"] == "10.1.2.3"


def test_a_broker_forwards_only_for_users_that_the_settings_grant_it():
    cluster = ListeningCluster(creating, delegations={101: frozenset({"User:bob"})})
    KafkaBroker(cluster, 101, BROKER).bring_online()
    error, answer = cluster.forward(19, 7, CREATE, caller=BROKER)
    assert error == 0
    assert answer["Topics"][0]["ErrorCode"] == KafkaCode.CLUSTER_AUTHORIZATION_FAILED
    assert "[[delegations]]" in answer["Topics"][0]["ErrorMessage"]


def test_who_is_no_broker_can_t_forward():
    cluster = ListeningCluster(creating, require_authentication=True)
    error, answer = cluster.forward(19, 7, CREATE, caller=Caller("User:bob", "token"))
    assert (error, answer) == (KafkaCode.CLUSTER_AUTHORIZATION_FAILED, None)


def test_a_standby_answers_for_the_envelope_itself():
    cluster = ListeningCluster(creating)
    standby = next(n for n in cluster.controllers if n != cluster.shared.leader)
    assert cluster.forward(19, 7, CREATE, node=standby) == (KafkaCode.NOT_CONTROLLER, None)


def test_not_controller_inside_becomes_the_envelope_s_own_error():
    """Only so the broker looks for the new leader and sends the envelope again."""
    refused = {"Topics": [{"Name": "t", "ErrorCode": KafkaCode.NOT_CONTROLLER}]}
    cluster = ListeningCluster(lambda _asking: {19: lambda _request, answer: answer(refused)})
    assert cluster.forward(19, 7, CREATE) == (KafkaCode.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"RequestPrincipal": None}, KafkaCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"RequestPrincipal": b"\0\7alice"}, KafkaCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"ClientHostAddress": b"\1\2\3"}, KafkaCode.INVALID_REQUEST),
        ({"RequestData": b""}, KafkaCode.INVALID_REQUEST),
        ({"RequestData": b"\0\x13\0\7\0\0\0\7\0\1a\0\xff"}, KafkaCode.INVALID_REQUEST),
        ({"RequestData": b"\0\x13\x03\xe7\0\0\0\7\0\1a\0"}, KafkaCode.UNSUPPORTED_VERSION),
        ({"RequestData": b"\0\x01\0\x0c\0\0\0\7\0\1a\0"}, KafkaCode.INVALID_REQUEST),
        ({"RequestData": b"\0\x3a\0\0\0\0\0\7\0\1a\0"}, KafkaCode.INVALID_REQUEST),
    ],
    ids=[
        "no principal",
        "a strange principal",
        "half an address",
        "no request",
        "half a request",
        "an unknown version",
        "a fetch",
        "an envelope within",
    ],
)
def test_a_broken_envelope_has_a_code_of_its_own(changes, code):
    cluster = ListeningCluster(creating)
    good = {
        "RequestData": b"\0\x13\0\7\0\0\0\7\0\1a\0",
        "RequestPrincipal": b"\0\0\x05User\6alice\0\0",
        "ClientHostAddress": b"\x0a\1\2\3",
    }
    assert cluster.kafka(58, 0, {**good, **changes}) == {"ResponseData": None, "ErrorCode": code}
