"""Each rule of the projection, on a few records (ADR 0071)."""

from collections.abc import Sequence
from typing import Any

import pytest

from kafka_listener.projection.batch_projection import ProjectedBatch
from kafka_listener.wire.messages import decode_message, decode_metadata_record
from kafka_listener.wire.record_batches import RecordBatch, decode_batches
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    ClusterGenerationRecord,
    ConfigRecord,
    EndTransactionRecord,
    EpochVoter,
    FeatureLevelRecord,
    KRaftVersionRecord,
    NoOpRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
    Voter,
    VoterEndpoint,
    VoterKRaftVersions,
    VotersRecord,
    ZkMigrationStateRecord,
)
from metadata.sealed_places import config_place, scram_place
from metadata.sealed_texts import text_of_block
from metadata.sealing import ClusterKey
from tests.projected_logs import ProjectedWorld, batch_of, sealed

A, B = bytes(15) + b"A", bytes(15) + b"B"
VOTER = Voter(1, A, (VoterEndpoint("CONTROLLER", "c1", 9093),), VoterKRaftVersions(0, 1))
EPOCH = BeginEpochRecord(1, (EpochVoter(1, A),), (EpochVoter(1, A),))
BEGIN, END, ABORT = BeginTransactionRecord("big"), EndTransactionRecord(), AbortTransactionRecord()
TOPIC, OTHER = TopicRecord("orders", A), TopicRecord("parts", B)
LEVEL_30 = FeatureLevelRecord("metadata.version", 30)
BROKER = RegisterBrokerRecord(7, A, 0, (), (), None)
PARTITION = PartitionRecord(0, A, (1,), (1,), (), (), 1, 0, 0)


def projected(*batches: Sequence[Record], key: ClusterKey | None = None) -> list[ProjectedBatch]:
    world = ProjectedWorld(key=key)
    made, offset = [], 0
    for records in batches:
        made.append(batch_of(offset, *records))
        offset += len(records)
    world.accept(sealed(made))
    world.follow()
    return world.read(0)


def decoded(batches: list[ProjectedBatch]) -> list[RecordBatch]:
    return list(decode_batches(b"".join(batch.data for batch in batches)))


def shown(*batches: Sequence[Record], key: ClusterKey | None = None) -> list[tuple[str, int, Any]]:
    """Return name, version and fields of each data record, with ("control", key) for others."""
    found: list[tuple[str, int, Any]] = []
    for batch in decoded(projected(*batches, key=key)):
        for record_key, value in batch.records:
            assert value is not None
            if batch.control:
                assert record_key is not None
                found.append(("control", record_key[3], value))
            else:
                found.append(decode_metadata_record(value))
    return found


def names(*batches: Sequence[Record]) -> list[str]:
    return [name for name, _, _ in shown(*batches)]


def test_the_first_batch_of_a_cluster_is_three() -> None:
    first = (EPOCH, ClusterGenerationRecord(1, ""), KRaftVersionRecord(1), VotersRecord((VOTER,)))
    batches = projected(first)
    assert [(b.base_offset, b.end_offset) for b in batches] == [(0, 1), (1, 2), (2, 4)]
    assert [b.control for b in decoded(batches)] == [True, False, True]
    (_, leader, leader_change), (no_op, _, _), (_, version, _), (_, voters, value) = shown(first)
    assert (leader, no_op, version, voters) == (2, "NoOpRecord", 5, 6)
    said = decode_message("LeaderChangeMessage", 0, leader_change)
    assert (said["Version"], said["LeaderId"]) == (0, 1)
    assert [one["VoterId"] for one in said["Voters"] + said["GrantingVoters"]] == [1, 1]
    assert decode_message("VotersRecord", 0, value)["Voters"] == [
        {
            "VoterId": 1,
            "VoterDirectoryId": A,
            "Endpoints": [{"Name": "CONTROLLER", "Host": "c1", "Port": 9093}],
            "KRaftVersionFeature": {"MinSupportedVersion": 0, "MaxSupportedVersion": 1},
        }
    ]


def test_epoch_and_time_are_those_of_the_batch() -> None:
    [batch] = decoded(projected((TOPIC, OTHER)))
    assert (batch.base_offset, batch.epoch, batch.timestamp_ms) == (0, 1, 1_700_000_000_000)


OURS = [
    ClusterGenerationRecord(1, ""),
    FeatureLevelRecord("logberg.version", 4),
    ZkMigrationStateRecord(0),
    NoOpRecord(),
]


