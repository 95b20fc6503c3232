"""The command `availability`: totals, days, the worst, and a part of the history."""

import json
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.embedded import run_job
from audit.embedded.availability import DailySums, availability_since
from audit.embedded.days import DAY_MS, by_day, day_of
from audit.embedded.partition_intervals import PartitionInterval
from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.reading.feed import Feed, Question
from logberg.commands.audit import availability
from logberg.commands.audit.availability import duration
from metadata.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.unit.audit.memory_log import logged, replica_of

TOPIC = b"\x07" * 16
HOUR_MS = 3_600_000
FIRST_MS = 1_700_000_000_000


def hourly() -> list:
    """A log of five hours; the partition is offline in the hours 1 to 2 and 3 to 4."""
    groups = [
        [TopicRecord("orders", TOPIC), PartitionRecord(0, TOPIC, (1,), (1,), (), (), 1, 0, 0)]
    ]
    groups += [[PartitionChangeRecord(0, TOPIC, leader=each)] for each in (-1, 1, -1, 2, 2)]
    return logged(*groups, step_ms=HOUR_MS)


def since(ms: int) -> tuple[int, ...]:
    rows = list(availability_since(Feed(Question([replica_of(hourly())])), FIRST_MS + ms))
    return tuple(sum(row[column] for row in rows) for column in (3, 4, 7))


@pytest.mark.parametrize(
    ("from_ms", "sums"),
    [
        (0, (5, 2, 4)),
        (HOUR_MS, (4, 2, 4)),
        (1.5 * HOUR_MS, (3.5, 1.5, 3)),
        (4 * HOUR_MS, (1, 0, 1)),
        (4.5 * HOUR_MS, (0.5, 0, 0)),
        (9 * HOUR_MS, (0, 0, 0)),
    ],
)
def test_only_what_was_from_then_on_is_counted(from_ms, sums) -> None:
    present, offline, changes = sums
    assert since(int(from_ms)) == (present * HOUR_MS, offline * HOUR_MS, changes)


def test_days_of_a_span_are_cut_at_midnight() -> None:
    day = 86_400_000
    assert list(by_day(0, day)) == [(0, day)]
    assert list(by_day(5, 5)) == [(0, 0)]
    assert list(by_day(day - 1, day + 1)) == [(0, 1), (1, 1)]
    assert list(by_day(5, 3 * day + 7)) == [(0, day - 5), (1, day), (2, day), (3, 7)]
    assert day_of(20_000 * day - 1) == "2024-10-03"


def test_a_day_that_is_over_takes_twenty_bytes() -> None:
    """A month of 10,000,000 records has millions of such days: they must fit in memory."""
    partitions, days = 400, 200
    sums = DailySums()
    tracemalloc.start()
    try:
        for number in range(days):
            begin, end = number * DAY_MS, (number + 1) * DAY_MS
            for partition in range(partitions):
                topic = ("id", partition, number, "orders", number + 1)
                sums.add_partitions(
                    [PartitionInterval(*topic, begin, end, 1, (1,), (1,), 1, False, False)]
                )
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / (partitions * days) < 40
    assert sum(1 for _ in sums.rows()) == partitions * days


@pytest.fixture(scope="module")
def lifelike(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lifelike")
    write_history(folder, records=8_000, seed=2)
    return folder


def run(*words: str):
    return CliRunner().invoke(availability.command, list(words), catch_exceptions=False)


def asked(*words: str) -> dict:
    result = run(*words, "--output", "json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_partitions_topics_and_brokers_add_up_to_the_job_s_rows(lifelike) -> None:
    rows = run_job("availability", open_replicas(str(lifelike)))
    partitions = [row for row in rows if row[0] == "partition"]
    expected = {
        "presentMs": sum(row[3] for row in partitions),
        "offlineMs": sum(row[4] for row in partitions),
        "underMinIsrMs": sum(row[5] for row in partitions),
        "leaderChanges": sum(row[7] for row in partitions),
    }
    assert min(expected.values()) > 0
    for by in ("partition", "topic"):
        found = asked(str(lifelike), "--by", by, "--worst", "100000")
        assert found["total"] == expected
        for column, value in expected.items():
            assert sum(day[column] for day in found["days"]) == value
            assert sum(one[column] for one in found["worst"]) == value
    brokers = [row for row in rows if row[0] == "broker"]
    found = asked(str(lifelike), "--by", "broker")
    assert found["total"] == {
        "presentMs": sum(row[3] for row in brokers),
        "fencedMs": sum(row[6] for row in brokers),
    }


def test_the_worst_come_first_and_as_many_as_are_asked_for(lifelike) -> None:
    rows = run_job("availability", open_replicas(str(lifelike)))
    offline: dict[str, int] = {}
    for row in rows:
        if row[0] == "partition":
            offline[row[1]] = offline.get(row[1], 0) + row[4]
    found = asked(str(lifelike), "--worst", "3")["worst"]
    assert [one["offlineMs"] for one in found] == sorted(offline.values())[::-1][:3]
    assert all(offline[one["key"]] == one["offlineMs"] for one in found)


def test_people_get_tables_with_bars(lifelike) -> None:
    result = run(str(lifelike), "--worst", "2")
    assert result.exit_code == 0
    assert "in all" in result.stdout
    assert "█" in result.stdout
    assert "worst of" in result.stdout
    later = run(str(lifelike), "--from", "2100-01-01", "--to", "end")
    assert later.exit_code == 0
    assert "2026" not in later.stdout


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (1_500, "1.500 s"),
        (60_000, "00:01:00"),
        (3_600_000 * 25 + 61_000, "1d 01:01:01"),
    ],
)
def test_lengths_of_time_as_people_read_them(ms, text) -> None:
    assert duration(ms) == text
