"""Subjects: every record has the words that people would search for."""

import pytest

from audit.questions.names import Names
from audit.questions.subjects import RecordPlace, fields_text, place, resource
from metadata.records import (
    RECORD_CLASSES,
    SNAPSHOT_ONLY,
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid_text
from tests.unit.audit.memory_log import history

ORDERS, UNKNOWN, ACL = b"\x01" * 16, b"\x02" * 16, b"\x03" * 16
ENTRY = AccessControlEntryRecord(ACL, 2, "orders", 3, "User:alice", "*", 3, 3)
TOKEN = DelegationTokenRecord("User:bob", "User:al", (), 1, 2, 3, "t1")
NAMES = Names([TopicRecord("orders", ORDERS), ENTRY, TOKEN])


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (TopicRecord("orders", ORDERS), ("topic:orders",)),
        (RemoveTopicRecord(ORDERS), ("topic:orders",)),
        (RemoveTopicRecord(UNKNOWN), (f"topic:{uuid_text(UNKNOWN)}",)),
        (PartitionChangeRecord(3, ORDERS), ("partition:orders-3", "topic:orders")),
        (ClearElrRecord(""), ("topic:*",)),
        (BrokerRegistrationChangeRecord(7, 0), ("broker:7",)),
        (FenceBrokerRecord(7, 0), ("broker:7",)),
        (
            ConfigRecord(2, "orders", "retention.ms", "1"),
            ("config:topic:orders:retention.ms", "topic:orders"),
        ),
        (ConfigRecord(4, "", "log.dirs", None), ("config:broker::log.dirs",)),
        (ConfigRecord(99, "x", "k", None), ("config:99:x:k", "99:x")),
        (ENTRY, (f"acl:{uuid_text(ACL)}", "topic:orders", "user:alice")),
        (
            RemoveAccessControlEntryRecord(ACL),
            (f"acl:{uuid_text(ACL)}", "topic:orders", "user:alice"),
        ),
        (RemoveAccessControlEntryRecord(UNKNOWN), (f"acl:{uuid_text(UNKNOWN)}",)),
        (UserScramCredentialRecord("bob", 1, b"s", b"k", b"k", 4096), ("user:bob",)),
        (TOKEN, ("token:t1", "user:bob")),
        (RemoveDelegationTokenRecord("t1"), ("token:t1", "user:bob")),
        (RemoveDelegationTokenRecord("t2"), ("token:t2",)),
        (
            ClientQuotaRecord(
                (EntityData("user", "bob"), EntityData("client-id", None)), "k", 1.0, False
            ),
            ("quota:client-id=<default>,user=bob", "user:bob"),
        ),
        (FeatureLevelRecord("metadata.version", 4), ("feature:metadata.version",)),
        (ProducerIdsRecord(2, 0, 9), ("producer-ids", "broker:2")),
        (NoOpRecord(), ("quorum",)),
    ],
)
def test_words(record, words) -> None:
    assert record.subjects(NAMES) == words
    assert resource(record, NAMES) == (words[0] if words else None)


def test_every_record_of_a_log_is_about_something() -> None:
    names, seen = Names(), set()
    for batch in history(3, 900):
        for record in batch.records:
            names.learn(record)
            words = record.subjects(names)
            assert words, record
            kinds = {word.partition(":")[0] for word in words}
            assert kinds <= set(record.SUBJECT_KINDS), (
                "history asks the kinds that a class declares"
            )
            seen.add(type(record))
    assert seen == set(RECORD_CLASSES) - set(SNAPSHOT_ONLY)


def test_a_prefixed_acl_is_about_no_topic() -> None:
    prefixed = AccessControlEntryRecord(ACL, 2, "ord", 4, "Group:g", "*", 3, 3)
    assert prefixed.subjects(NAMES) == (f"acl:{uuid_text(ACL)}",)


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (PartitionChangeRecord(3, ORDERS), RecordPlace(uuid_text(ORDERS), "orders", 3, None)),
        (PartitionChangeRecord(3, UNKNOWN), RecordPlace(uuid_text(UNKNOWN), None, 3, None)),
        (RemoveTopicRecord(ORDERS), RecordPlace(uuid_text(ORDERS), "orders")),
        (ConfigRecord(2, "orders", "k", None), RecordPlace(topic_name="orders")),
        (ConfigRecord(4, "7", "k", None), RecordPlace()),
        (ClearElrRecord("orders"), RecordPlace(topic_name="orders")),
        (ClearElrRecord(""), RecordPlace()),
        (FenceBrokerRecord(7, 0), RecordPlace(broker_id=7)),
        (ProducerIdsRecord(2, 0, 9), RecordPlace(broker_id=2)),
    ],
)
def test_places(record, found) -> None:
    assert place(record, NAMES) == found


def test_a_name_means_what_it_meant_then() -> None:
    names = Names([TopicRecord("orders", ORDERS)])
    names.learn(RemoveTopicRecord(ORDERS))
    names.learn(TopicRecord("orders", UNKNOWN))
    assert names.topic(ORDERS) == names.topic(UNKNOWN) == "orders"


def test_fields_are_compact_json_and_secrets_are_starred() -> None:
    scram = UserScramCredentialRecord("bob", 1, b"salt", b"stored", b"server", 4096)
    text = fields_text(scram)
    assert text.count("***") == 3
    assert text.startswith('{"name":"bob",')
    assert "***" not in fields_text(scram, show_secrets=True)
