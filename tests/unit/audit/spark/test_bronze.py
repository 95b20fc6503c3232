"""Bronze's columns, compared with a second description of each record's fields."""

import gc
import json
from typing import Any, get_args

import pytest

pa = pytest.importorskip("pyarrow")

from audit.spark.source.bronze import (  # noqa: E402 - needs pyarrow
    ALL_COLUMNS,
    BRONZE_COLUMNS,
    COSTLY_COLUMNS,
    TYPE_NAMES,
    UnknownColumnError,
    bronze_rows,
    classes_of,
    day_of,
    ddl,
)
from ledger.batch import ACTED_AS, Batch, BatchHeader, Provenance, seal  # noqa: E402
from ledger.errors import LedgerError  # noqa: E402
from metadata.codec import decode_record, decode_records, encode_records  # noqa: E402
from metadata.messages.records_json import record_to_json  # noqa: E402
from metadata.records import ConfigRecord, TopicRecord, UserScramCredentialRecord  # noqa: E402
from metadata.records.declaring import Column  # noqa: E402
from metadata.uuids import uuid_text  # noqa: E402
from tests.histories import History  # noqa: E402

DAY_MS = 86_400_000
TYPED = list(BRONZE_COLUMNS)[list(BRONZE_COLUMNS).index("version") + 1 :]


def sealed(records: list[Any], base: int = 0, timestamp_ms: int = 0) -> Batch:
    header = BatchHeader(base, len(records), 1, timestamp_ms, Provenance("User:a"), bytes(32))
    return seal(header, encode_records(records))


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    return [
        sealed(list(made.records), made.base_offset, made.timestamp_ms)
        for made in History(11).batches(1_500)
    ]


def rows(batches, columns=tuple(BRONZE_COLUMNS), **options) -> list[dict[str, Any]]:
    found = [row for b in bronze_rows(batches, columns, **options) for row in b.to_pylist()]
    return sorted(found, key=lambda row: row["offset"])


JSON_NAMES = {
    "topic_id": "topicId",
    "partition": "partitionId",
    "leader": "leader",
    "isr": "isr",
    "replicas": "replicas",
}
"""Kafka's names: the second witness."""


def test_partitions_say_what_their_json_says(batches) -> None:
    """A field that is absent in the JSON is unchanged.

    The JSON leaves out a default recovery state.
    """
    seen = 0
    for row in rows(batches, [*BRONZE_COLUMNS, "record"]):
        shown = record_to_json(decode_record(row["record"]))
        if not shown["type"].startswith("PARTITION_"):
            continue
        seen += 1
        for name, json_name in JSON_NAMES.items():
            assert row[name] == shown["data"].get(json_name), (name, shown)
        default = "RECOVERED" if shown["type"] == "PARTITION_RECORD" else None
        state = shown["data"].get("leaderRecoveryState", default)
        codes = {"RECOVERED": 0, "RECOVERING": 1, None: None}
        assert row["leader_recovery_state"] == codes[state]
    assert seen > 100


