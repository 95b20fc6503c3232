"""Conditional changes: refused if what they touch has changed since their caller read it."""

from typing import Any

import pytest

from controller.leader.last_changes import LastChanges
from controller.leader.resources import _KEYS, resources_of
from metadata.features import ELR_VERSION
from metadata.image import EMPTY
from metadata.records import RECORD_CLASSES, FeatureLevelRecord, NoOpRecord
from tests.unit.controller.cluster import DECLARED, Cluster, keep_alive
from tests.unit.controller.leader.test_changes import request_id

HEADER = "x-logberg-expect-offset"


@pytest.fixture
def cluster():
    cluster: Any = Cluster()
    cluster.brokers = cluster.online(1, 2, features=DECLARED)
    cluster.write(FeatureLevelRecord("metadata.version", 33))
    cluster.create_topic("t", factor=1)
    cluster.create_topic("u", factor=1)
    cluster.assign("moved", (2, 1))
    return cluster


def offset_of(cluster):
    """What a user reads."""
    status, reply = cluster.ask("GET", "/v1/topics")
    assert status == 200
    return reply["offset"]


def ask(cluster, change, expected=None, **headers):
    method, path, body = change
    if expected is not None:
        headers[HEADER] = str(expected)
    return cluster.ask(method, path, body, headers=headers)


def config(topic, value="5000"):
    body = {"configs": [{"name": "retention.ms", "value": value}]}
    return ("PATCH", f"/v1/configs/topic/{topic}", body)


def acl(name, operation="READ"):
    entry = {"resourceType": "TOPIC", "resourceName": name, "operation": operation}
    return ("POST", "/v1/acls", {"acls": [entry | {"principal": "User:a"}]})


def quota(user, value=1.0):
    entity = [{"entityType": "user", "entityName": user}]
    operations = [{"key": "producer_byte_rate", "value": value}]
    return ("POST", "/v1/quotas", {"entries": [{"entity": entity, "operations": operations}]})


def elect(topic):
    wanted = [{"topic": topic, "partitions": [0]}]
    body = {"electionType": "preferred", "topicPartitions": wanted}
    return ("POST", "/v1/partitions/elect", body)


def reassign(topic, *replicas):
    row = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    return ("POST", "/v1/reassignments", {"partitions": [row]})


def add_partitions(topic, total):
    return ("POST", "/v1/partitions", {"topics": [{"name": topic, "count": total}]})


def new(topic):
    wanted = {"name": topic, "numPartitions": 1, "replicationFactor": 1}
    return ("POST", "/v1/topics", {"topics": [wanted]})


def delete(topic):
    return ("DELETE", f"/v1/topics/{topic}", None)


def feature(name, level):
    return ("POST", "/v1/features", {"updates": [{"feature": name, "maxVersionLevel": level}]})


