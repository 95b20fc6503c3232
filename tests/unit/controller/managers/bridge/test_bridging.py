"""The bridge: a source that leads, the gate that refuses others, and the modes."""

from typing import Any

import msgspec
import pytest

from logberg.importing.kafka_layout import read_kafka
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    KeyRecord,
    PartitionRecord,
    Record,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.unit.controller.managers.bridge.bridged_cluster import SOURCE, BridgedCluster
from tests.unit.logberg.importing.trees import kafka_tree

TREE = read_kafka(kafka_tree()).records
TOPIC_ID = bytes(range(16))
ALICE = (EntityData("user", "alice"),)
TOPIC = TopicRecord("a", TOPIC_ID)
PARTITION = PartitionRecord(0, TOPIC_ID, (1, 2), (1, 2), (), (), 1, 5, 7)
RETENTION = ConfigRecord(2, "a", "retention.ms", "1000")
BROKER_CONFIG = ConfigRecord(4, "", "log.cleaner.threads", "2")
QUOTA = ClientQuotaRecord(ALICE, "producer_byte_rate", 10.0, remove=False)
CREDENTIAL = UserScramCredentialRecord("alice", 1, bytes(16), bytes(32), bytes(32), 4096)
ACL = AccessControlEntryRecord(bytes(16), 2, "a", 3, "User:alice", "*", 3, 3)
ALL = (TOPIC, RETENTION, PARTITION, BROKER_CONFIG, QUOTA, CREDENTIAL, ACL)
LEGACY = {"brokerId": 1, "epoch": 77, "endpoints": ["PLAINTEXT://b1:9092"], "rack": "r1"}


@pytest.fixture
def bridged() -> BridgedCluster:
    return BridgedCluster()


def test_a_tree_of_kafka_is_followed_and_the_second_step_writes_its_revision_only(
    bridged: BridgedCluster,
) -> None:
    first = bridged.followed(TREE, brokers=[LEGACY])
    assert first["changed"] > len(TREE) - 5
    image = bridged.image
    assert image.topics.named("orders") is not None
    assert (image.bridge.state.mode, image.bridge.state.revision) == (1, 9)
    assert image.bridge.legacy_brokers[1].epoch == 77
    assert bridged.followed(TREE, brokers=[LEGACY])["changed"] == 0
    before = bridged.image.offset
    assert bridged.image.bridge.state.revision == 19
    bridged.followed(TREE, brokers=[LEGACY], revision=19)
    assert bridged.image.offset == before, "a step that brings nothing writes nothing"


def changed(record: Record, **fields: Any) -> tuple[Record, ...]:
    """Return all records, with one of them changed."""
    other = msgspec.structs.replace(record, **fields)
    return tuple(other if each is record else each for each in ALL)


def test_what_changes_in_the_source_changes_here(bridged: BridgedCluster) -> None:
    bridged.followed(ALL)
    bridged.followed(changed(RETENTION, value="2000"))
    assert bridged.image.configs.value(2, "a", "retention.ms") == "2000"
    bridged.followed(changed(PARTITION, isr=(2,), leader=2, leader_epoch=9, partition_epoch=12))
    here = bridged.image.topics.partitions[TOPIC_ID, 0]
    assert (here.isr, here.leader, here.leader_epoch, here.partition_epoch) == ((2,), -1, 10, 12)
    bridged.followed(changed(BROKER_CONFIG, value="3"))
    assert bridged.image.configs.value(4, "", "log.cleaner.threads") == "3"
    bridged.followed(changed(QUOTA, value=11.0))
    assert bridged.image.client_quotas.of(*ALICE) == {"producer_byte_rate": 11.0}
    sealed = bridged.image.scram.credentials["alice", 1]
    bridged.followed(changed(CREDENTIAL, salt=b"1" * 16))
    assert bridged.image.scram.credentials["alice", 1].salt == b"1" * 16
    assert bridged.image.scram.credentials["alice", 1].stored_key != sealed.stored_key
    bridged.followed(changed(ACL, principal="User:bob"))
    assert {e.principal for e in bridged.image.acls.entries.values()} == {"User:bob"}


def test_what_the_source_has_no_more_goes(bridged: BridgedCluster) -> None:
    bridged.followed(ALL, brokers=[LEGACY])
    bridged.followed((), brokers=[])
    image = bridged.image
    assert image.topics.named("a") is None
    assert image.configs.value(4, "", "log.cleaner.threads") is None
    assert not image.client_quotas.entities
    assert not image.scram.credentials
    assert not image.acls.entries
    assert not image.bridge.legacy_brokers


def test_a_topic_made_anew_replaces_the_old_one(bridged: BridgedCluster) -> None:
    bridged.followed(ALL)
    other = bytes(range(1, 17))
    again = (
        msgspec.structs.replace(TOPIC, topic_id=other),
        msgspec.structs.replace(PARTITION, topic_id=other),
    )
    bridged.followed(again, complete=[])
    assert bridged.image.topics.named("a").topic_id == other
    assert bridged.image.configs.value(2, "a", "retention.ms") is None
    bridged.followed((), complete=[], topicsGone=["a"])
    assert bridged.image.topics.named("a") is None
    assert len(bridged.image.acls.entries) == 1, "a family that isn't complete stays"


