"""What makes a log grow: every byte is counted once in each way, and the rate is the log's own."""

import json
from pathlib import Path

import pytest

from audit.generated.writing import write_history
from audit.places.replicas import one_replica
from audit.questions.growth import DAY_MS, ENVELOPE, growth_of
from tests.unit.logberg.edge import run_whole


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    write_history(folder, records=4_000, days=None)
    return folder / "controller-1"


def test_every_byte_is_counted_once_in_each_way(node: Path) -> None:
    batches = list(one_replica(str(node)).reader().batches())
    found = growth_of(batches)
    assert found.bytes == sum(len(batch.encoded) for batch in batches)
    for shares in (found.days, found.operations, found.types):
        assert sum(share.bytes for share in shares) == found.bytes
    assert sum(share.records for share in found.types) == found.records
    assert sum(share.batches for share in found.days) == found.batches == len(batches)
    assert next(s for s in found.types if s.name == ENVELOPE).batches == len(batches)
    sizes = [share.bytes for share in found.operations]
    assert sizes == sorted(sizes, reverse=True)
    assert [share.name for share in found.days] == sorted(share.name for share in found.days)


def test_the_rate_is_that_of_the_last_days(node: Path) -> None:
    batches = list(one_replica(str(node)).reader().batches())
    last = batches[-1].header.timestamp_ms
    found = growth_of(batches, 1.0)
    within = [b for b in batches if b.header.timestamp_ms > last - DAY_MS]
    assert found.rate_days == 1.0
    # Bytes are summed by hours.
    assert found.rate_bytes >= sum(len(b.encoded) for b in within)
    assert found.rate_bytes <= sum(
        len(b.encoded) for b in batches if b.header.timestamp_ms > last - DAY_MS - 3_600_000
    )
    assert found.days_until(int(found.bytes_a_day * 5)) == pytest.approx(5, rel=0.01)


def test_a_longer_time_than_the_log_has_is_the_logs(node: Path) -> None:
    batches = list(one_replica(str(node)).reader().batches())
    found = growth_of(batches, 100_000.0)
    span = (found.last_ms - found.first_ms) / DAY_MS
    assert found.rate_days == span
    assert found.rate_bytes == found.bytes


def test_a_log_of_one_moment_has_no_rate(node: Path) -> None:
    batches = list(one_replica(str(node)).reader().batches())[:1]
    found = growth_of(batches)
    assert found.bytes_a_day == 0
    assert found.days_until(1) is None


def test_the_rate_of_one_week_predicts_the_next_within_a_fifth(tmp_path: Path) -> None:
    """Of a made-up cluster: what is planned by the command's figure comes true."""
    write_history(tmp_path, days=14.0, checkpoint_every=0)
    batches = list(one_replica(str(tmp_path / "controller-1")).reader().batches())
    middle = batches[0].header.timestamp_ms + 7 * DAY_MS
    first = growth_of(batch for batch in batches if batch.header.timestamp_ms < middle)
    second = growth_of(batch for batch in batches if batch.header.timestamp_ms >= middle)
    assert second.bytes == pytest.approx(first.bytes_a_day * 7, rel=0.2)


def test_the_command_says_it(node: Path) -> None:
    said = run_whole("audit", "size", str(node), "--free", "1000000000", "--output", "json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["daysUntilFull"] == pytest.approx(1e9 / found["bytesADay"])
    assert found["checkpointBytes"] > 0
    shown = run_whole("audit", "size", str(node))
    assert shown.code == 0
    assert "days until full" in shown.out
    assert "not known" not in shown.out