def test_each_type_fills_its_columns_and_no_others(batches) -> None:
    """One line for each type. A column that no record fills is a mistake."""
    filled: dict[str, set[str]] = {}
    for row in rows(batches):
        mine = filled.setdefault(row["type"], set())
        mine |= {name for name in TYPED if row[name] is not None}
    partition = {"topic_id", "partition", "leader", "leader_recovery_state", "isr", "replicas"}
    broker = {"broker_id", "broker_epoch"}
    flags = {"fenced", "in_controlled_shutdown"}
    assert {kind: columns for kind, columns in filled.items() if columns} == {
        "TOPIC_RECORD": {"topic_id", "topic_name"},
        "REMOVE_TOPIC_RECORD": {"topic_id"},
        "CLEAR_ELR_RECORD": {"topic_name"},
        "PARTITION_RECORD": partition,
        "PARTITION_CHANGE_RECORD": partition,
        "REGISTER_BROKER_RECORD": broker | flags,
        "BROKER_REGISTRATION_CHANGE_RECORD": broker | flags,
        "UNREGISTER_BROKER_RECORD": broker,
        "FENCE_BROKER_RECORD": broker | {"fenced"},
        "UNFENCE_BROKER_RECORD": broker | {"fenced"},
        "PRODUCER_IDS_RECORD": broker,
        "CONFIG_RECORD": {"resource_type", "config_key", "config_value", "name"},
        "CLIENT_QUOTA_RECORD": {"config_key", "config_value", "name"},
        "ACCESS_CONTROL_ENTRY_RECORD": {"resource_type", "name"},
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": {"name"},
        "USER_SCRAM_CREDENTIAL_RECORD": {"name"},
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": {"name"},
        "ATTEMPTS_RECORD": {"name"},
        "DELEGATION_TOKEN_RECORD": {"name"},
        "ACCESS_TOKEN_RECORD": {"name"},
        "REMOVE_ACCESS_TOKEN_RECORD": {"name"},
        "JOIN_TOKEN_RECORD": {"name"},
        "REMOVE_JOIN_TOKEN_RECORD": {"name"},
        "CERTIFICATE_REVOCATION_RECORD": {"name"},
        "REMOVE_CERTIFICATE_REVOCATION_RECORD": {"name"},
        "SUBJECT_ERASED_RECORD": {"name"},
        "SESSION_RECORD": {"name"},
        "END_SESSION_RECORD": {"name"},
        "ENTRY_RECORD": {"name"},
        "REMOVE_ENTRY_RECORD": {"name"},
        "KEY_RECORD": {"name"},
        "REMOVE_KEY_RECORD": {"name"},
        "BRIDGE_RECORD": {"name"},
        "LEGACY_BROKER_RECORD": broker,
        "HEAD_KEY_RECORD": {"name"},
        "REMOVE_DELEGATION_TOKEN_RECORD": {"name"},
        "FEATURE_LEVEL_RECORD": {"name"},
        "BEGIN_TRANSACTION_RECORD": {"name"},
        "REQUEST_OUTCOME_RECORD": {"name"},
        "REGISTER_CONTROLLER_RECORD": {"name"},
        "UNREGISTER_CONTROLLER_RECORD": {"name"},
    }


def test_bronze_has_a_column_for_all_that_records_can_say() -> None:
    assert list(get_args(Column)) == TYPED


def test_brokers_are_named_and_flagged_in_one_way(batches) -> None:
    for row in rows(batches, [*BRONZE_COLUMNS, "fields"]):
        said = json.loads(row["fields"])
        match row["type"]:
            case "REGISTER_BROKER_RECORD":
                assert row["fenced"] == (1 if said["fenced"] else -1)
                assert row["in_controlled_shutdown"] == int(said["inControlledShutdown"])
                assert (row["broker_id"], row["broker_epoch"]) == (
                    said["brokerId"],
                    said["brokerEpoch"],
                )
            case "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD" as kind:
                assert row["fenced"] == (1 if kind[0] == "F" else -1)
                assert (row["broker_id"], row["broker_epoch"]) == (said["id"], said["epoch"])
            case "BROKER_REGISTRATION_CHANGE_RECORD":
                codes = {None: 0, "FENCE": 1, "UNFENCE": -1}
                assert row["fenced"] == codes[said.get("fenced")]
            case "ACCESS_CONTROL_ENTRY_RECORD" | "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
                assert row["name"] == said["id"]
            case "TOPIC_RECORD":
                assert (row["topic_id"], row["topic_name"]) == (said["topicId"], said["name"])
            case "CONFIG_RECORD":
                assert (row["config_key"], row["name"]) == (said["name"], said["resourceName"])
                assert row["config_value"] == said.get("value")


def test_the_batch_is_told_with_every_record() -> None:
    provenance = Provenance(
        "User:a", "token", "User:b", "10.0.0.1", "cli", bytes(range(16)), bytes(32), "op", "why"
    )
    records = [TopicRecord("t", bytes(15) + bytes([n])) for n in range(3)]
    role = {ACTED_AS: b"Broker:7"}
    header = BatchHeader(40, 3, 7, 3 * DAY_MS + 5, provenance, bytes(32), role)
    found = rows([seal(header, encode_records(records))])
    assert [row["offset"] for row in found] == [40, 41, 42]
    for row in found:
        assert {name: row[name] for name in list(BRONZE_COLUMNS)[1:17]} == {
            "timestamp_ms": 3 * DAY_MS + 5,
            "day": "1970-01-04",
            "epoch": 7,
            "base_offset": 40,
            "end_offset": 43,
            "auth_method": "token",
            "client_address": "10.0.0.1",
            "acted_as": "Broker:7",
            "client_id": "cli",
            "principal": "User:a",
            "on_behalf_of": "User:b",
            "request_id": uuid_text(bytes(range(16))),
            "operation": "op",
            "reason": "why",
            "type": "TOPIC_RECORD",
            "version": 0,
        }


