"""From an image to its snapshot and back."""

import pytest

from metadata.image import (
    MetadataDelta,
    ReplayError,
    image_from_records,
    image_to_records,
    load_image,
    snapshot,
)
from metadata.records import (
    SNAPSHOT_ONLY,
    BeginEpochRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EpochStartRecord,
    FeatureLevelRecord,
    OutcomeFloorRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RequestOutcomeRecord,
    ShutdownOffsetRecord,
    TopicRecord,
)
from tests.unit.image.replaying import (
    OTHER_ID,
    TOPIC_ID,
    partition,
    registration,
    replayed,
    with_topic,
)

RICH = replayed(
    RequestOutcomeRecord(bytes(15) + b"\x01", bytes(32), b"", 0),
    ConfigRecord(2, "orders", "a", "1"),
    TopicRecord("another", OTHER_ID),
    partition(0, OTHER_ID),
    registration(2),
    BrokerRegistrationChangeRecord(2, 10, in_controlled_shutdown=1),
    BeginEpochRecord(1, (), ()),
    registration(1),
    FeatureLevelRecord("metadata.version", 20),
    PartitionChangeRecord(1, TOPIC_ID, isr=(3,), leader=3),
    image=with_topic(partition(1), partition(0)),
    epoch=4,
)


def test_the_order_is_canonical() -> None:
    """Features, quorum, brokers, each topic with its partitions, configs; controllers' own last."""
    records = list(image_to_records(RICH))
    assert [type(record).__name__.removesuffix("Record") for record in records] == [
        "FeatureLevel", "BeginEpoch", "EpochStart", "RegisterBroker", "RegisterBroker",
        "ShutdownOffset", "Topic", "Partition", "Partition", "Topic", "Partition", "Config",
        "RequestOutcome",
    ]  # fmt: skip
    partitions = [(r.topic_id, r.partition_id) for r in records if isinstance(r, PartitionRecord)]
    assert partitions == [(TOPIC_ID, 0), (TOPIC_ID, 1), (OTHER_ID, 0)]
    assert not [r for r in image_to_records(RICH, for_brokers=True) if r.__class__.TYPE_ID == 1001]


def test_epochs_and_shutdown_offsets_survive() -> None:
    """No record of the log says them, so records of the snapshot do."""
    records = list(image_to_records(RICH))
    loaded = image_from_records(records, RICH.offset, RICH.epoch, RICH.timestamp_ms)
    assert loaded == RICH
    assert loaded.quorum.epochs[4].offset == 9
    assert loaded.cluster.brokers[2].controlled_shutdown_offset == RICH.offset


def test_a_snapshot_that_does_not_say_it_gives_a_safe_shutdown_offset() -> None:
    """From Kafka's own snapshots: never too small."""
    records = [registration(2, in_controlled_shutdown=True), BeginEpochRecord(1, (), ())]
    loaded = image_from_records(records, 500, 9, 0)
    assert loaded.cluster.brokers[2].controlled_shutdown_offset == 500
    assert loaded.quorum.epochs[9].offset == 500


def test_a_large_snapshot_is_loaded_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a loop can go on between; the last step is the whole."""
    monkeypatch.setattr(snapshot, "_RECORDS_PER_DELTA", 3)
    monkeypatch.setattr(snapshot, "STEP", 1)
    records: list[Record] = list(image_to_records(RICH))
    steps = list(load_image(records, RICH.offset, RICH.epoch, RICH.timestamp_ms))
    assert len(steps) >= len(records)
    assert steps[-1] == RICH
    assert steps[-1].state_hash == RICH.state_hash
    assert steps[0] != RICH


def test_an_empty_snapshot_is_an_empty_image() -> None:
    """It still says where it stands."""
    loaded = image_from_records([], 7, 2, 99)
    assert (loaded.offset, loaded.epoch, loaded.timestamp_ms) == (7, 2, 99)


def test_records_out_of_order_are_refused() -> None:
    """A partition before its topic is no snapshot of ours."""
    with pytest.raises(ReplayError, match="there is no topic"):
        image_from_records([partition()], 1, 1, 1)


@pytest.mark.parametrize(
    "record",
    [EpochStartRecord(1, 0, 1), ShutdownOffsetRecord(2, 9), OutcomeFloorRecord(bytes(16))],
    ids=lambda record: type(record).__name__,
)
def test_what_stands_in_snapshots_only_is_refused_in_a_log(record: Record) -> None:
    """By controllers and brokers, and within a transaction too."""
    sentence = f"{type(record).__name__} is allowed only in snapshots"
    assert type(record) in SNAPSHOT_ONLY
    for keep_outcomes in (True, False):
        delta = MetadataDelta(RICH, keep_outcomes=keep_outcomes)
        with pytest.raises(ReplayError, match=sentence):
            delta.replay(record, RICH.offset)
        delta.replay(BeginTransactionRecord("t"), RICH.offset)
        with pytest.raises(ReplayError, match=sentence):
            delta.replay(record, RICH.offset + 1)


def test_a_shutdown_offset_of_a_broker_that_stays_is_refused() -> None:
    """A snapshot that isn't understood is not loaded by halves."""
    for records in ([], [registration(2)]):
        with pytest.raises(ReplayError, match="broker 2 isn't in controlled shutdown"):
            image_from_records([*records, ShutdownOffsetRecord(2, 5)], 5, 1, 1)
