"""Kafka's nodes become records (M1, M2, M6, M10).

`kafka_plan.json` holds what the whole tree gives. Rule: a difference is a mistake, unless somebody
compared the tree and the file by eye: `python -m tests.unit.logberg.importing.plan_write`.
"""

import json
from pathlib import Path

import pytest

from logberg.importing.import_plan import ImportFinding, ImportPlan
from logberg.importing.kafka_layout import read_kafka
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid_text
from tests.unit.logberg.importing.plan_write import GOLDEN, shown_plan
from tests.unit.logberg.importing.trees import kafka_tree

ORDERS = "CeWW5BSKWE2ClPIKl05eLw"


def of(plan: ImportPlan, kind: type) -> list:
    return [record for record in plan.records if isinstance(record, kind)]


def whys(findings: list[ImportFinding]) -> dict[str, str]:
    return {each.path: each.why for each in findings}


def test_an_empty_source_gives_nothing() -> None:
    for tree in (ZnodeTree([]), ZnodeTree([Znode("/brokers"), Znode("/brokers/topics")])):
        plan = read_kafka(tree)
        assert not plan.records
        assert plan.left + plan.malformed + plan.notes == []


def test_the_whole_tree_gives_the_golden_plan() -> None:
    assert shown_plan() == json.loads(Path(GOLDEN).read_text())


def test_topics_come_with_ids_partitions_and_epochs() -> None:
    plan = read_kafka(kafka_tree())
    topics = {record.name: record for record in of(plan, TopicRecord)}
    assert sorted(topics) == [
        "__consumer_offsets",
        "ancient",
        "moving",
        "no.state_yet-1",
        "orders",
        "unclean",
    ]
    assert uuid_text(topics["orders"].topic_id) == ORDERS
    partitions = {(r.topic_id, r.partition_id): r for r in of(plan, PartitionRecord)}
    assert len(partitions) == 3 + 1 + 1 + 1 + 1 + 50
    third = partitions[topics["orders"].topic_id, 2]
    # The partition epoch is the node's version, and there is no leader.
    assert (third.replicas, third.isr, third.leader) == ((2, 0, 1), (2,), -1)
    assert (third.leader_epoch, third.partition_epoch) == (9, 9)
    moving = partitions[topics["moving"].topic_id, 0]
    assert (moving.adding_replicas, moving.removing_replicas) == ((2,), (1,))
    assert partitions[topics["unclean"].topic_id, 0].leader_recovery_state == 1
    unborn = partitions[topics["no.state_yet-1"].topic_id, 0]
    assert (unborn.isr, unborn.leader, unborn.leader_epoch) == ((2, 1), 2, 0)


def test_configs_stand_behind_their_topic_and_before_its_partitions() -> None:
    kinds = [type(r) for r in read_kafka(kafka_tree()).records]
    first = kinds.index(ConfigRecord)
    assert kinds[first - 1] is TopicRecord
    assert PartitionRecord in kinds[first:]


def test_a_topic_without_an_id_gets_the_same_one_each_time() -> None:
    ids = {
        next(r.topic_id for r in of(read_kafka(kafka_tree()), TopicRecord) if r.name == "ancient")
        for _ in range(2)
    }
    assert len(ids) == 1
    plan = read_kafka(kafka_tree())
    assert "no id" in whys(plan.notes)["/brokers/topics/ancient"]


def test_names_are_decoded_and_defaults_have_none() -> None:
    plan = read_kafka(kafka_tree())
    quotas = {
        (tuple((p.entity_type, p.entity_name) for p in r.entity), r.key): r.value
        for r in of(plan, ClientQuotaRecord)
    }
    assert quotas[(("user", "CN=bob,OU=дата"),), "producer_byte_rate"] == 524288.5
    assert quotas[(("user", "alice"), ("client-id", "app*1")), "producer_byte_rate"] == 1024
    assert quotas[(("user", None), ("client-id", None)), "producer_byte_rate"] == 4096
    assert quotas[(("client-id", "batch job"),), "consumer_byte_rate"] == 65536
    assert quotas[(("ip", None),), "connection_creation_rate"] == 100
    assert len(quotas) == 12


def test_credentials_entries_tokens_and_producer_ids() -> None:
    plan = read_kafka(kafka_tree())
    credentials = {r.mechanism: r for r in of(plan, UserScramCredentialRecord)}
    assert {r.name for r in credentials.values()} == {"alice"}
    assert len(credentials[1].stored_key) == 32
    assert len(credentials[2].server_key) == 64
    entries = of(plan, AccessControlEntryRecord)
    assert {(e.resource_type, e.pattern_type) for e in entries} == {
        (2, 3),
        (3, 3),
        (4, 3),
        (5, 3),
        (2, 4),
    }
    assert {e.operation for e in entries if e.resource_type == 4} == {9, 12}
    (token,) = of(plan, DelegationTokenRecord)
    assert (token.owner, token.renewers) == ("User:alice", ("User:bob",))
    (block,) = of(plan, ProducerIdsRecord)
    assert block.next_producer_id == 4000