def test_the_first_step_replaces_nothing_that_is_here(bridged: BridgedCluster) -> None:
    made = {"topics": [{"name": "mine", "assignments": [[1]]}]}
    ask = bridged.cluster.ask
    entry = {
        "entity": [{"entityType": "user", "entityName": "alice"}],
        "operations": [{"key": "producer_byte_rate", "value": 99.0}],
    }
    assert ask("POST", "/v1/topics", made)[0] in (200, 400)
    assert ask("POST", "/v1/quotas", {"entries": [entry]})[0] == 200
    before = bridged.image.offset
    status, reply = bridged.step(ALL)
    assert status == 200
    assert reply["conflictCount"] == 1, reply
    assert "producer_byte_rate" in reply["conflicts"][0]["why"]
    assert bridged.image.offset == before


def test_while_the_source_leads_others_change_nothing_of_it(bridged: BridgedCluster) -> None:
    bridged.followed(ALL)
    before = bridged.image.offset
    quota = {
        "entity": [{"entityType": "user", "entityName": "alice"}],
        "operations": [{"key": "producer_byte_rate", "value": 99.0}],
    }
    acl = {"resourceType": "TOPIC", "resourceName": "a", "principal": "User:x", "operation": "READ"}
    for method, path, body in (
        ("DELETE", "/v1/topics", {"names": ["a"]}),
        ("POST", "/v1/quotas", {"entries": [quota]}),
        ("POST", "/v1/quotas", {"entries": [quota], "dryRun": True}),
        ("POST", "/v1/acls", {"acls": [acl]}),
    ):
        status, reply = bridged.cluster.ask(method, path, body)
        assert (status, reply["code"]) == (409, "SOURCE_LEADS"), (path, reply)
        assert SOURCE in reply["message"]
    assert bridged.image.offset == before
    session = {"ttlMs": 600_000}
    assert bridged.cluster.ask("POST", "/v1/coordination/sessions", session)[0] == 200


def test_a_step_begins_where_the_last_one_ended(bridged: BridgedCluster) -> None:
    bridged.followed(ALL)
    status, reply = bridged.step(ALL, fromRevision=3, revision=30)
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")
    assert reply["details"]["revision"] == "9"
    for wrong in ({"revision": 5}, {"sourceClusterId": "c2"}):
        assert bridged.step(ALL, **wrong)[0] == 400
    status, reply = bridged.step((KeyRecord("a", b"", 1, 1, 1),))
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_modes_follow_each_other_and_finalised_is_the_end(bridged: BridgedCluster) -> None:
    assert bridged.described()["mode"] == "none"
    assert bridged.mode("leading", 3)[0] == 400
    bridged.followed(ALL, brokers=[LEGACY])
    assert bridged.described()["brokers"] == [LEGACY]
    assert bridged.mode("finalised")[0] == 400
    assert bridged.mode("leading")[0] == 400
    assert bridged.mode("leading", 3, revision=8)[0] == 412
    assert bridged.mode("leading", 3)[0] == 200
    assert bridged.described()["claimEpoch"] == 3
    acl = {"resourceType": "TOPIC", "resourceName": "a", "principal": "User:x", "operation": "READ"}
    assert bridged.cluster.ask("POST", "/v1/acls", {"acls": [acl]})[0] == 200
    assert bridged.step(ALL)[0] == 400, "this cluster leads"
    bridged.followed((), complete=[], brokers=[])
    assert bridged.described()["brokers"] == []
    assert bridged.mode("leading", 4)[0] == 200, "a claim that is made anew"
    assert bridged.mode("finalised")[0] == 200
    assert bridged.described()["mode"] == "finalised"
    for mode, epoch in (("none", -1), ("leading", 5)):
        assert bridged.mode(mode, epoch)[0] == 400
    assert bridged.step(ALL)[0] == 400


def test_a_bridge_that_is_given_up_may_begin_again(bridged: BridgedCluster) -> None:
    bridged.followed(ALL, brokers=[LEGACY])
    assert bridged.mode("none")[0] == 200
    assert bridged.described()["brokers"] == []
    bridged.revision = -1
    bridged.followed(ALL, revision=9)
    assert bridged.described()["mode"] == "following"


def test_a_broker_registers_here_only_after_it_left_the_source() -> None:
    bridged = BridgedCluster()
    bridged.cluster.online(2)
    status, reply = bridged.step(ALL, brokers=[LEGACY | {"brokerId": 2}])
    assert status == 200
    assert [each["name"] for each in reply["conflicts"]] == ["topic a", "broker 2"]
    assert all("registered here" in each["why"] for each in reply["conflicts"])


def test_a_dry_run_shows_the_records_and_no_key_refuses_secrets() -> None:
    bridged = BridgedCluster()
    shown = bridged.followed(ALL, dryRun=True)
    assert len(shown["records"]) == len(ALL) + 1
    assert bridged.described()["mode"] == "none"
    keyless = BridgedCluster(cluster_key=None)
    status, reply = keyless.step((CREDENTIAL,))
    assert status == 200
    assert reply["conflictCount"] == 1
