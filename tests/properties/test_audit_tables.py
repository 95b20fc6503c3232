"""Properties of the audit's tables: they agree with the controllers' own images.

The check computes the answer in another way: it replays batch by batch and looks at the image at
each batch end. The tables must say the same there, so records that were aborted or are open must be
absent.
"""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.embedded import JOBS, run_job
from audit.generated import batches as generated
from audit.reading.settling import settled
from audit.tables import BOOL, BY_NAME, INT, INTS, TEXT
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.messages.records_json import record_type_name
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from metadata.uuids import uuid_text
from tests.unit.audit.memory_log import history, replica_of, seal_all

seeds = st.integers(0, 2**32)
lengths = st.integers(1, 120)
some = settings(max_examples=30)
PYTHON = {TEXT: str, INT: int, BOOL: bool, INTS: tuple}
IN_MEMORY = set(JOBS) - {"batches", "integrity", "divergence"}


def images(batches) -> list[tuple[int, MetadataImage]]:
    """The image at the end of each batch, with the batch's base offset."""
    image, found = EMPTY, []
    for batch in batches:
        header = batch.header
        delta = MetadataDelta(image)
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        image = delta.apply()
        found.append((header.base_offset, image))
    return found


def partitions_in(image: MetadataImage) -> dict:
    """What an image says of partitions, as intervals say it."""
    found = {}
    for (topic_id, number), partition in image.topics.partitions.items():
        name = image.topics.by_id[topic_id].name
        min_isr = min_isr_in(image, name)
        found[uuid_text(topic_id), number] = (
            name,
            partition.leader,
            partition.isr,
            partition.replicas,
            min_isr,
            partition.leader == -1,
            len(partition.isr) < min_isr,
        )
    return found


def min_isr_in(image: MetadataImage, topic: str) -> int:
    for resource in ((2, topic), (4, "")):
        value = image.configs.value(*resource, "min.insync.replicas")
        counts = value and value.isascii() and value.isdecimal() and len(value) < 10
        if counts and int(value) > 0:
            return int(value)
    return 1


def brokers_in(image: MetadataImage) -> dict[int, str]:
    return {
        broker_id: "fenced"
        if broker.fenced
        else "stopping"
        if broker.in_controlled_shutdown
        else "online"
        for broker_id, broker in image.cluster.brokers.items()
    }


def covers(from_offset: int, until_offset: int | None, end: int) -> bool:
    """The state at offset `end` is made of the batches that begin before it."""
    return from_offset < end and (until_offset is None or end <= until_offset)


@some
@given(seeds, lengths)
def test_partition_intervals_say_at_each_offset_what_the_image_says(seed, length) -> None:
    batches = seal_all(history(seed, length))
    rows: list[Any] = run_job("partition_intervals", [replica_of(batches)])
    for _, image in images(batches):
        there = {
            (row[0], row[1]): (row[3], *row[7:])
            for row in rows
            if covers(row[2], row[4], image.offset)
        }
        assert there == partitions_in(image)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_holds_in_a_lifelike_history(seed) -> None:
    batches = list(generated(seed, records=3_000, open_transaction=True))
    partitions = run_job("partition_intervals", [replica_of(batches)])
    brokers = run_job("broker_intervals", [replica_of(batches)])
    last = images(batches)[::7]
    for _, image in last:
        end = image.offset
        there = {row[:2]: (row[3], *row[7:]) for row in partitions if covers(row[2], row[4], end)}
        assert there == partitions_in(image)
        online = {row[0]: row[5] for row in brokers if covers(row[1], row[2], end)}
        assert online == brokers_in(image)


@some
@given(seeds, lengths)
def test_broker_intervals_say_at_each_offset_what_the_image_says(seed, length) -> None:
    batches = seal_all(history(seed, length))
    rows: list[Any] = run_job("broker_intervals", [replica_of(batches)])
    for _, image in images(batches):
        there = {row[0]: row[5] for row in rows if covers(row[1], row[2], image.offset)}
        assert there == brokers_in(image)


