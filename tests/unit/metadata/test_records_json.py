"""Records as JSON for people: readable, and nothing is lost."""

import json

import pytest
from hypothesis import given

from metadata.messages.records_json import record_to_json, record_type_name
from metadata.records import (
    RECORD_CLASSES,
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    Record,
    RegisterBrokerRecord,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid_text
from tests.golden.records_read import record_from_json
from tests.strategies import records

UUID = bytes(range(16))


@given(records())
def test_a_record_goes_through_json_text_and_comes_back_equal(record: Record) -> None:
    text = json.dumps(record_to_json(record, show_secrets=True), allow_nan=False)
    back = record_from_json(json.loads(text))
    assert back == record
    assert type(back) is type(record)


def test_the_names_are_those_of_kafkas_own_dump() -> None:
    names = {record_type_name(cls) for cls in RECORD_CLASSES}
    assert len(names) == len(RECORD_CLASSES)
    assert record_type_name(PartitionChangeRecord) == "PARTITION_CHANGE_RECORD"
    assert record_type_name(AccessControlEntryRecord) == "ACCESS_CONTROL_ENTRY_RECORD"
    assert record_type_name(KRaftVersionRecord) == "KRAFT_VERSION_RECORD"


def test_what_a_change_leaves_alone_is_left_out_and_what_it_clears_is_not() -> None:
    change = PartitionChangeRecord(0, UUID, isr=(1,), adding_replicas=(), leader=-1)
    assert record_to_json(change) == {
        "type": "PARTITION_CHANGE_RECORD",
        "version": 2,
        "data": {
            "partitionId": 0,
            "topicId": uuid_text(UUID),
            "isr": [1],
            "leader": -1,
            "addingReplicas": [],
        },
    }


def test_codes_have_names_and_unknown_codes_stay_numbers() -> None:
    acl = AccessControlEntryRecord(UUID, 2, "a", 3, "User:a", "*", 99, 3)
    data = record_to_json(acl)["data"]
    assert (data["resourceType"], data["patternType"]) == ("TOPIC", "LITERAL")
    assert (data["operation"], data["permissionType"]) == (99, "ALLOW")
    assert record_to_json(BrokerRegistrationChangeRecord(1, 2, fenced=-1))["data"]["fenced"] == (
        "UNFENCE"
    )


def test_flags_are_always_shown() -> None:
    data = record_to_json(RegisterBrokerRecord(1, UUID, 0, (), (), None))["data"]
    assert (data["fenced"], data["inControlledShutdown"]) == (True, False)


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_text(value: float) -> None:
    quota = ClientQuotaRecord((), "k", value, False)
    assert isinstance(record_to_json(quota)["data"]["value"], str)
    assert record_from_json(record_to_json(quota)) == quota


SCRAM = UserScramCredentialRecord("alice", 1, b"the salt", b"stored", b"server", 4096)


def test_the_secrets_of_a_credential_are_not_shown_unasked() -> None:
    """The dump of a log is pasted into tickets."""
    shown = record_to_json(SCRAM)
    assert shown["data"] == {
        "name": "alice",
        "mechanism": "SCRAM_SHA_256",
        "salt": "***",
        "storedKey": "***",
        "serverKey": "***",
        "iterations": 4096,
    }
    assert shown["redacted"] == ["salt", "storedKey", "serverKey"]
    whole = record_to_json(SCRAM, show_secrets=True)
    assert "redacted" not in whole
    assert record_from_json(whole) == SCRAM


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ssl.keystore.password", "x", True),
        ("listener.name.tls.scram-sha-256.sasl.jaas.config", "x", True),
        ("listener.name.tls.ssl.truststore.certificates", "x", True),
        ("ssl.keystore.certificate.chain", "x", True),
        ("ssl.keystore.key", "x", True),
        ("DELEGATION.TOKEN.SECRET.KEY", "x", True),
        ("ssl.keystore.password", None, False),
        ("ssl.keystore.location", "x", False),
        ("retention.ms", "1", False),
    ],
)
def test_a_config_is_a_secret_if_its_name_says_so(
    name: str, value: str | None, secret: bool
) -> None:
    shown = record_to_json(ConfigRecord(4, "1", name, value))
    assert shown["data"]["value"] == ("***" if secret else value)
    assert shown.get("redacted") == (["value"] if secret else None)


@given(records())
def test_what_holds_no_secret_is_shown_whole(record: Record) -> None:
    shown = record_to_json(record)
    whole = record_to_json(record, show_secrets=True)
    hidden = set(shown.pop("redacted", ()))
    assert shown.keys() == whole.keys()
    assert {n for n, v in whole["data"].items() if shown["data"][n] != v} <= hidden
