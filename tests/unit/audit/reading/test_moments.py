"""What people type for a moment, and the offset that it means."""

import shutil
from pathlib import Path

import pytest

from audit.places.replicas import one_replica
from audit.reading.dump import utc
from audit.reading.moments import MomentError, offset_of, time_ms
from ledger.errors import DamagedLedgerError
from ledger.reader import LedgerReader
from metadata.records import NoOpRecord
from tests.histories import History, HistoryBatch
from tests.unit.audit.nodes import write_node

BATCHES = History(5).batches(80)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    write_node(folder, written=BATCHES, segment_bytes=2_048)
    return folder


@pytest.fixture(scope="module")
def reader(folder: Path) -> LedgerReader:
    return one_replica(str(folder)).reader()


def end_at(timestamp_ms: int) -> int:
    """The definition in `audit.tables`, in plain code."""
    return max((b.end_offset for b in BATCHES if b.timestamp_ms <= timestamp_ms), default=0)


def batch_of(offset: int) -> HistoryBatch:
    return next(b for b in BATCHES if b.base_offset <= offset < b.end_offset)


def test_an_offset_is_a_batch_s_end_or_stands_for_it(reader: LedgerReader) -> None:
    for offset in range(reader.log_end + 1):
        expected = 0 if offset == 0 else batch_of(offset - 1).end_offset
        assert offset_of(reader, str(offset)) == expected


def test_none_and_end_are_the_log_s_end(reader: LedgerReader) -> None:
    assert offset_of(reader, None) == offset_of(reader, "end") == reader.log_end


def test_a_time_is_the_end_of_the_last_batch_that_is_not_later(reader: LedgerReader) -> None:
    times = sorted({batch.timestamp_ms for batch in BATCHES})
    for time in times:
        for moment in (time - 1, time, time + 1):
            assert offset_of(reader, utc(moment)) == end_at(moment)


def test_zones_dates_and_times_without_a_zone() -> None:
    assert time_ms("2026-11-20T10:00:00Z") == time_ms("2026-11-20T12:00:00+02:00")
    assert time_ms("2026-11-20T10:00:00") == time_ms("2026-11-20T10:00:00Z")
    assert time_ms("2026-11-20") == time_ms("2026-11-20T00:00:00Z")
    assert time_ms("1970-01-01T00:00:00.250Z") == 250


@pytest.mark.parametrize(
    ("text", "seconds"), [("-1s", 1), ("-30m", 1_800), ("-2h", 7_200), ("-1d", 86_400)]
)
def test_relative_times_count_from_the_log_s_last(
    reader: LedgerReader, text: str, seconds: int
) -> None:
    assert offset_of(reader, text) == end_at(BATCHES[-1].timestamp_ms - seconds * 1_000)


def test_relative_times_are_exact(tmp_path: Path) -> None:
    times = (0, 3_420, 3_480, 3_540, 3_600)
    batches = [
        HistoryBatch(n, 1, 1_700_000_000_000 + time * 1_000, (NoOpRecord(),))
        for n, time in enumerate(times)
    ]
    write_node(tmp_path, written=batches)
    reader = one_replica(str(tmp_path)).reader()
    for text, end in (
        ("-0s", 5),
        ("-59s", 4),
        ("-60s", 4),
        ("-1m", 4),
        ("-61s", 3),
        ("-3m", 2),
        ("-1h", 1),
    ):
        assert offset_of(reader, text) == end


@pytest.mark.parametrize("text", ["yesterday", "-2", "2h", "12.5", "-5y", "²", "0x10", "-1"])
def test_what_is_no_moment_is_refused_with_what_is(reader: LedgerReader, text: str) -> None:
    with pytest.raises(MomentError, match=r"is not a moment. Use an offset"):
        offset_of(reader, text)


def test_an_offset_behind_the_end_is_refused(reader: LedgerReader) -> None:
    with pytest.raises(MomentError, match=f"the log ends at {reader.log_end}"):
        offset_of(reader, str(reader.log_end + 1))


def test_what_is_before_the_history_that_is_here_is_refused(folder: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(folder, node)
    min((node / "log").glob("*.log")).unlink()
    reader = one_replica(str(node)).reader()
    assert reader.log_start > 0
    for text in ("0", str(reader.log_start - 1), "-3000w", utc(BATCHES[0].timestamp_ms)):
        with pytest.raises(MomentError, match="where the history here begins"):
            offset_of(reader, text)
    assert offset_of(reader, str(reader.log_start)) == reader.log_start


def test_an_unfinished_tail_is_behind_every_moment(folder: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(folder, node)
    last = max((node / "log").glob("*.log"))
    last.write_bytes(last.read_bytes()[:-5])
    reader = one_replica(str(node)).reader()
    assert reader.log_end == BATCHES[-1].base_offset
    for text in (utc(BATCHES[-1].timestamp_ms + 1), "end", "-0s", str(reader.log_end)):
        assert offset_of(reader, text) == reader.log_end


def test_damage_on_the_way_to_a_moment_is_named(folder: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(folder, node)
    first = min((node / "log").glob("*.log"))
    data = bytearray(first.read_bytes())
    position = int.from_bytes(data[8:12], "big")
    data[position : position + 4] = b"XXXX"
    first.write_bytes(data)
    with pytest.raises(DamagedLedgerError, match=f"{first.name}, byte {position}, offset 0"):
        offset_of(one_replica(str(node)).reader(), utc(BATCHES[0].timestamp_ms))
