"""The state that Spark finds at an offset is the controllers' own, by its hash."""

import random

import pytest

from audit.reading.settling import settled
from audit.spark.folds.transactions import MARKERS, Marker, spans
from audit.spark.jobs.audited_log import AuditedLog
from audit.spark.jobs.engine import states_at
from audit.spark.jobs.state import REST, FoldRow, fold, state_rows
from metadata.codec import decode_records, encode_record
from metadata.image import EMPTY, MetadataDelta
from metadata.messages.records_json import record_type_name
from metadata.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.spark.cut_logs import cut_log
from tests.spark.log_writer import LogWriter

PARTS = 3


def live_hashes(batches, offsets):
    """What the live image's hash was at each offset, as the row `*` says it."""
    hashes, waiting = {}, sorted(offsets, reverse=True)
    delta = MetadataDelta(EMPTY)
    for batch in [*batches, None]:
        while waiting and (batch is None or batch.header.base_offset >= waiting[-1]):
            image = delta.apply()
            hashes[waiting.pop()] = image.state_hash.encode().hex()
            delta = MetadataDelta(image)
        if batch is not None:
            header = batch.header
            delta.replay_all(decode_records(batch.records), header.base_offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    return hashes


def said_hash(rows):
    (total,) = (row for row in rows if row[0] == "*")
    return total[2] + total[3]


def fold_rows(batches):
    """The rows that Spark would hand to a fold, without Spark."""
    rows = []
    for one in settled(batches):
        record, header = one.record, one.header
        encoded = encode_record(record)
        where = (one.offset, header.end_offset)
        when = (header.epoch, header.timestamp_ms)
        of_partition = isinstance(record, PartitionRecord | PartitionChangeRecord)
        if not of_partition or one.offset == header.end_offset - 1:
            rest = None if of_partition else encoded
            rows.append(FoldRow(REST, *where, header.base_offset, *when, rest))
        if one.settled_base is None:
            continue
        if isinstance(record, ClearElrRecord):
            parts = range(PARTS)
        elif isinstance(
            record, PartitionRecord | PartitionChangeRecord | TopicRecord | RemoveTopicRecord
        ):
            parts = [record.topic_id[0] % PARTS]
        else:
            parts = []
        rows += [FoldRow(part, *where, one.settled_base, *when, encoded) for part in parts]
    return sorted(rows, key=lambda row: (row.part, row.counts_from, row.offset))


@pytest.mark.parametrize("seed", range(6))
def test_a_fold_in_parts_is_the_live_state_at_every_offset(seed, tmp_path):
    log = LogWriter(tmp_path / "log", seed=seed).append(120)
    offsets = range(log.end + 1)
    wanted = live_hashes(log.batches, offsets)
    found = {}
    for one in fold(fold_rows(log.batches), offsets):
        found.setdefault(one.at, []).append(one)
    for offset in offsets:
        assert said_hash(state_rows(found.get(offset, []))) == wanted[offset], offset


@pytest.mark.parametrize("seed", range(40))
def test_spans_say_of_each_record_what_plain_settling_says(seed, tmp_path):
    log = LogWriter(tmp_path / "log", seed=seed).append(60)
    logged = list(settled(log.batches))
    found = spans(
        Marker(one.offset, one.header.base_offset, one.header.timestamp_ms, name)
        for one in logged
        if (name := record_type_name(type(one.record))) in MARKERS
    )
    for one in logged:
        said = ("settled", one.header.base_offset, one.header.timestamp_ms)
        for span in found.closed:
            if span.first <= one.offset <= span.last:
                said = span[2:]
        if found.open_from is not None and one.offset >= found.open_from:
            said = ("open", None, None)
        assert said == (one.outcome, one.settled_base, one.settled_ms), one.offset


@pytest.mark.parametrize("cut", [None, 1, 2], ids=["whole", "cut", "cut, in columns"])
def test_random_offsets_in_one_job(cut, tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=31, segment_bytes=16_384).append(300)
    first = cut_log(log, cut) if cut else 0
    dice = random.Random(31)
    offsets = sorted({first, log.end, *dice.sample(range(first, log.end), 6)})
    with AuditedLog(spark, [str(log.folder)]) as audited:
        found = states_at(audited, offsets)
    wanted = live_hashes(log.batches, offsets)
    assert {offset: said_hash(rows) for offset, rows in found.items()} == wanted
    assert len(set(wanted.values())) > 4
