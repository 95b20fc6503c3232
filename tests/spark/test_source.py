"""The batch source: what is in the log is in the table, and damage is never a missing row."""

import gzip
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from audit.places.replicas import NoLogError
from audit.questions.subjects import fields_text
from audit.spark.session import failure_sentence
from audit.spark.source.bronze import BRONZE_COLUMNS, UnknownColumnError
from audit.spark.source.log_source import batches, read_log
from ledger.errors import DamagedLedgerError, HistoryMissingError
from metadata.codec import decode_records, encode_record
from metadata.messages.records_json import record_type_name
from metadata.uuids import uuid_text
from tests.spark.log_writer import LogWriter

SEGMENT = 40_000


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return LogWriter(tmp_path_factory.mktemp("log"), seed=3, segment_bytes=SEGMENT).append(1_000)


def expected(log):
    """Offset → what is said of a record, by the plainest code there is."""
    rows = {}
    for batch in log.batches:
        header = batch.header
        for offset, record in enumerate(decode_records(batch.records), header.base_offset):
            rows[offset] = (
                header.timestamp_ms,
                header.epoch,
                header.base_offset,
                header.end_offset,
                header.provenance.principal,
                header.provenance.on_behalf_of,
                uuid_text(header.provenance.request_id) if header.provenance.request_id else "",
                record_type_name(type(record)),
                record.VERSION,
                encode_record(record),
                fields_text(record),
            )
    return rows


def offsets(frame):
    return sorted(row[0] for row in frame.select("offset").collect())


def sentence_of(frame):
    with pytest.raises(PythonException) as caught:
        frame.count()
    return failure_sentence(caught.value)


def test_every_record_is_one_row_and_says_what_the_log_says(spark: SparkSession, log) -> None:
    assert len(log.segments) > 4
    columns = "timestamp_ms epoch base_offset end_offset principal on_behalf_of request_id type"
    names = ["offset", *columns.split(), "version", "record", "fields"]
    rows = read_log(spark, [str(log.folder)], columns=names).collect()
    found = {row[0]: (*row[1:10], bytes(row[10]), row[11]) for row in rows}
    assert len(rows) == len(found)
    assert found == expected(log)


def test_bronze_has_the_columns_it_promises_and_no_costly_ones(spark, log) -> None:
    frame = read_log(spark, [str(log.folder)])
    assert frame.columns == list(BRONZE_COLUMNS)
    assert offsets(frame) == list(range(log.end))
    with pytest.raises(UnknownColumnError, match="no column 'colour'; there are offset"):
        read_log(spark, [str(log.folder)], columns=["offset", "colour"])
    with pytest.raises(UnknownColumnError, match="no record type 'TOPIC'"):
        read_log(spark, [str(log.folder)], types=["TOPIC"])