def test_a_topic_that_waits_for_its_deletion_is_left() -> None:
    plan = read_kafka(kafka_tree())
    left = whys(plan.left)
    assert "waits for its deletion" in left["/brokers/topics/doomed"]
    assert "/admin/delete_topics/doomed" in left


def test_ephemeral_nodes_are_never_taken() -> None:
    """Also where a node that would be taken is one."""
    tree = kafka_tree()
    for path in ("/brokers/ids/0", "/controller"):
        assert "ephemeral" in whys(read_kafka(tree).left)[path]
    fleeting = ZnodeTree(
        node._replace(ephemeral=True) if node.path == "/config/clients/batch%20job" else node
        for node in tree
    )
    plan = read_kafka(fleeting)
    assert "ephemeral" in whys(plan.left)["/config/clients/batch%20job"]
    assert len(of(plan, ClientQuotaRecord)) == 11


def test_each_node_with_data_is_taken_left_or_malformed() -> None:
    plan = read_kafka(kafka_tree({"/stranger": "data", "/brokers/topics/orders": "{"}))
    for node in kafka_tree({"/stranger": "data"}):
        assert not node.data or plan.is_seen(node), node.path
    assert whys(plan.left)["/stranger"] == "not a node of Kafka's layout"


def test_a_password_that_kafka_encrypted_is_left_and_the_rest_taken() -> None:
    plan = read_kafka(kafka_tree())
    why = whys(plan.left)["/config/brokers/0"]
    assert "keystore.password" in why
    configs = [r for r in of(plan, ConfigRecord) if r.resource_type == 4 and r.resource_name == "0"]
    assert [r.name for r in configs] == ["leader.replication.throttled.rate"]


FLIES = '{"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Fly","host":"*"}]}'
STATE = "/brokers/topics/orders/partitions/1/state"


@pytest.mark.parametrize(
    ("path", "data", "gone"),
    [
        (STATE, '{"version":1,"leader"', "topic"),
        (STATE, '{"leader":7,"leader_epoch":1,"isr":[1]}', "topic"),
        (STATE, '{"leader":1,"leader_epoch":1,"isr":[1,9]}', "topic"),
        (STATE, '{"leader":1,"leader_epoch":99999999999,"isr":[1]}', "topic"),
        ("/brokers/topics/orders", "[]", "topic"),
        ("/brokers/topics/orders", "", "topic"),
        ("/brokers/topics/orders", '{"partitions":{"0":[1,1]}}', "topic"),
        ("/brokers/topics/orders", '{"partitions":{"x":[1]}}', "topic"),
        ("/brokers/topics/orders", '{"partitions":{}}', "topic"),
        ("/brokers/topics/orders", '{"partitions":{"0":[1]},"topic_id":"short"}', "topic"),
        ("/config/topics/orders", '{"config":{"a":1}}', "topic"),
        ("/config/users/alice", '{"config":{"producer_byte_rate":"fast"}}', "alice"),
        ("/config/users/alice", '{"config":{"producer_byte_rate":"nan"}}', "alice"),
        ("/config/users/alice", '{"config":{"SCRAM-SHA-256":"salt=YQ=="}}', "alice"),
        ("/config/users/%FF", '{"config":{"producer_byte_rate":"1"}}', ""),
        ("/config/brokers/0", "null", ""),
        ("/kafka-acl/Topic/orders", '{"acls":[{"principal":"User:a"}]}', "acl"),
        ("/kafka-acl/Topic/more", "\x00", ""),
        ("/kafka-acl/Topic/more", FLIES, ""),
        ("/delegation_token/tokens/xokidwTlU4i7rx2Zj0mAFg", "{}", "token"),
        ("/latest_producer_id_block", '{"broker":1,"block_end":"many"}', "ids"),
        ("/cluster/id", "text", ""),
    ],
)
def test_a_malformed_node_is_named_and_nothing_of_its_thing_is_taken(
    path: str, data: str, gone: str
) -> None:
    whole, plan = read_kafka(kafka_tree()), read_kafka(kafka_tree({path: data}))
    assert path in whys(plan.malformed)
    named = {r.name for r in of(plan, TopicRecord)}
    assert ("orders" in named) == (gone != "topic")
    if gone == "topic":
        assert len(of(plan, PartitionRecord)) == len(of(whole, PartitionRecord)) - 3
        assert "orders" not in {r.resource_name for r in of(plan, ConfigRecord)}
    if gone == "alice":
        assert not of(plan, UserScramCredentialRecord)
    if gone == "token":
        assert not of(plan, DelegationTokenRecord)
    if gone == "ids":
        assert not of(plan, ProducerIdsRecord)
    if gone == "acl":
        missing = len(of(whole, AccessControlEntryRecord)) - len(of(plan, AccessControlEntryRecord))
        assert missing == 3


def test_a_message_about_a_credential_never_shows_it() -> None:
    text = "salt=c2FsdA==,stored_key=c2VjcmV0,server_key=c2VjcmV0,iterations=4096"
    data = json.dumps({"config": {"SCRAM-SHA-256": text}})
    plan = read_kafka(kafka_tree({"/config/users/alice": data}))
    assert "c2VjcmV0" not in whys(plan.malformed)["/config/users/alice"]
