"""Rights that change between the moments of a request, claims, and what a refusal says."""

from typing import Any

import pytest

from metadata.messages import WantedState
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    RemoveAccessControlEntryRecord,
)
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Broker, Cluster

pytestmark = pytest.mark.simulation

ALICE = Caller("User:alice", "token", "10.0.0.7")
ROOT = Caller("User:root", "token", "10.0.0.9")
OF_BROKER = Caller("Broker:1", "certificate", "10.0.0.1")
TOPIC = {"name": "orders", "numPartitions": 1, "replicationFactor": 1}


def entry(
    operation: AclOperation,
    name: str = "orders",
    kind: AclResourceType = AclResourceType.TOPIC,
    principal: str = "User:alice",
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern: AclPatternType = AclPatternType.LITERAL,
    number: int = 1,
) -> AccessControlEntryRecord:
    uuid = number.to_bytes(16, "big")
    return AccessControlEntryRecord(
        uuid, kind, name, pattern, principal, "*", operation, permission
    )


def made(enforcement: str = "on", nodes: int = 3, **config: Any) -> Any:
    cluster: Any = Cluster(
        nodes=nodes, authorization=enforcement, super_users=frozenset({"User:root"}), **config
    )
    broker = cluster.broker_1 = Broker(cluster, 1)
    for wanted in (WantedState.FENCED, WantedState.ONLINE, WantedState.ONLINE):
        replies = broker.send(wanted, caller=OF_BROKER)
        cluster.run_until(lambda got=replies: bool(got))
        broker.take(replies[0])
        cluster.run(0.1)
    return cluster


