"""A watch of a topic shows what its asker may see by other routes, and nothing else of the log."""

from typing import Any

import pytest

from controller.access.watch_rights import needs_of_records
from metadata.records import (
    RECORD_CLASSES,
    AccessControlEntryRecord,
    AclOperation,
    AclPermissionType,
    AclResourceType,
    ConfigRecord,
    RemoveAccessControlEntryRecord,
)
from metadata.records.configs import ConfigResourceType
from tests.unit.controller.access.test_guard import ALICE, ROOT, create, entry, made

pytestmark = pytest.mark.simulation

CLUSTER, DENY = AclResourceType.CLUSTER, AclPermissionType.DENY
MAY_DESCRIBE = entry(AclOperation.DESCRIBE)
MAY_DESCRIBE_CONFIGS = entry(AclOperation.DESCRIBE_CONFIGS, number=2)
MAY_DESCRIBE_ALL_CONFIGS = entry(AclOperation.DESCRIBE_CONFIGS, "kafka-cluster", CLUSTER, number=2)
MAY_DESCRIBE_CLUSTER = entry(AclOperation.DESCRIBE, "kafka-cluster", CLUSTER, number=3)
MAY_READ_LOG = entry(AclOperation.READ, "audit", CLUSTER, number=4)
TOPIC = ["TOPIC_RECORD", "PARTITION_RECORD"]
ENTRY, CONFIG = "ACCESS_CONTROL_ENTRY_RECORD", "CONFIG_RECORD"
OF_BOB = {
    "resourceType": "TOPIC",
    "resourceName": "orders",
    "principal": "User:bob",
    "operation": "WRITE",
}


def stocked(*entries: AccessControlEntryRecord) -> tuple[Any, int]:
    """Return a cluster with a topic, an entry about it and a config of it, and where they begin."""
    cluster = made(nodes=1)
    cluster.write(*entries)
    start: int = cluster.image.offset
    assert create(cluster, caller=ROOT)[0] == 200
    assert cluster.ask("POST", "/v1/acls", {"acls": [OF_BOB]}, caller=ROOT)[0] == 200
    body = {"configs": [{"name": "retention.ms", "value": "50000"}]}
    assert cluster.ask("PATCH", "/v1/configs/topic/orders", body, caller=ROOT)[0] == 200
    return cluster, start


def watched(
    cluster: Any, start: object, resource: str = "topic:orders", **query: str
) -> tuple[int, Any]:
    query |= {"resource": resource, "from": str(start)}
    answer: tuple[int, Any] = cluster.ask("GET", "/v1/watch", query=query, caller=ALICE)
    return answer


def kinds(reply: Any) -> list[str]:
    return [each["record"]["type"] for each in reply["records"]]


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        ([MAY_DESCRIBE], TOPIC),
        ([MAY_DESCRIBE, MAY_DESCRIBE_CONFIGS], [*TOPIC, CONFIG]),
        ([MAY_DESCRIBE, MAY_DESCRIBE_ALL_CONFIGS], [*TOPIC, CONFIG]),
        ([MAY_DESCRIBE, MAY_DESCRIBE_CLUSTER], [*TOPIC, ENTRY]),
        ([MAY_READ_LOG], [*TOPIC, ENTRY, CONFIG]),
        (
            [MAY_READ_LOG, entry(AclOperation.DESCRIBE_CONFIGS, permission=DENY, number=5)],
            [*TOPIC, ENTRY, CONFIG],
        ),
    ],
)
def test_a_record_is_shown_to_whom_the_route_that_shows_it_would_show_it(entries, shown):
    cluster, start = stocked(*entries)
    status, reply = watched(cluster, start)
    assert (status, kinds(reply)) == (200, shown)
    assert ("User:bob" in str(reply)) is (ENTRY in shown)
    assert ("50000" in str(reply)) is (CONFIG in shown)


def test_only_who_may_read_the_log_hears_who_made_a_change_from_where_and_why():
    cluster, start = stocked(MAY_DESCRIBE)
    why = {"x-logberg-reason": "it was full"}
    assert cluster.ask("DELETE", "/v1/topics/orders", caller=ROOT, headers=why)[0] == 200
    status, reply = watched(cluster, start)
    assert status == 200
    fields = {"offset", "epoch", "timestampMs", "record"}
    assert [each.keys() for each in reply["records"]] == [fields] * 3
    cluster.write(MAY_READ_LOG)
    last = watched(cluster, start)[1]["records"][-1]
    said = (last["principal"], last["clientAddress"], last["reason"])
    assert said == (ROOT.principal, ROOT.address, "it was full")


@pytest.mark.parametrize(
    ("resource", "status"), [("partition:orders-0", 200), ("acl:x", 403), ("config:x", 403)]
)
def test_a_watch_of_a_partition_is_one_of_its_topic_and_others_need_the_log(resource, status):
    cluster, start = stocked(MAY_DESCRIBE)
    answered, reply = watched(cluster, start, resource)
    assert answered == status
    if status == 200:
        assert kinds(reply) == ["PARTITION_RECORD"]
        assert "principal" not in reply["records"][0]


@pytest.mark.parametrize("given", [True, False])
def test_a_watch_that_waited_shows_what_the_newest_entries_allow(given):
    """Two watchers of different rights wait at the same place, and one's rights change."""
    cluster, _ = stocked(MAY_DESCRIBE, *([] if given else [MAY_DESCRIBE_CONFIGS]))
    query = {"resource": "topic:orders", "waitMs": "20000"}
    mine, of_root = (
        cluster.send("GET", "/v1/watch", query=query, caller=caller) for caller in (ALICE, ROOT)
    )
    cluster.run(0.2)
    assert not mine
    assert not of_root
    config = ConfigRecord(ConfigResourceType.TOPIC, "orders", "retention.ms", "70000")
    now = MAY_DESCRIBE_CONFIGS if given else RemoveAccessControlEntryRecord(MAY_DESCRIBE_CONFIGS.id)
    cluster.write(now, config)
    cluster.run_until(lambda: bool(of_root))
    cluster.run(21.0)
    assert (b"70000" in mine[0].body) is given
    assert b"70000" in of_root[0].body


def test_every_kind_of_record_about_a_topic_has_a_place_in_the_table():
    """One that has none is shown to nobody but readers of the log."""
    about = {each for each in RECORD_CLASSES if {"topic", "partition"} & {*each.SUBJECT_KINDS}}
    assert {kind for kinds, _ in needs_of_records("orders") for kind in kinds} == about