def test_large_segments_are_split_at_batches(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("audit.spark.source.reading.PIECE_BYTES_MIN", 10_000)
    log = LogWriter(tmp_path / "log", seed=4).append(800)
    assert len(log.segments) == 1
    # Planning happens in a process of its own; here the planner is asked, then its pieces are read.
    from audit.spark.source.reading import open_longest, plan, read_piece  # noqa: PLC0415

    replica, reader = open_longest([str(log.folder)])
    pieces = plan([str(log.folder)], replica, reader, 0, log.end, 7)
    assert 5 <= len(pieces) <= 8
    read = [batch for piece in pieces for batch in read_piece(piece)]
    assert [batch.encoded for batch in read] == [batch.encoded for batch in log.batches]
    middle = log.batches[400].header
    pieces = plan(
        [str(log.folder)], replica, reader, middle.base_offset + middle.count - 1, log.end, 3
    )
    read = [batch for piece in pieces for batch in read_piece(piece)]
    assert [batch.encoded for batch in read] == [batch.encoded for batch in log.batches[400:]]


def test_ranges_are_whole_batches(spark, log) -> None:
    """From the batch that holds the start to the last that begins before the end."""
    first, last = log.batches[100].header, log.batches[700].header
    assert first.count > 1 or last.count > 1
    frame = read_log(
        spark,
        [str(log.folder)],
        start=first.base_offset + first.count - 1,
        up_to=last.base_offset + 1,
    )
    assert offsets(frame) == list(range(first.base_offset, last.end_offset))
    frame = read_log(spark, [str(log.folder)], start=5, up_to=5)
    assert offsets(frame) == []
    with pytest.raises(NoLogError, match=f"the log ends at offset {log.end}, before"):
        read_log(spark, [str(log.folder)], up_to=log.end + 1)


def test_types_are_an_option(spark, log) -> None:
    wanted = ["TOPIC_RECORD", "PARTITION_CHANGE_RECORD"]
    frame = read_log(spark, [str(log.folder)], types=wanted, columns=["offset"])
    assert offsets(frame) == [o for o, row in sorted(expected(log).items()) if row[7] in wanted]


def test_the_end_is_fixed_when_the_frame_is_made(spark, tmp_path) -> None:
    log = LogWriter(tmp_path / "log", segment_bytes=SEGMENT).append(100)
    end = log.end
    frame = read_log(spark, [str(log.folder)], columns=["offset"])
    log.append(400)
    assert len(log.segments) > 1
    assert offsets(frame) == list(range(end))
    assert frame.where(F.col("offset") >= end).count() == 0
    assert read_log(spark, [str(log.folder)], columns=["offset"]).count() == log.end


def test_filters_stay_out_of_the_source(spark, log) -> None:
    """What was filtered in one query is there in the next, and in a union with itself."""
    frame = read_log(spark, [str(log.folder)], columns=["offset"])
    assert frame.where("offset < 3").count() == 3
    assert frame.count() == log.end
    assert frame.where("offset < 3").unionByName(frame).count() == log.end + 3


def test_spark_still_applies_pushed_filters_to_other_queries(spark) -> None:
    """Why the source has no `pushFilters`; when this fails, the bug is gone and it may get one."""
    from pyspark.sql.datasource import (  # noqa: PLC0415 - a source travels with what it needs
        DataSource,
        DataSourceReader,
        InputPartition,
        LessThan,
    )

    class Reader(DataSourceReader):
        below = 10

        def pushFilters(self, filters):
            for found in filters:
                if isinstance(found, LessThan):
                    self.below = found.value
                else:
                    yield found

        def partitions(self):
            return [InputPartition(0)]

        def read(self, partition):
            yield from ((number,) for number in range(self.below))

    class Ten(DataSource):
        @classmethod
        def name(cls):
            return "ten_rows"

        def schema(self):
            return "x bigint"

        def reader(self, schema):
            return Reader()

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(Ten)
        frame = spark.read.format("ten_rows").load()
        assert frame.where("x < 3").count() == 3
        assert frame.count() == 3, "it is right by now: see audit/spark/source/log_source.py"
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def damaged_copy(log, folder: Path) -> Path:
    return Path(shutil.copytree(log.folder, folder))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_flipped_byte_stops_the_job_and_names_its_place(spark, log, tmp_path) -> None:
    copy = damaged_copy(log, tmp_path / "copy")
    segment = sorted((copy / "log").iterdir())[2]
    flip(segment, 20_000)
    sentence = sentence_of(read_log(spark, [str(copy)], columns=["offset"]))
    assert str(segment) in sentence
    assert "offset" in sentence
    assert "the checksum (CRC-32C) does not fit the bytes" in sentence
    # What lies before can be read.
    base = int(segment.stem)
    assert read_log(spark, [str(copy)], up_to=base, columns=["offset"]).count() == base


def test_a_record_rewritten_with_a_right_checksum_stops_the_job(spark, log, tmp_path) -> None:
    copy = damaged_copy(log, tmp_path / "copy")
    from ledger.frame import finish_frame  # noqa: PLC0415 - the forger's tool

    victim = log.batches[300]
    segment = next(
        s
        for s in sorted((copy / "log").iterdir(), reverse=True)
        if int(s.stem) <= victim.header.base_offset
    )
    data = segment.read_bytes()
    at = data.index(victim.encoded)
    forged = bytearray(victim.encoded[:-4])
    forged[39] ^= 1  # one millisecond
    segment.write_bytes(data[:at] + finish_frame(bytes(forged)) + data[at + len(victim.encoded) :])
    sentence = sentence_of(read_log(spark, [str(copy)], columns=["offset"]))
    assert "the chain is broken" in sentence or "timestamp falls" in sentence
    assert str(segment) in sentence


def test_a_missing_segment_stops_the_job(spark, log, tmp_path) -> None:
    copy = damaged_copy(log, tmp_path / "copy")
    gone = sorted((copy / "log").iterdir())[3]
    gone.unlink()
    sentence = sentence_of(read_log(spark, [str(copy)], columns=["offset"]))
    assert f"the segment ends at offset {int(gone.stem)}, it reached further" in sentence


def test_history_before_the_first_segment_is_refused(spark, log, tmp_path) -> None:
    copy = damaged_copy(log, tmp_path / "copy")
    first, second = sorted((copy / "log").iterdir())[:2]
    first.unlink()
    assert offsets(read_log(spark, [str(copy)])) == list(range(int(second.stem), log.end))
    with pytest.raises(HistoryMissingError):
        read_log(spark, [str(copy)], start=0)


def test_a_running_nodes_unfinished_tail_is_not_read_yet(spark, tmp_path) -> None:
    log = LogWriter(tmp_path / "log").append(50)
    end = log.batches[-1].header.base_offset
    os.truncate(log.segments[-1], log.segments[-1].stat().st_size - 3)
    assert offsets(read_log(spark, [str(log.folder)])) == list(range(end))


def test_a_segment_that_moves_to_the_archive_meanwhile_is_found(spark, tmp_path) -> None:
    log = LogWriter(tmp_path / "log", segment_bytes=SEGMENT).append(400)
    frame = read_log(spark, [str(log.folder)], columns=["offset"])
    frame.explain()
    from audit.spark.source.reading import open_longest, plan, read_piece  # noqa: PLC0415

    replica, reader = open_longest([str(log.folder)])
    pieces = plan([str(log.folder)], replica, reader, 0, log.end, 1)
    archive = log.folder / "archive"
    archive.mkdir()
    log.segments[0].rename(archive / log.segments[0].name)
    read = [batch for piece in pieces for batch in read_piece(piece)]
    assert len(read) == len(log.batches)
    assert offsets(frame) == list(range(log.end))


def test_of_several_replicas_the_longest_is_read(spark, tmp_path) -> None:
    short = LogWriter(tmp_path / "a", seed=5).append(50)
    long = LogWriter(tmp_path / "b", seed=5).append(80)
    assert read_log(spark, [str(short.folder), str(long.folder)]).count() == long.end


def test_a_replica_that_cannot_be_opened_is_passed_over_if_another_can(spark, tmp_path) -> None:
    whole = LogWriter(tmp_path / "a", seed=5).append(50)
    broken = LogWriter(tmp_path / "b", seed=5, segment_bytes=SEGMENT).append(300)
    flip(broken.segments[1], 1)
    places = [str(broken.folder), str(whole.folder)]
    assert read_log(spark, places, columns=["offset"]).count() == whole.end
    with pytest.raises(DamagedLedgerError, match=str(broken.segments[1])):
        read_log(spark, places[:1])


def test_archives_and_compressed_segments_are_read_by_tasks(spark, tmp_path, monkeypatch) -> None:
    """By a relative name, too: tasks run in other folders."""
    log = LogWriter(tmp_path / "controller-1", segment_bytes=SEGMENT).append(400)
    with tarfile.open(tmp_path / "kept.tar.gz", "w:gz") as archive:
        archive.add(log.folder, "controller-1")
    packed = tmp_path / "packed" / "log"
    packed.mkdir(parents=True)
    for segment in log.segments:
        (packed / f"{segment.name}.gz").write_bytes(gzip.compress(segment.read_bytes()))
    monkeypatch.chdir(tmp_path)
    for place in ("kept.tar.gz", "packed", f"file://{log.folder}"):
        assert offsets(read_log(spark, [place], columns=["offset"])) == list(range(log.end)), place
        assert batches(spark, [place]).where("crc_ok").count() == len(log.batches), place


def test_no_log_is_a_sentence(spark, tmp_path) -> None:
    with pytest.raises(NoLogError, match=str(tmp_path)):
        read_log(spark, [str(tmp_path)])
    with pytest.raises(NoLogError, match="no place was named"):
        read_log(spark, [])


class TestFrames:
    def test_every_frame_of_every_replica(self, spark, tmp_path) -> None:
        logs = [
            LogWriter(tmp_path / name, seed=6, segment_bytes=SEGMENT).append(count)
            for name, count in (("a", 300), ("b", 250))
        ]
        rows = batches(spark, [str(log.folder) for log in logs]).collect()
        found = sorted((r.replica, r.base_offset, r["count"], r.hash, r.crc_ok) for r in rows)
        assert found == sorted(
            (log.folder.name, b.header.base_offset, b.header.count, b.hash.hex(), True)
            for log in logs
            for b in log.batches
        )
        previous = {(r.replica, r.base_offset + r["count"]): r.hash for r in rows}
        for row in rows:
            if row.base_offset:
                assert row.previous_hash == previous[row.replica, row.base_offset]
        some = batches(spark, [str(logs[0].folder)], up_to=logs[0].batches[9].header.base_offset)
        assert some.count() == 9

    def test_a_frame_with_a_wrong_checksum_is_a_row(self, spark, tmp_path) -> None:
        log = LogWriter(tmp_path / "log", seed=6).append(30)
        victim = log.batches[10]
        data = log.segments[0].read_bytes()
        at = data.index(victim.encoded)
        flip(log.segments[0], at + len(victim.encoded) - 20)
        rows = batches(spark, [str(log.folder)]).orderBy("base_offset").collect()
        assert len(rows) == 30
        assert [r.base_offset for r in rows if not r.crc_ok] == [victim.header.base_offset]

    def test_where_no_frame_can_begin_the_segments_rows_end(self, spark, tmp_path) -> None:
        log = LogWriter(tmp_path / "log", seed=6, segment_bytes=SEGMENT).append(300)
        first = log.segments[0]
        in_first = [b for b in log.batches if b.header.base_offset < int(log.segments[1].stem)]
        flip(first, first.read_bytes().index(in_first[5].encoded))
        rows = batches(spark, [str(log.folder)]).collect()
        assert len(rows) == 300 - len(in_first) + 5
        assert all(row.crc_ok for row in rows)
