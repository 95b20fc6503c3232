"""The record classes: ids, versions, and the rules that every class must follow."""

import importlib
import pkgutil

import msgspec
import pytest

from metadata import records
from metadata.codec import decode_record, encode_record
from metadata.image import EMPTY, MetadataDelta
from metadata.image.families import REPLAY
from metadata.records import (
    RECORD_CLASSES,
    REGISTRY,
    VERSIONS_PER_TYPE,
    NoOpRecord,
    PartitionChangeRecord,
    Record,
    TopicRecord,
)

# Ids and newest versions as Kafka's schemas have them; ours and the control types behind.
EXPECTED = {
    "RegisterBrokerRecord": (0, 4),
    "UnregisterBrokerRecord": (1, 0),
    "TopicRecord": (2, 0),
    "PartitionRecord": (3, 2),
    "ConfigRecord": (4, 0),
    "PartitionChangeRecord": (5, 2),
    "FenceBrokerRecord": (7, 0),
    "UnfenceBrokerRecord": (8, 0),
    "RemoveTopicRecord": (9, 0),
    "DelegationTokenRecord": (10, 0),
    "UserScramCredentialRecord": (11, 0),
    "FeatureLevelRecord": (12, 0),
    "ClientQuotaRecord": (14, 0),
    "ProducerIdsRecord": (15, 0),
    "BrokerRegistrationChangeRecord": (17, 3),
    "AccessControlEntryRecord": (18, 0),
    "RemoveAccessControlEntryRecord": (19, 0),
    "NoOpRecord": (20, 0),
    "ZkMigrationStateRecord": (21, 0),
    "RemoveUserScramCredentialRecord": (22, 0),
    "BeginTransactionRecord": (23, 0),
    "EndTransactionRecord": (24, 0),
    "AbortTransactionRecord": (25, 0),
    "RemoveDelegationTokenRecord": (26, 0),
    "RegisterControllerRecord": (27, 0),
    "ClearElrRecord": (28, 0),
    "UnregisterControllerRecord": (29, 0),
    "RequestOutcomeRecord": (1001, 0),
    "ClusterGenerationRecord": (1002, 0),
    "EpochStartRecord": (1003, 0),
    "ShutdownOffsetRecord": (1004, 0),
    "OutcomeFloorRecord": (1005, 0),
    "ClusterKeyRecord": (1006, 0),
    "SessionRecord": (1007, 0),
    "EndSessionRecord": (1008, 0),
    "EntryRecord": (1009, 0),
    "RemoveEntryRecord": (1010, 0),
    "KeyRecord": (1011, 0),
    "RemoveKeyRecord": (1012, 0),
    "TokenBaseRecord": (1013, 0),
    "BridgeRecord": (1014, 0),
    "LegacyBrokerRecord": (1015, 0),
    "AttemptsRecord": (1019, 0),
    "AccessTokenRecord": (1017, 0),
    "RemoveAccessTokenRecord": (1171, 0),
    "JoinTokenRecord": (1172, 0),
    "RemoveJoinTokenRecord": (1173, 0),
    "CertificateRevocationRecord": (1174, 0),
    "RemoveCertificateRevocationRecord": (1175, 0),
    "HeadKeyRecord": (1016, 0),
    "SignedHeadRecord": (1030, 0),
    "SubjectKeysRecord": (1020, 0),
    "SubjectErasedRecord": (1021, 0),
    "PseudonymRecord": (1022, 0),
    "BeginEpochRecord": (2002, 1),
    "KRaftVersionRecord": (2005, 0),
    "VotersRecord": (2006, 0),
}


def test_every_record_of_the_specification_is_there_and_no_other() -> None:
    found = {cls.__name__: (cls.TYPE_ID, cls.VERSION) for cls in RECORD_CLASSES}
    assert found == EXPECTED


def test_the_registry_names_each_class_once_in_order() -> None:
    assert list(REGISTRY.values()) == list(RECORD_CLASSES)
    assert list(REGISTRY) == sorted(REGISTRY)
    assert len(REGISTRY) == len(RECORD_CLASSES)


def test_no_module_of_records_is_forgotten() -> None:
    for module in pkgutil.iter_modules(records.__path__, "metadata.records."):
        importlib.import_module(module.name)
    ours = {cls for cls in Record.__subclasses__() if cls.__module__.startswith("metadata.")}
    assert ours == set(RECORD_CLASSES)
    assert {cls.__name__ for cls in ours} <= set(vars(records))


@pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda cls: cls.__name__)
def test_what_a_class_declares_names_its_own_fields(cls: type[Record]) -> None:
    fields = set(cls.__struct_fields__)
    assert set(cls.CODES) <= fields
    assert {need.field for need in cls.NEEDS} - {""} <= fields
    sources = {source for source in cls.COLUMNS.values() if isinstance(source, str)}
    assert sources <= fields
    if cls.PRIVILEGED:
        assert {condition.column for condition in cls.PRIVILEGED.when} <= set(cls.COLUMNS)


def test_every_record_is_replayed() -> None:
    own = MetadataDelta(EMPTY)._own_handlers()
    assert {*REPLAY, *own} == set(RECORD_CLASSES)


@pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda cls: cls.__name__)
def test_the_kind_on_disk_is_made_of_id_and_version(cls: type[Record]) -> None:
    config = cls.__struct_config__
    assert config.tag == cls.TYPE_ID * VERSIONS_PER_TYPE + cls.VERSION
    assert 0 <= cls.VERSION < VERSIONS_PER_TYPE
    assert config.array_like
    assert config.frozen
    assert config.forbid_unknown_fields
    assert not config.gc
    assert "KIP-" in (cls.__doc__ or "") or "Ours" in (cls.__doc__ or "")


def test_a_record_cannot_be_changed_and_can_be_a_key() -> None:
    record = TopicRecord("a", bytes(16))
    with pytest.raises(AttributeError):
        record.name = "b"
    assert {record: 1}[TopicRecord("a", bytes(16))] == 1


def test_what_a_change_leaves_alone_is_its_default() -> None:
    change = PartitionChangeRecord(1, bytes(16))
    assert change.leader == -2
    assert change.leader_recovery_state == -1
    untouched = msgspec.structs.asdict(change)
    for name in ("partition_id", "topic_id", "leader", "leader_recovery_state"):
        del untouched[name]
    assert set(untouched.values()) == {None}
    assert decode_record(encode_record(change)) == change


def test_records_of_different_types_with_equal_fields_differ() -> None:
    assert encode_record(NoOpRecord()) != encode_record(records.EndTransactionRecord())
    assert NoOpRecord() != records.EndTransactionRecord()
