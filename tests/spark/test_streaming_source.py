"""The stream: every record once, whatever is appended, killed or begun again meanwhile."""

import shutil

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from audit.spark.session import failure_sentence
from audit.spark.source.log_source import stream_log
from tests.spark.log_writer import LogWriter

SEGMENT = 40_000


class Streaming:
    """A stream from a log into Parquet, with its checkpoint."""

    def __init__(self, spark, log, folder) -> None:
        self.spark, self.log, self.folder = spark, log, folder

    def query(self, *, records_per_trigger=None, start=None, **trigger):
        frame = stream_log(
            self.spark,
            str(self.log.folder),
            columns=["offset", "type"],
            records_per_trigger=records_per_trigger,
            start=start,
        )
        return (
            frame.writeStream.format("parquet")
            .option("path", str(self.folder / "rows"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(**trigger)
            .start()
        )

    def run(self, **options):
        """Read what is there; return the records of each micro-batch."""
        query = self.query(availableNow=True, **options)
        assert query.awaitTermination(60)
        return [p.numInputRows for p in query.recentProgress if p.numInputRows]

    def offsets(self):
        rows = self.spark.read.parquet(str(self.folder / "rows")).select("offset").collect()
        return sorted(row[0] for row in rows)


@pytest.fixture
def streaming(spark, tmp_path):
    log = LogWriter(tmp_path / "log", seed=7, segment_bytes=SEGMENT).append(300)
    return Streaming(spark, log, tmp_path)


def test_available_now_reads_all_and_again_only_what_is_new(streaming) -> None:
    log = streaming.log
    assert sum(streaming.run()) == log.end
    assert streaming.offsets() == list(range(log.end))
    assert streaming.run() == []
    before = log.end
    log.append(200)
    assert len(log.segments) > 2
    assert sum(streaming.run()) == log.end - before
    assert streaming.offsets() == list(range(log.end))


def test_micro_batches_are_whole_batches(streaming) -> None:
    log = streaming.log
    most = 100
    sizes = streaming.run(records_per_trigger=most)
    assert len(sizes) > log.end // most
    assert all(size <= most for size in sizes)
    ends, boundaries = 0, {batch.header.end_offset for batch in log.batches}
    for size in sizes:
        ends += size
        assert ends in boundaries
    assert streaming.offsets() == list(range(log.end))


def test_a_batch_larger_than_a_micro_batch_may_be_is_read_all_the_same(streaming) -> None:
    last = streaming.log.batches[-4:]
    sizes = streaming.run(records_per_trigger=1, start=last[0].header.base_offset)
    assert sizes == [batch.header.count for batch in last]
    assert max(sizes) > 1


def test_a_node_that_appends_and_rolls_segments_between_micro_batches(streaming) -> None:
    """New data comes midway, while the query runs; also an unfinished frame at the end."""
    log = streaming.log
    query = streaming.query(processingTime="0 seconds")
    try:
        for _ in range(4):
            log.append(60)
            query.processAllAvailable()
            assert streaming.offsets() == list(range(log.end))
        assert len(log.segments) > 2
        known = log.end
        log.withheld = 5
        log.append(1)
        query.processAllAvailable()
        assert streaming.offsets() == list(range(known))
        log.finish()
        query.processAllAvailable()
        assert streaming.offsets() == list(range(log.end))
        assert query.exception() is None
    finally:
        query.stop()


def test_a_micro_batch_that_was_planned_and_not_committed_is_read_again_once(streaming) -> None:
    """What a kill leaves: the checkpoint says what to read, and not that it was written."""
    log = streaming.log
    first = log.end
    streaming.run()
    log.append(100)
    streaming.run()
    commits = streaming.folder / "checkpoint" / "commits"
    (commits / "1").unlink()
    (commits / ".1.crc").unlink(missing_ok=True)
    metadata = streaming.folder / "rows" / "_spark_metadata"
    (metadata / "1").unlink()
    (metadata / ".1.crc").unlink(missing_ok=True)
    assert streaming.offsets() == list(range(first))
    end = log.end
    log.append(50)
    assert streaming.run() == [end - first, log.end - end]
    assert streaming.offsets() == list(range(log.end))


def test_a_start_offset_inside_the_log(streaming) -> None:
    header = streaming.log.batches[100].header
    streaming.run(start=header.base_offset + header.count - 1)
    assert streaming.offsets() == list(range(header.base_offset, streaming.log.end))


def test_damage_stops_the_stream_and_repair_lets_it_go_on(streaming) -> None:
    log = streaming.log
    streaming.run()
    known = log.end
    log.append(40)
    victim = log.segments[-1]
    whole = victim.read_bytes()
    bad = bytearray(whole)
    bad[whole.index(log.batches[-3].encoded) + 90] ^= 1
    victim.write_bytes(bad)
    with pytest.raises(StreamingQueryException) as caught:
        streaming.run()
    assert "the checksum (CRC-32C) does not fit" in failure_sentence(caught.value)
    assert streaming.offsets() == list(range(known))
    victim.write_bytes(whole)
    streaming.run()
    assert streaming.offsets() == list(range(log.end))


@pytest.mark.parametrize("batches", [5, 400])
def test_another_log_under_an_old_checkpoint_is_refused(streaming, batches) -> None:
    """A checkpoint continues only with its own log, whether the other is shorter or longer."""
    streaming.run()
    known = streaming.log.end
    shutil.rmtree(streaming.log.folder)
    streaming.log = LogWriter(streaming.log.folder, seed=8).append(batches)
    with pytest.raises(StreamingQueryException) as caught:
        streaming.run()
    sentence = failure_sentence(caught.value)
    assert f"is not the log that was read up to offset {known}" in sentence
    assert ("its chain hash there differs" in sentence) == (batches == 400)


def test_the_continuous_trigger_is_refused_in_one_sentence(tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=1).append(5)
    writer = stream_log(spark, str(log.folder)).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(PySparkException, match="does not support continuous processing"):
        writer.trigger(continuous="1 second").start()