CASES = {
    # what changes after the read; the conditional change; what it is refused for, or nothing
    "a topic made anew": ((delete("t"), new("t")), delete("t"), "topic:t"),
    "a topic that came and went": ((new("x"), delete("x")), new("x"), "topic:x"),
    "a topic that went": ((delete("t"),), new("t"), "topic:t"),
    "more partitions": ((add_partitions("t", 2),), add_partitions("t", 3), "topic:t"),
    "more partitions, then its end": ((add_partitions("t", 2),), delete("t"), "topic:t"),
    "another topic": ((delete("u"),), delete("t"), None),
    "configs of the topic": ((config("t"),), delete("t"), "config:topic:t"),
    "a replica of the topic": ((reassign("moved", 1),), delete("moved"), None),
    "the same config": ((config("t", "1"),), config("t", "2"), "config:topic:t"),
    "configs of another topic": ((config("u"),), config("t"), None),
    "configs of a topic that is made anew": (
        (delete("t"), new("t")),
        config("t"),
        "config:topic:t",
    ),
    "a replica that moved": ((reassign("moved", 1),), reassign("moved", 1, 2), "partition:moved-0"),
    "a leader that moved": (
        (reassign("moved", 1, 2),),
        reassign("moved", 2, 1),
        "partition:moved-0",
    ),
    "a partition of another topic": ((reassign("moved", 1),), reassign("t", 1, 2), None),
    "a partition of a topic that is made anew": (
        (delete("t"), new("t")),
        reassign("t", 1, 2),
        "topic:t",
    ),
    "the same pattern": ((acl("t", "WRITE"),), acl("t"), "acl:2:3:t"),
    "another pattern": ((acl("u"),), acl("t"), None),
    "an entry that is gone": (
        (("DELETE", "/v1/acls", {"filters": [{}]}),),
        acl("kept"),
        "acl:2:3:kept",
    ),
    "the same entity": ((quota("a"),), quota("a", 2.0), "quota:user=a"),
    "another entity": ((quota("b"),), quota("a"), None),
    "the same feature": (
        (feature(ELR_VERSION, 1),),
        feature(ELR_VERSION, 0),
        f"feature:{ELR_VERSION}",
    ),
    "another feature": ((feature(ELR_VERSION, 1),), new("y"), None),
    "nothing": ((), delete("t"), None),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_change_is_refused_if_what_it_touches_has_changed_since(cluster, case):
    meanwhile, change, resource = CASES[case]
    assert ask(cluster, acl("kept", "WRITE"))[0] == 200
    read_at = offset_of(cluster)
    for other in meanwhile:
        assert ask(cluster, other)[0] == 200
    end = cluster.image.offset
    status, reply = ask(cluster, change, read_at)
    if resource is None:
        assert status == 200, reply
        return
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")
    assert reply["details"]["resource"] == resource
    assert read_at <= int(reply["details"]["changedAt"]) < end
    assert cluster.image.offset == end
    # The advice is right: read again, and the change is made.
    assert ask(cluster, change, offset_of(cluster))[0] != 412


def test_a_broker_that_was_fenced_meanwhile_is_not_unregistered(cluster):
    read_at = offset_of(cluster)
    keep_alive(cluster, cluster.brokers[1:], 20.0)
    assert cluster.broker(1).fenced
    headers = {HEADER: str(read_at)}
    status, reply = cluster.ask("DELETE", "/v1/brokers/1", headers=headers)
    assert (status, reply["details"]["resource"]) == (412, "broker:1")
    headers = {HEADER: str(offset_of(cluster))}
    assert (
        cluster.ask("DELETE", "/v1/brokers/1", headers=headers, query={"force": "true"})[0] == 200
    )


def test_a_change_that_is_only_proposed_counts(cluster):
    """The second request comes before the first is committed."""
    read_at = offset_of(cluster)
    first = cluster.send("PATCH", *config("t", "1")[1:])
    second = cluster.send("PATCH", *config("t", "2")[1:], headers={HEADER: str(read_at)})
    third = cluster.send("PATCH", *config("u", "2")[1:], headers={HEADER: str(read_at)})
    assert not first
    assert not second
    cluster.run_until(lambda: bool(first and second and third))
    assert [first[0].status, second[0].status, third[0].status] == [200, 412, 200]


def test_of_two_conditional_changes_at_one_offset_one_is_made(cluster):
    read_at = offset_of(cluster)
    sent = [
        cluster.send("PATCH", *config("t", str(n))[1:], headers={HEADER: str(read_at)})
        for n in range(5)
    ]
    cluster.run_until(lambda: all(sent))
    assert sorted(replies[0].status for replies in sent) == [200, 412, 412, 412, 412]


def test_the_offset_of_a_change_is_the_condition_of_the_next(cluster):
    offset = offset_of(cluster)
    for value in ("1", "2", "3"):
        status, reply = ask(cluster, config("t", value), offset)
        assert status == 200, reply
        offset = reply["offset"]


def test_a_dry_run_has_the_condition_too(cluster):
    read_at = offset_of(cluster)
    ask(cluster, config("t", "1"))
    method, path, body = config("t", "2")
    status, reply = ask(cluster, (method, path, body | {"dryRun": True}), read_at)
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")


def test_a_new_leader_refuses_what_it_cannot_know(cluster):
    read_at = offset_of(cluster)
    cluster.write(NoOpRecord())
    cluster.lead(2)
    status, reply = ask(cluster, config("t"), read_at)
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")
    assert read_at < int(reply["details"]["knownFrom"])
    assert ask(cluster, config("t"), offset_of(cluster))[0] == 200


def test_an_offset_beyond_the_end_is_refused(cluster):
    status, reply = ask(cluster, config("t"), offset_of(cluster) + 1_000)
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")
    assert "beyond" in reply["message"]


@pytest.mark.parametrize("text", ["", "-1", "1.5", "abc", "٣", "9" * 19])
def test_what_is_no_offset_is_refused(cluster, text):
    status, reply = cluster.ask("DELETE", "/v1/topics/t", headers={HEADER: text})
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert reply["details"]["field"] == HEADER


def test_a_retry_gets_the_first_answer_whatever_changed_since(cluster):
    key, read_at = request_id(cluster), offset_of(cluster)
    headers = {HEADER: str(read_at), "x-logberg-request-id": key}
    first = cluster.ask("PATCH", *config("t", "1")[1:], headers=headers)
    assert first[0] == 200
    ask(cluster, config("t", "2"))
    assert cluster.ask("PATCH", *config("t", "1")[1:], headers=headers) == first
    headers[HEADER] = str(first[1]["offset"])
    status, reply = cluster.ask("PATCH", *config("t", "1")[1:], headers=headers)
    assert (status, reply["code"]) == (409, "REQUEST_ID_REUSED")


def test_a_change_in_rounds_is_not_refused_for_its_own_records(cluster):
    """Each round moves 256 leaders."""
    body = {"topics": [{"name": "many", "numPartitions": 600, "replicationFactor": 2}]}
    assert cluster.ask("POST", "/v1/topics", body)[0] == 200
    read_at = offset_of(cluster)
    before = len(cluster.batches())
    status, reply = cluster.ask(
        "DELETE", "/v1/brokers/1", headers={HEADER: str(read_at)}, query={"force": "true"}
    )
    assert status == 200, reply
    assert len(cluster.batches()) > before + 2
    assert 1 not in cluster.image.cluster.brokers


def test_what_is_forgotten_may_have_changed():
    last = LastChanges(kept_max=2)
    last.begin(10)
    list(last.note([FeatureLevelRecord(name, 1) for name in "abc"], 10, EMPTY))
    assert last.of(("feature", "a")) is None
    assert last.floor == 11
    assert last.of(("feature", "b")) == 11
    list(last.note([FeatureLevelRecord("b", 2), FeatureLevelRecord("d", 1)], 13, EMPTY))
    assert last.of(("feature", "c")) is None
    assert (last.of(("feature", "b")), last.floor) == (13, 13)
    assert list(last.since(14)) == [("feature", "d")]


NO_RESOURCE = {
    "AbortTransactionRecord",
    "AttemptsRecord",
    "BeginEpochRecord",
    "BeginTransactionRecord",
    "ClusterGenerationRecord",
    "ClusterKeyRecord",
    "EndTransactionRecord",
    "EpochStartRecord",
    "KRaftVersionRecord",
    "NoOpRecord",
    "OutcomeFloorRecord",
    "RequestOutcomeRecord",
    "ShutdownOffsetRecord",
    "SignedHeadRecord",
    "SubjectKeysRecord",
    "ZkMigrationStateRecord",
}


def test_every_record_that_a_user_can_cause_has_a_resource():
    """A new record belongs into `controller.leader.resources`, or here with its reason."""
    known = {kind.__name__ for kind in _KEYS} | NO_RESOURCE | {"ClearElrRecord"}
    assert known == {kind.__name__ for kind in RECORD_CLASSES}
    assert resources_of(NoOpRecord(), EMPTY) == ()
