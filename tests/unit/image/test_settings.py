"""Configs, quotas, features, producer ids, access control entries, credentials and tokens."""

import pytest

from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    ZkMigrationState,
    ZkMigrationStateRecord,
)
from tests.unit.image.replaying import replayed


def test_a_config_is_set_replaced_and_deleted_by_null() -> None:
    """A resource without any config is not there."""
    image = replayed(
        ConfigRecord(2, "orders", "b", "1"),
        ConfigRecord(2, "orders", "a", "2"),
        ConfigRecord(2, "orders", "b", "3"),
    )
    assert list(image.configs.of(2, "orders").items()) == [("a", "2"), ("b", "3")]
    assert image.configs.value(2, "orders", "a") == "2"
    assert image.configs.value(2, "orders", "c") is None
    image = replayed(
        ConfigRecord(2, "orders", "a", None), ConfigRecord(2, "orders", "b", None), image=image
    )
    assert len(image.configs.resources) == 0


def test_an_empty_config_value_is_a_value() -> None:
    """Only null deletes."""
    assert replayed(ConfigRecord(4, "", "x", "")).configs.of(4, "") == {"x": ""}


def test_deleting_a_config_that_is_not_there_is_nothing() -> None:
    """As in Kafka."""
    assert replayed(ConfigRecord(4, "", "x", None)).same_state(EMPTY)


ALICE, APP = EntityData("user", "alice"), EntityData("client-id", "app")


def test_a_quota_is_of_an_entity_in_any_order() -> None:
    """(user, client) and (client, user) are the same entity."""
    image = replayed(
        ClientQuotaRecord((ALICE, APP), "rate", 1.5, False),
        ClientQuotaRecord((APP, ALICE), "rate", 2.5, False),
    )
    assert image.client_quotas.of(ALICE, APP) == {"rate": 2.5}
    assert len(image.client_quotas.entities) == 1
    removed = replayed(ClientQuotaRecord((APP, ALICE), "rate", 0.0, True), image=image)
    assert len(removed.client_quotas.entities) == 0


def test_the_default_entity_is_not_the_empty_name() -> None:
    """A null name is the default of its type."""
    image = replayed(
        ClientQuotaRecord((EntityData("user", None),), "rate", 1.0, False),
        ClientQuotaRecord((EntityData("user", ""),), "rate", 2.0, False),
    )
    assert image.client_quotas.of(EntityData("user", None)) == {"rate": 1.0}
    assert image.client_quotas.of(EntityData("user", "")) == {"rate": 2.0}


def test_a_feature_at_level_0_is_gone() -> None:
    """metadata.version is one of them."""
    image = replayed(FeatureLevelRecord("metadata.version", 20), FeatureLevelRecord("x", 1))
    assert dict(image.features.levels.items()) == {"metadata.version": 20, "x": 1}
    image = replayed(FeatureLevelRecord("x", 0), FeatureLevelRecord("y", 0), image=image)
    assert dict(image.features.levels.items()) == {"metadata.version": 20}


def test_the_migration_from_zookeeper_is_remembered() -> None:
    """Its phase replays; NONE is as if there never was one."""
    assert EMPTY.features.zk_migration_state is ZkMigrationState.NONE
    image = replayed(ZkMigrationStateRecord(int(ZkMigrationState.MIGRATION)))
    assert image.features.zk_migration_state is ZkMigrationState.MIGRATION
    assert replayed(ZkMigrationStateRecord(0), image=image).same_state(EMPTY)


def test_producer_ids_only_grow() -> None:
    """The first id not yet handed out."""
    assert EMPTY.producer_ids.next_producer_id == 0
    image = replayed(ProducerIdsRecord(1, 5, 1000), ProducerIdsRecord(2, 6, 2000))
    assert image.producer_ids.next_producer_id == 2000
    assert image.producer_ids.last == ProducerIdsRecord(2, 6, 2000)


ACL = AccessControlEntryRecord(bytes(16), 2, "orders", 3, "User:alice", "*", 3, 3)


def test_an_acl_is_added_and_removed_by_its_uuid() -> None:
    """Two equal rules with two uuids are two."""
    image = replayed(ACL)
    assert image.acls.entries[bytes(16)] == ACL
    assert len(replayed(RemoveAccessControlEntryRecord(bytes(16)), image=image).acls.entries) == 0


def credential(iterations: int) -> UserScramCredentialRecord:
    return UserScramCredentialRecord("alice", 1, b"s", b"t", b"u", iterations)


def test_a_credential_is_set_replaced_and_removed() -> None:
    """By user and mechanism."""
    image = replayed(credential(4096), credential(8192))
    assert image.scram.credentials["alice", 1].iterations == 8192
    removed = replayed(RemoveUserScramCredentialRecord("alice", 1), image=image)
    assert len(removed.scram.credentials) == 0


def token(expires: int) -> DelegationTokenRecord:
    return DelegationTokenRecord("User:a", "User:a", (), 1, 9, expires, "t1")


def test_a_token_is_created_renewed_and_removed() -> None:
    """A renewal is the same record with another time."""
    image = replayed(token(3), token(5))
    assert image.tokens.tokens["t1"].expiration_timestamp == 5
    assert len(replayed(RemoveDelegationTokenRecord("t1"), image=image).tokens.tokens) == 0


@pytest.mark.parametrize(
    ("image", "record", "sentence"),
    [
        (EMPTY, FeatureLevelRecord("x", -1), "has the negative level -1"),
        (EMPTY, ZkMigrationStateRecord(4), "there is no migration state 4"),
        (EMPTY, ProducerIdsRecord(1, 1, 0), "the ids below 0 are handed out already"),
        (replayed(ProducerIdsRecord(1, 1, 9)), ProducerIdsRecord(1, 1, 9), "ids below 9 are"),
        (replayed(ACL), ACL, "there is an access control entry 0000"),
        (EMPTY, RemoveAccessControlEntryRecord(bytes(16)), "there is no access control entry"),
        (EMPTY, RemoveUserScramCredentialRecord("alice", 1), "user 'alice' has no credential"),
        (EMPTY, RemoveDelegationTokenRecord("t1"), "there is no delegation token 't1'"),
        (EMPTY, ClientQuotaRecord((), "rate", 1.0, False), "has no part"),
        (EMPTY, ClientQuotaRecord((ALICE, ALICE), "rate", 1.0, False), "two parts of one type"),
    ],
)
def test_what_makes_no_sense_stops_replay(
    image: MetadataImage, record: Record, sentence: str
) -> None:
    """The error names the offset and says why."""
    with pytest.raises(ReplayError, match=sentence) as caught:
        MetadataDelta(image).replay(record, 3)
    assert caught.value.offset == 3