@pytest.mark.parametrize("record", OURS, ids=lambda record: type(record).__name__)
def test_what_kafka_does_not_have_is_a_no_op_at_its_offset(record: Record) -> None:
    assert names((TOPIC, record, OTHER)) == ["TopicRecord", "NoOpRecord", "TopicRecord"]


def test_the_level_in_the_log_chooses_the_versions_of_later_records() -> None:
    versions = [
        (name, version)
        for name, version, _ in shown(
            (BROKER, PARTITION),
            (LEVEL_30, BROKER),
            (PARTITION, FeatureLevelRecord("group.version", 1)),
        )
    ]
    assert versions == [
        ("RegisterBrokerRecord", 3),
        ("PartitionRecord", 1),
        ("FeatureLevelRecord", 0),
        ("RegisterBrokerRecord", 4),
        ("PartitionRecord", 2),
        ("FeatureLevelRecord", 0),
    ]


TRANSACTIONS: dict[str, tuple[list[list[Record]], list[str]]] = {
    "ended": (
        [[BEGIN, TOPIC], [OTHER], [END, TOPIC]],
        [
            "BeginTransactionRecord",
            "TopicRecord",
            "TopicRecord",
            "EndTransactionRecord",
            "TopicRecord",
        ],
    ),
    "aborted": (
        [[TOPIC, BEGIN, TOPIC], [ABORT, OTHER]],
        ["TopicRecord", *["NoOpRecord"] * 3, "TopicRecord"],
    ),
    "discarded by an epoch": (
        [[BEGIN, TOPIC], [EPOCH, TOPIC]],
        ["NoOpRecord", "NoOpRecord", "control", "TopicRecord"],
    ),
    "open": ([[TOPIC], [BEGIN, TOPIC], [OTHER]], ["TopicRecord"]),
    "open in the middle of a batch": ([[TOPIC, BEGIN, OTHER]], ["TopicRecord"]),
    "ended, and another is open": (
        [[BEGIN], [END, BEGIN, TOPIC]],
        ["BeginTransactionRecord", "EndTransactionRecord"],
    ),
}


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_transaction_is_shown_as_it_ended(name: str) -> None:
    batches, expected = TRANSACTIONS[name]
    assert names(*batches) == expected


def test_a_level_of_a_transaction_that_was_aborted_does_not_count() -> None:
    rows = shown((BEGIN, LEVEL_30), (ABORT, BROKER))
    assert [row[0] for row in rows] == ["NoOpRecord"] * 3 + ["RegisterBrokerRecord"]
    assert rows[-1][1] == 3


def test_the_end_stands_before_an_open_transaction_and_moves_when_it_ends() -> None:
    world = ProjectedWorld()
    made = sealed(
        [batch_of(0, TOPIC), batch_of(1, OTHER, BEGIN), batch_of(3, TOPIC), batch_of(4, END)]
    )
    ends = []
    for batch in made:
        world.accept([batch])
        world.follow()
        ends.append(world.log.end)
    assert ends == [1, 2, 2, 5]
    whole = projected((TOPIC,), (OTHER, BEGIN), (TOPIC,), (END,))
    assert world.read(0) == whole


def test_sealed_secrets_are_opened_with_the_cluster_key() -> None:
    key = ClusterKey(bytes(32))
    stored, server = (
        key.seal(scram_place("al", 1, field), secret, bytes(16)).block
        for field, secret in (("storedKey", b"stored"), ("serverKey", b"server"))
    )
    config = key.seal(config_place(4, "1", "ssl.key.password"), b"geheim", bytes(16))
    records = (
        UserScramCredentialRecord("al", 1, b"salt", stored, server, 4096),
        ConfigRecord(4, "1", "ssl.key.password", text_of_block(config.block)),
        ConfigRecord(4, "1", "log.retention.ms", "7"),
    )
    scram, secret, clear = shown(records, key=key)
    assert (scram[2]["StoredKey"], scram[2]["ServerKey"]) == (b"stored", b"server")
    assert (secret[2]["Value"], clear[2]["Value"]) == ("geheim", "7")
    for other in (None, ClusterKey(b"\x01" * 32)):
        scram, secret, _ = shown(records, key=other)
        assert scram[2]["StoredKey"] == stored
        assert secret[2]["Value"] == records[1].value


def test_a_reader_may_begin_at_every_offset_but_gets_no_batch_below_it() -> None:
    world = ProjectedWorld()
    world.accept(sealed([batch_of(0, TOPIC, OTHER), batch_of(2, TOPIC)]))
    world.follow()
    assert [b.base_offset for b in world.read(1)] == [0, 2]
    assert [b.base_offset for b in world.read(1, 1)] == [0]
    assert [b.base_offset for b in world.read(2)] == [2]
    assert world.read(3) == []