@pytest.mark.parametrize("chunk_records", [1, 7, 1_000, 10**6])
def test_chunks_change_nothing(batches, chunk_records) -> None:
    assert rows(batches[:200], chunk_records=chunk_records) == rows(batches[:200])


def test_a_chunk_holds_no_more_than_it_must(batches) -> None:
    sizes = [b.num_rows for b in bronze_rows(batches, ["offset"], chunk_records=100)]
    assert max(sizes) <= 100 + max(batch.header.count for batch in batches)
    assert sum(sizes) == batches[-1].header.end_offset


def test_offsets_need_not_follow_each_other(batches) -> None:
    some = batches[3:9] + batches[40:44]
    expected = [o for b in some for o in range(b.header.base_offset, b.header.end_offset)]
    assert [row["offset"] for row in rows(some)] == expected


def test_columns_and_types_are_as_asked_for(batches) -> None:
    found = list(bronze_rows(batches, ["type", "offset"], classes_of(["TOPIC_RECORD"])))
    assert all(batch.schema.names == ["type", "offset"] for batch in found)
    topics = [r for b in batches for r in decode_records(b.records) if type(r) is TopicRecord]
    assert sum(batch.num_rows for batch in found) == len(topics) > 0
    assert {row["type"] for batch in found for row in batch.to_pylist()} == {"TOPIC_RECORD"}


def test_each_type_is_found_alone_as_among_all_others(batches) -> None:
    """Only batches that can't hold the requested type are skipped."""
    every = rows(batches, ("offset", "type"))
    for name in sorted({row["type"] for row in every}):
        of_it = [row for row in every if row["type"] == name]
        assert rows(batches, ("offset", "type"), classes=classes_of([name])) == of_it


def test_a_batch_that_cannot_hold_what_is_asked_for_is_not_decoded() -> None:
    batch = sealed([TopicRecord("t", bytes(16))])
    broken = seal(batch.header, b"\x91\x92\xcd\x27\x0f\x01")
    assert list(bronze_rows([broken], ["offset"], classes_of(["TOPIC_RECORD"]))) == []


def test_what_bronze_does_not_have_is_refused() -> None:
    with pytest.raises(UnknownColumnError, match="no column 'nope'"):
        ddl(["offset", "nope"])
    with pytest.raises(UnknownColumnError, match="no record type 'TopicRecord'"):
        classes_of(["TopicRecord"])
    assert set(COSTLY_COLUMNS).isdisjoint(BRONZE_COLUMNS)
    assert ddl(["isr", "record"]) == "isr array<int>, record binary"
    assert len(TYPE_NAMES) == len(set(TYPE_NAMES.values()))
    assert len(ALL_COLUMNS) == len(BRONZE_COLUMNS) + len(COSTLY_COLUMNS)


def test_secrets_are_starred_and_a_deleted_one_is_null() -> None:
    secret = "correct horse"
    records = [
        ConfigRecord(4, "1", "ssl.keystore.password", secret),
        ConfigRecord(4, "1", "ssl.keystore.password", None),
        ConfigRecord(4, "1", "retention.ms", "5"),
        UserScramCredentialRecord("u", 1, b"salt-salt", b"stored-key", b"server-key", 4096),
    ]
    found = rows([sealed(records)], [*BRONZE_COLUMNS, "fields"])
    assert [row["config_value"] for row in found] == ["***", None, "5", None]
    told = json.dumps(found)
    assert secret not in told
    assert "c2FsdC1zYWx0" not in told
    assert found[3]["fields"].count("***") == 3


def test_unreadable_records_are_named_by_their_batch() -> None:
    batch = sealed([TopicRecord("t", bytes(16))], 70)
    broken = seal(batch.header, b"\x91\x92\xcd\x27\x0f\x01")
    with pytest.raises(LedgerError, match="the batch at offset 70: "):
        list(bronze_rows([broken], ["offset"]))


def test_days(batches) -> None:
    assert day_of(0) == "1970-01-01"
    assert day_of(DAY_MS - 1) == "1970-01-01"
    assert day_of(951_782_400_000) == "2000-02-29"
    assert day_of(2**63 - 1) == "9999-12-31"


def test_the_collector_is_as_it_was(batches) -> None:
    reading: Any = bronze_rows(batches, ["offset"], chunk_records=10)
    next(reading)
    assert not gc.isenabled()
    reading.close()
    assert gc.isenabled()