def create(cluster: Any, caller: Caller = ALICE, **options: Any) -> tuple[int, Any]:
    body = {"topics": [TOPIC], "dryRun": options.pop("dry_run", False)}
    answer: tuple[int, Any] = cluster.ask("POST", "/v1/topics", body, caller=caller, **options)
    return answer


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_refusal_says_which_right_lacks_and_why(dry_run):
    cluster = made()
    status, reply = create(cluster, dry_run=dry_run)
    assert (status, reply["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    assert reply["message"] == (
        "User:alice may not create topics: it lacks CREATE on TOPIC orders, or CREATE on CLUSTER "
        "kafka-cluster; no access control entry is about the resource"
    )
    assert reply["details"] == {"principal": "User:alice", "lacks": "CREATE on TOPIC orders"}
    cluster.write(entry(AclOperation.CREATE, permission=AclPermissionType.DENY))
    status, reply = create(cluster, dry_run=dry_run)
    uuid = uuid_text((1).to_bytes(16, "big"))
    assert reply["message"].endswith(f"entry {uuid} denies it to User:alice")
    assert reply["details"]["entry"] == uuid
    assert cluster.image.topics.named("orders") is None


def test_an_entry_allows_and_its_removal_refuses_the_next_request():
    cluster = made()
    cluster.write(entry(AclOperation.CREATE))
    assert create(cluster)[0] == 200
    cluster.write(RemoveAccessControlEntryRecord((1).to_bytes(16, "big")))
    assert create(cluster)[0] == 403


def test_a_repeated_request_is_judged_before_its_old_answer_is_recalled():
    cluster = made()
    cluster.write(entry(AclOperation.CREATE))
    now_ms = cluster.processes[1].clock.wall_ms()
    headers = {"x-logberg-request-id": uuid_text(uuid7(now_ms, 7))}
    status, first = create(cluster, headers=headers)
    assert status == 200
    assert create(cluster, headers=headers)[1]["offset"] == first["offset"]
    cluster.write(RemoveAccessControlEntryRecord((1).to_bytes(16, "big")))
    status, reply = create(cluster, headers=headers)
    assert (status, reply["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    assert create(cluster, caller=ROOT, headers=headers)[0] == 200


def test_a_rule_that_changes_while_the_change_waits_for_its_turn_decides():
    cluster = made()
    cluster.write(entry(AclOperation.CREATE))
    cluster.hold_the_turn()
    acl = {"principal": "User:alice"}
    removal = cluster.send("DELETE", "/v1/acls", {"filters": [acl]}, caller=ROOT)
    change = cluster.send("POST", "/v1/topics", {"topics": [TOPIC]}, caller=ALICE)
    cluster.run_until(lambda: bool(removal and change))
    assert (removal[0].status, change[0].status) == (200, 403)
    assert cluster.image.topics.named("orders") is None
    cluster.assert_equal()


def test_a_change_that_was_prepared_beside_others_is_judged_again_when_it_is_written():
    cluster = made()
    cluster.write(entry(AclOperation.CREATE))
    many = [{"name": "orders", "numPartitions": 3_000, "replicationFactor": 1}]
    cluster.processes[1].clock.cost_us = 50
    change = cluster.send("POST", "/v1/topics", {"topics": many}, caller=ALICE)
    acl = {"principal": "User:alice"}
    removal = cluster.send("DELETE", "/v1/acls", {"filters": [acl]}, caller=ROOT)
    cluster.run_until(lambda: bool(removal and change))
    assert (removal[0].status, change[0].status) == (200, 403)
    assert cluster.image.topics.named("orders") is None


def test_a_read_that_waited_is_judged_when_it_is_answered():
    cluster = made()
    rights = entry(AclOperation.READ, "audit", AclResourceType.CLUSTER)
    cluster.write(rights)
    query = {"offset": str(cluster.image.offset), "waitMs": "5000", "format": "json"}
    waiting = cluster.send("GET", "/v1/log", query=query, caller=ALICE)
    cluster.run(0.2)
    assert not waiting
    cluster.write(RemoveAccessControlEntryRecord(rights.id))
    cluster.write(entry(AclOperation.READ, "x", number=2))
    cluster.run_until(lambda: bool(waiting))
    assert waiting[0].status == 403


def test_a_standby_sends_changes_to_the_leader_and_judges_what_it_answers_itself():
    cluster = made()
    status, reply = create(cluster, node=2)
    assert (status, reply["code"]) == (421, "NOT_CONTROLLER")
    stale = {"consistency": "stale"}
    assert cluster.ask("GET", "/v1/brokers", query=stale, node=2, caller=ALICE)[0] == 403
    assert cluster.ask("GET", "/v1/brokers", query=stale, node=2, caller=ROOT)[0] == 200
    # The offset that the grant reached is waited for before the read is judged.
    cluster.write(entry(AclOperation.DESCRIBE, "kafka-cluster", AclResourceType.CLUSTER))
    least = {"minOffset": str(cluster.image.offset)}
    assert cluster.ask("GET", "/v1/brokers", query=least, node=2, caller=ALICE)[0] == 200


def test_prefixes_wildcards_and_the_order_deny_allow():
    cluster = made()
    ops = AclOperation
    deny, prefixed = AclPermissionType.DENY, AclPatternType.PREFIXED
    cluster.write(
        entry(ops.DESCRIBE, "or", pattern=prefixed, number=1),
        entry(ops.DESCRIBE, "orders", permission=deny, number=2),
        entry(ops.DESCRIBE, "*", principal="User:bob", number=3),
    )
    bob = Caller("User:bob", "token", "10.0.0.8")

    def may(name: str, caller: Caller) -> bool:
        code = cluster.ask("GET", f"/v1/topics/{name}", caller=caller)[1]["code"]
        return bool(code == "UNKNOWN_TOPIC_OR_PARTITION")

    assert [may(name, ALICE) for name in ("orange", "orders", "other")] == [True, False, False]
    assert [may(name, bob) for name in ("orange", "orders", "other")] == [True, True, True]


def test_a_broker_has_its_own_rights_unless_an_entry_denies_them():
    cluster = made()
    denied = entry(
        AclOperation.CLUSTER_ACTION,
        "kafka-cluster",
        AclResourceType.CLUSTER,
        principal="Broker:1",
        permission=AclPermissionType.DENY,
    )
    cluster.write(denied)
    replies = cluster.broker_1.send(caller=OF_BROKER)
    cluster.run_until(lambda: bool(replies))
    assert replies[0].error.code == "CLUSTER_AUTHORIZATION_FAILED"
    cluster.write(RemoveAccessControlEntryRecord(denied.id))
    replies = cluster.broker_1.send(caller=OF_BROKER)
    cluster.run_until(lambda: bool(replies))
    assert replies[0].error is None


def test_anonymous_callers_speak_for_no_broker_where_rights_are_enforced():
    cluster = made()
    reply = cluster.broker_1.fetch()
    assert reply.error is not None
    assert reply.error.code == "CLUSTER_AUTHORIZATION_FAILED"


def test_many_names_are_judged_in_steps():
    cluster = made()
    names = [f"{'n' * 200}-{number}" for number in range(200)]
    cluster.write(entry(AclOperation.DELETE, "n", pattern=AclPatternType.PREFIXED))
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": names}, caller=ALICE)
    assert status == 200, reply
    names.append("x")
    status, reply = cluster.ask("DELETE", "/v1/topics", {"names": names}, caller=ALICE)
    assert (status, reply["details"]["lacks"]) == (403, "DELETE on TOPIC x")


def test_topics_named_by_id_need_the_right_on_their_name():
    cluster = made()
    cluster.write(entry(AclOperation.CREATE))
    create(cluster)
    ids = [uuid_text(cluster.image.topics.named("orders").topic_id), uuid_text(bytes(15) + b"\x09")]
    status, reply = cluster.ask("DELETE", "/v1/topics", {"topicIds": ids}, caller=ALICE)
    assert (status, reply["details"]["lacks"]) == (403, f"DELETE on TOPIC {ids[0]}")
    cluster.write(entry(AclOperation.DELETE, number=2))
    assert cluster.ask("DELETE", "/v1/topics", {"topicIds": ids}, caller=ALICE)[0] == 200
    assert cluster.image.topics.named("orders") is None


@pytest.mark.parametrize(
    ("right", "shown"),
    [
        (None, False),
        (entry(AclOperation.CREATE, number=2), False),
        (entry(AclOperation.DESCRIBE, number=2), True),
        (entry(AclOperation.READ, number=2), True),
        (entry(AclOperation.DESCRIBE, "kafka-cluster", AclResourceType.CLUSTER, number=2), True),
    ],
    ids=["no right", "may create it", "may describe it", "may read it", "may describe the cluster"],
)
@pytest.mark.parametrize("denied", [False, True])
def test_the_name_behind_an_id_is_told_to_who_may_describe_the_topic(right, shown, denied):
    """Attack: whoever has only an id asks to delete the topic, and reads the refusal."""
    cluster = made(nodes=1)
    assert create(cluster, caller=ROOT)[0] == 200
    if right is not None:
        cluster.write(right)
    if denied:
        cluster.write(entry(AclOperation.DELETE, permission=AclPermissionType.DENY))
    topic_id = uuid_text(cluster.image.topics.named("orders").topic_id)
    status, reply = cluster.ask("DELETE", "/v1/topics", {"topicIds": [topic_id]}, caller=ALICE)
    assert (status, reply["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    assert ("orders" in str(reply)) is shown
    assert (topic_id in str(reply)) is not shown
    assert ("entry" in reply["details"]) is (shown and denied)


@pytest.mark.parametrize(("enforcement", "status"), [("on", 403), ("log-only", 200), ("off", 200)])
def test_log_only_answers_counts_and_logs_what_on_refuses(enforcement, status):
    cluster = made(enforcement, nodes=1)
    assert create(cluster)[0] == status
    text = cluster.ask("GET", "/metrics")[1].decode()
    line = 'logberg_access_refused_total{operation="create_topics",enforced="%s"} 1'
    lines = cluster.events("access_refused")
    if enforcement == "off":
        assert "logberg_access_refused_total{" not in text
        assert not lines
        return
    enforced = "yes" if enforcement == "on" else "no"
    assert line % enforced in text
    (told,) = [each for each in lines if each["who"] == "User:alice"]
    assert told["operation"] == "create_topics"
    assert told["lacks"] == "CREATE on TOPIC orders"
    assert (told["address"], told["enforced"], told["count"]) == ("10.0.0.7", enforced, 1)


def test_entries_for_our_own_nouns_are_taken_and_others_refused():
    cluster = made()

    def added(name: str) -> str:
        acl = {
            "resourceType": "CLUSTER",
            "resourceName": name,
            "principal": "User:alice",
            "operation": "READ",
        }
        _, reply = cluster.ask("POST", "/v1/acls", {"acls": [acl]}, caller=ROOT)
        error = reply["acls"][0].get("error")
        return "" if error is None else str(error["message"])

    for name in ("kafka-cluster", "quorum", "audit", "placement", "bridge", "coordination:key:/a"):
        assert added(name) == "", name
    for name in ("kafka", "*", "coordination", "topic:a"):
        assert "the CLUSTER resource has one of the names" in added(name), name


def test_a_list_of_keys_is_refused_if_an_entry_denies_a_key_in_it():
    cluster = made()
    kind, deny = AclResourceType.CLUSTER, AclPermissionType.DENY
    prefixed = AclPatternType.PREFIXED
    cluster.write(
        entry(AclOperation.READ, "coordination:key:/app/", kind, pattern=prefixed),
        entry(AclOperation.READ, "coordination:key:/app/secret", kind, permission=deny, number=2),
    )

    def listed(prefix: str) -> int:
        path = "/v1/coordination/keys"
        return int(cluster.ask("GET", path, query={"prefix": prefix}, caller=ALICE)[0])

    assert [listed(p) for p in ("/app/", "/app/se", "/app/b", "/ap")] == [403, 403, 200, 403]
    status, reply = cluster.ask(
        "POST", "/v1/coordination/watch", {"scopes": [{"prefix": "/app/"}]}, caller=ALICE
    )
    assert (status, reply["details"]["entry"]) == (403, uuid_text((2).to_bytes(16, "big")))


@pytest.mark.parametrize(("enforcement", "status"), [("on", 403), ("log-only", 200), ("off", 200)])
def test_a_read_for_somebody_who_is_not_granted_is_a_refusal_too(enforcement, status):
    cluster = made(enforcement, nodes=1)
    claim = {"x-logberg-on-behalf-of": "User:root"}
    assert cluster.ask("GET", "/v1/topics", caller=ALICE, headers=claim)[0] == status
    told = [each["who"] for each in cluster.events("access_refused")]
    assert told == ([] if enforcement == "off" else ["User:alice"])
    assert cluster.ask("GET", "/health/live", caller=ALICE, headers=claim)[0] == 200


@pytest.mark.parametrize(
    ("caller", "claim", "status", "known_as", "super_user"),
    [
        (ALICE, {}, 200, "User:alice", False),
        (ROOT, {}, 200, "User:root", True),
        (OF_BROKER, {"x-logberg-on-behalf-of": "User:alice"}, 200, "User:alice", False),
        (OF_BROKER, {"x-logberg-on-behalf-of": "User:root"}, 403, None, None),
        (Caller(), {}, 403, None, None),
    ],
    ids=["a user", "a super user", "a granted claim", "another claim", "no credentials"],
)
def test_each_node_says_as_whom_it_knows_the_caller(caller, claim, status, known_as, super_user):
    cluster = made(delegations={1: frozenset({"User:alice"})})
    for node in (1, 2, 3):
        found, reply = cluster.ask("GET", "/v1/caller", caller=caller, headers=claim, node=node)
        said = (found, reply.get("principal"), reply.get("superUser"))
        assert said == (status, known_as, super_user)


@pytest.mark.parametrize(
    ("principal", "operation", "name", "allowed"),
    [
        ("Broker:1", "CLUSTER_ACTION", "kafka-cluster", True),
        ("Broker:2", "CLUSTER_ACTION", "kafka-cluster", False),
        ("Broker:1", "ALTER", "kafka-cluster", False),
        ("Broker:1", "CLUSTER_ACTION", "quorum", False),
        ("User:alice", "CLUSTER_ACTION", "kafka-cluster", False),
    ],
)
def test_a_check_knows_a_broker_s_own_right(principal, operation, name, allowed):
    cluster = made(nodes=1)
    denied = entry(
        AclOperation.CLUSTER_ACTION,
        "kafka-cluster",
        AclResourceType.CLUSTER,
        principal="Broker:2",
        permission=AclPermissionType.DENY,
    )
    cluster.write(denied)
    query = {"principal": principal, "operation": operation}
    query |= {"resourceType": "CLUSTER", "resourceName": name}
    _, reply = cluster.ask("GET", "/v1/acls/check", query=query, caller=ROOT)
    assert reply["allowed"] is allowed
    assert (reply["reason"] == "own right") is allowed