@some
@given(seeds, lengths)
def test_intervals_of_a_partition_follow_each_other_and_differ(seed, length) -> None:
    rows: list[Any] = run_job("partition_intervals", [replica_of(seal_all(history(seed, length)))])
    by_key: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        by_key[row[:2]].append(row)
    for intervals in by_key.values():
        for one, after in pairwise(intervals):
            assert one.until_offset == after.from_offset
            assert one.until_ms == after.from_ms
            assert one[7:11] != after[7:11]
        for one in intervals:
            assert one.until_offset is None or one.from_offset < one.until_offset
            assert one.until_ms is None or one.from_ms <= one.until_ms


@some
@given(seeds, lengths)
def test_intervals_of_a_broker_that_follow_each_other_differ(seed, length) -> None:
    rows: list[Any] = run_job("broker_intervals", [replica_of(seal_all(history(seed, length)))])
    for one, after in pairwise(rows):
        if one.broker_id != after.broker_id:
            continue
        assert one.until_offset is not None
        assert one.from_offset < one.until_offset <= after.from_offset
        assert one.until_offset < after.from_offset or one.state != after.state


@some
@given(seeds, lengths)
def test_partition_events_folded_give_the_state(seed, length) -> None:
    batches = seal_all(history(seed, length))
    found: dict = {}
    rows: list[Any] = run_job("partition_events", [replica_of(batches)])
    for topic_id, number, _, _, _, _, _, kind, *what, _, _, _, _, _ in sorted(
        rows, key=lambda row: row[2]
    ):
        key = (topic_id, number)
        if kind == "removed":
            del found[key]
            continue
        assert (kind == "created") or key in found
        before = found.get(key, (None,) * 3)
        found[key] = tuple(
            old if new is None else new for old, new in zip(before, what, strict=True)
        )
    image = images(batches)[-1][1]
    assert found == {key: state[1:4] for key, state in partitions_in(image).items()}


@some
@given(seeds, lengths)
def test_outcomes_are_those_that_a_reader_of_the_whole_log_gives(seed, length) -> None:
    """Another way: each transaction's end is looked for from its begin on."""
    batches = seal_all(history(seed, length))
    records = [record for batch in batches for record in decode_records(batch.records)]
    expected, at = {}, 0
    while at < len(records):
        if not isinstance(records[at], BeginTransactionRecord):
            expected[at] = "settled"
            at += 1
            continue
        stops = (AbortTransactionRecord, EndTransactionRecord, BeginEpochRecord)
        end = next((i for i in range(at, len(records)) if isinstance(records[i], stops)), None)
        kind = type(records[end]) if end is not None else None
        outcome = "aborted"
        if kind is None:
            outcome = "open"
        elif kind is EndTransactionRecord:
            outcome = "settled"
        until = len(records) if end is None else end + (kind is not BeginEpochRecord)
        expected.update(dict.fromkeys(range(at, until), outcome))
        at = until
    found = {one.offset: one.outcome for one in settled(batches)}
    assert found == expected


