"""An agent's Kafka listener judges people by their pseudonyms."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.clients.allowed_operations import ON_CLUSTER, ON_TOPIC
from metadata.records import AclOperation, AclPermissionType, AclResourceType
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from tests.unit.broker_agent.tied_names import (
    ALICE,
    BOB,
    P_ALICE,
    ROOT,
    describing,
    erased,
    key_with,
    keys_named,
    tied,
)
from tests.unit.kafka_listener.clients.test_agent_rights import (
    CLUSTER,
    CONFIGS,
    LOG_DIRS,
    METADATA,
    PARTITIONS,
    RESOURCES,
    TOPIC_TYPE,
    JudgedFront,
    entry,
)

HERE = key_with()
TOPICS = {"Topics": None, "IncludeTopicAuthorizedOperations": True}
OF_CLUSTER = {"IncludeClusterAuthorizedOperations": True, "EndpointType": 1}
REFUSED, LATER = KafkaCode.CLUSTER_AUTHORIZATION_FAILED, KafkaCode.THROTTLING_QUOTA_EXCEEDED


def front_with(key: ClusterKey | None, authorization: str = "on") -> JudgedFront:
    """Everybody may describe the topics a and b. The pseudonym of alice may not describe b."""
    front = JudgedFront(authorization, key)
    front.replay(
        *keys_named(),
        tied(),
        describing("User:*", "a", allow=True, number=1),
        describing("User:*", "b", allow=True, number=2),
        describing(P_ALICE, "b", allow=False, number=3),
    )
    return front


@pytest.mark.parametrize("method", ["certificate", "scram"])
def test_an_entry_that_denies_a_pseudonym_hides_the_topic_from_the_person(method: str) -> None:
    front = front_with(HERE)
    alice = Caller("User:alice", method, "10.0.0.7")
    assert front.names(BOB) == ["a", "b"]
    assert front.names(alice) == ["a"]
    pages = {"Topics": [], "ResponsePartitionLimit": 10, "Cursor": None}
    found = front.ask(PARTITIONS, 0, pages, alice)["Topics"]
    assert [each["Name"] for each in found] == ["a"]
    front.replay(erased())
    assert front.names(alice) == ["a", "b"]


def test_the_parts_of_an_answer_are_judged_by_the_pseudonym() -> None:
    front = front_with(HERE)
    deny = AclPermissionType.DENY
    cluster, name = AclResourceType.CLUSTER, "kafka-cluster"
    front.replay(
        entry(AclOperation.ALL, name, cluster, 4, principal="User:*"),
        entry(AclOperation.CREATE, name, cluster, 5, deny, principal=P_ALICE),
        entry(AclOperation.DESCRIBE_CONFIGS, "a", number=6, principal="User:*"),
        entry(AclOperation.DESCRIBE_CONFIGS, "a", number=7, permission=deny, principal=P_ALICE),
        entry(AclOperation.DESCRIBE_CONFIGS, name, cluster, 8, deny, principal=P_ALICE),
    )
    mine = front.ask(CLUSTER, 1, OF_CLUSTER, ALICE)["ClusterAuthorizedOperations"]
    without = (1 << AclOperation.CREATE) | (1 << AclOperation.DESCRIBE_CONFIGS)
    assert (mine, mine & without) == (ON_CLUSTER & ~without, 0)
    asked = {
        "Resources": [{"ResourceType": TOPIC_TYPE, "ResourceName": "a", "ConfigurationKeys": None}]
    }
    codes = [
        front.ask(CONFIGS, 4, asked, caller)["Results"][0]["ErrorCode"] for caller in (BOB, ALICE)
    ]
    assert codes == [0, KafkaCode.TOPIC_AUTHORIZATION_FAILED]


def test_clients_of_one_name_and_its_pseudonym_share_an_answer() -> None:
    front = front_with(HERE)
    by_token = Caller(P_ALICE, "token", ALICE.address)
    assert front.names(ALICE) == front.names(by_token) == ["a"]


@pytest.mark.parametrize(
    ("key", "caller", "code"),
    [
        (None, ALICE, REFUSED),
        (None, BOB, REFUSED),
        (key_with(None), ALICE, LATER),
        (HERE, Caller(P_ALICE, "certificate"), REFUSED),
        (HERE, Caller(P_ALICE, "scram"), REFUSED),
    ],
)
def test_who_cannot_be_judged_gets_no_answer(
    key: ClusterKey | None, caller: Caller, code: KafkaCode
) -> None:
    front = front_with(key)
    pages = {"Topics": [{"Name": "a"}], "ResponsePartitionLimit": 10, "Cursor": None}
    assert front.names(caller) == []
    for api_key, version, fields in (
        (METADATA, 13, {"Topics": None}),
        (LOG_DIRS, 4, {"Topics": None}),
        (CLUSTER, 1, OF_CLUSTER),
        (RESOURCES, 1, {"ResourceTypes": []}),
    ):
        assert front.ask(api_key, version, fields, caller)["ErrorCode"] == code
    (page,) = front.ask(PARTITIONS, 0, pages, caller)["Topics"]
    assert page["ErrorCode"] == code
    assert front.names(ROOT) == ["a", "ab", "b"]


def test_who_can_no_longer_be_judged_while_an_answer_is_made_is_refused() -> None:
    front, without = front_with(HERE), front_with(None).people
    many = {"Topics": [{"Name": f"t-{number}", "TopicId": bytes(16)} for number in range(200)]}
    assert len(front.ask(METADATA, 12, many, ALICE)["Topics"]) == 200
    answers = iter([ALICE.principal])
    front.people.principal_of = lambda caller: next(answers, "") or without.principal_of(caller)
    codes = {each["ErrorCode"] for each in front.ask(METADATA, 12, many, ALICE)["Topics"]}
    assert codes == {REFUSED}


@pytest.mark.parametrize("authorization", ["off", "log-only"])
def test_without_enforcement_nobody_needs_to_be_judged(authorization: str) -> None:
    front = front_with(None, authorization)
    found = front.ask(METADATA, 12, TOPICS, ALICE)["Topics"]
    assert {each["TopicAuthorizedOperations"] for each in found} == {ON_TOPIC}
    assert front.ask(LOG_DIRS, 4, {"Topics": None}, ALICE)["ErrorCode"] == 0
    assert front.refusals.counters["access_refused"] == 2 * (authorization == "log-only")