@some
@given(seeds, lengths)
def test_counts_of_changes_are_the_settled_records(seed, length) -> None:
    batches = seal_all(history(seed, length))
    rows: list[Any] = run_job("changes", [replica_of(batches)])
    expected: Counter = Counter()
    for one in settled(batches):
        if one.outcome == "settled":
            who = one.header.provenance
            day = datetime.fromtimestamp(one.header.timestamp_ms // 1_000, UTC).date().isoformat()
            expected[day, who.principal, who.operation, record_type_name(type(one.record))] += 1
    assert {row[:4]: row[4] for row in rows} == expected
    log = run_job("log", [replica_of(batches)])
    times = {row[0]: row[1] for row in log}
    for row in rows:
        assert (times[row[5]], times[row[6]]) == row[7:9]
        assert row[5] <= row[6]
        assert row[4] <= row[6] - row[5] + 1


@some
@given(seeds, lengths)
def test_availability_is_the_intervals_cut_at_midnights(seed, length) -> None:
    batches = seal_all(history(seed, length))
    replicas = [replica_of(batches)]
    horizon = batches[-1].header.timestamp_ms
    sums: dict = defaultdict(Counter)
    intervals: list[Any] = run_job("partition_intervals", replicas)
    for row in intervals:
        key = ("partition", f"{row.topic_name}-{row.partition}@{row.topic_id}")
        for day, ms in days_of(row.from_ms, horizon if row.until_ms is None else row.until_ms):
            sums[*key, day].update(
                present=ms, offline=ms * row.offline, under=ms * row.under_min_isr
            )
    lives: list[Any] = run_job("broker_intervals", replicas)
    for row in lives:
        for day, ms in days_of(row.from_ms, horizon if row.until_ms is None else row.until_ms):
            sums["broker", str(row.broker_id), day].update(
                present=ms, fenced=ms * (row.state == "fenced")
            )
    names = ("present", "offline", "under", "fenced")
    expected = {key: tuple(found[name] for name in names) for key, found in sums.items()}
    rows: list[Any] = run_job("availability", replicas)
    assert {row[:3]: row[3:7] for row in rows} == expected


def days_of(from_ms: int, until_ms: int):
    """Each day that is touched, and its share, by the calendar."""
    at = datetime.fromtimestamp(from_ms // 1_000, UTC).date()
    while True:
        begin = int(datetime(at.year, at.month, at.day, tzinfo=UTC).timestamp()) * 1_000
        end = begin + 86_400_000
        yield at.isoformat(), max(0, min(end, until_ms) - max(begin, from_ms))
        if until_ms <= end:
            return
        at += timedelta(days=1)


@some
@given(seeds, lengths)
def test_leader_changes_are_those_that_images_show(seed, length) -> None:
    batches = seal_all(history(seed, length))
    expected: Counter = Counter()
    before: dict = {}
    for _, image in images(batches):
        now = {key: state[1] for key, state in partitions_in(image).items()}
        for (topic_id, number), leader in now.items():
            if before.get((topic_id, number), leader) != leader:
                day = datetime.fromtimestamp(image.timestamp_ms // 1_000, UTC).date().isoformat()
                expected[topic_id, number, day] += 1
        before = now
    found: Counter = Counter()
    for kind, key, day, *_, changes in run_job("availability", [replica_of(batches)]):
        if kind == "partition":
            partition, _, topic_id = key.rpartition("@")
            found[topic_id, int(partition.rpartition("-")[2]), day] += changes
    assert +found == expected


@some
@given(seeds, lengths)
def test_the_state_s_shares_add_up_to_the_live_image_s_hash(seed, length) -> None:
    batches = seal_all(history(seed, length))
    image = images(batches)[-1][1]
    total, *tables = run_job("state", [replica_of(batches)])
    assert total[0] == "*"
    assert total[2] + total[3] == image.state_hash.encode().hex()
    for column in (2, 3):
        parts = sum(int(row[column], 16) for row in tables)
        assert parts % 2**256 == int(total[column], 16)
    assert total[1] == sum(row[1] for row in tables)


@some
@given(seeds, lengths, st.data())
def test_up_to_an_offset_is_a_log_that_ends_there(seed, length, data) -> None:
    """An offset inside a batch stands for the batch's end."""
    batches = seal_all(history(seed, length))
    end = batches[-1].header.end_offset
    up_to = data.draw(st.integers(0, end))
    cut = [batch for batch in batches if batch.header.base_offset < up_to]
    for name in sorted(IN_MEMORY):
        whole = run_job(name, [replica_of(batches)], up_to=up_to)
        assert whole == run_job(name, [replica_of(cut)])


@some
@given(seeds, lengths)
def test_rows_are_as_their_table_says(seed, length) -> None:
    replicas = [replica_of(seal_all(history(seed, length)))]
    for name in sorted(IN_MEMORY):
        table, rows = BY_NAME[name], run_job(name, replicas)
        keys = [row[: table.key] for row in rows]
        assert keys == sorted(set(keys)), name
        for row in rows:
            assert len(row) == len(table.columns)
            for value, column in zip(row, table.columns, strict=True):
                if value is None:
                    assert column.nullable, (name, column)
                else:
                    assert type(value) is PYTHON[column.kind], (name, column, value)


@pytest.mark.parametrize("name", ["partition_intervals", "broker_intervals", "changes", "state"])
def test_of_several_replicas_the_longest_log_is_asked(name) -> None:
    batches = seal_all(history(5, 60))
    short, long = replica_of(batches[:20], "a"), replica_of(batches, "b")
    assert run_job(name, [short, long]) == run_job(name, [long])
    assert run_job(name, [short]) != run_job(name, [long])
