"""What the report draws over time: partitions by lanes, brokers by cells."""

import re

import pytest

pytest.importorskip("jinja2", reason="the report is written by jinja2: logberg[audit]")
pytest.importorskip("vl_convert", reason="the report is drawn by vl-convert: logberg[audit]")

from audit.report.fencing import fencing
from audit.report.page import page
from audit.report.period import Period
from audit.report.tabular import ReportTable
from audit.report.timelines import timelines
from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS
from tests.report import sample
from tests.report.sample import BEGIN_MS, PERIOD, facts, row, span


def plain(said: str) -> str:
    return said.replace("\xa0", " ")


def texts(table: ReportTable, column: int) -> list[str]:
    return [each[column].text for each in table.rows]


@pytest.mark.slow
def test_timelines_take_the_busiest_and_those_without_leader() -> None:
    found = timelines(sample.partition_intervals(), PERIOD)
    names = [each.name for each in found.shown]
    assert found.partitions == 20
    assert names[0] == "orders-0"
    assert len(names) == 8, "orders-0 is the busiest, and the only one that was without leader"
    closer = found.shown[0].figures[1]
    assert plain(closer.title) == (
        "6 h from 2026-10-24 21:55 UTC, around its longest time without leader"
    )
    assert ("no leader", "var(--bad)") in closer.key
    assert 'no leader, 1 h 30 min, 2026-10-25 00:10:00 to 2026-10-25 01:40:00"' in plain(
        closer.drawing
    )


def test_a_partition_long_without_leader_is_shown_though_little_happened() -> None:
    away = [
        row(
            "partition_intervals",
            topic_id="zzz",
            topic_name="quiet",
            from_offset=place,
            from_ms=BEGIN_MS + place * DAY_MS,
            until_ms=None if place == 2 else BEGIN_MS + (place + 1) * DAY_MS,
            leader=-1 if place == 1 else 4,
            isr=(4,),
            replicas=(4,),
            offline=place == 1,
        )
        for place in range(3)
    ]
    found = timelines([*sample.partition_intervals(), *away], PERIOD)
    assert [each.name for each in found.shown][-1] == "quiet-0"


def test_two_topics_of_one_name_are_told_apart() -> None:
    rows = []
    for topic_id in ("one", "two"):
        rows += [(topic_id, *each[1:]) for each in sample.partition_intervals(3)]
    names = [each.name for each in timelines(rows, PERIOD).shown]
    assert "orders-0 (topic id one)" in names
    assert "orders-0 (topic id two)" in names


def test_a_lane_of_very_many_pieces_is_cut_and_says_so() -> None:
    rows = [
        row(
            "partition_intervals",
            topic_id="t",
            topic_name="busy",
            from_offset=place,
            from_ms=BEGIN_MS + place * MINUTE_MS,
            until_ms=BEGIN_MS + (place + 1) * MINUTE_MS,
            leader=place % 2,
            isr=(0, 1),
            replicas=(0, 1),
        )
        for place in range(20_000)
    ]
    found = timelines(rows, PERIOD)
    whole = found.shown[0].figures[0]
    assert "short pieces not drawn" in whole.caption
    assert len(whole.drawing) < 400_000


def test_fencing_counts_what_was_in_service_and_spreads_time_over_pieces() -> None:
    found = fencing(sample.broker_intervals(), PERIOD)
    assert (found.brokers, found.fenced, found.times) == (6, 3, 26)
    assert found.fenced_ms == sum(5 + 3 * n for n in range(24)) * MINUTE_MS + 16 * MINUTE_MS
    assert found.figure is not None
    assert "broker 3, 2026-11-01: fenced 4 h 18 min of 1 d (17.9 %)" in plain(found.figure.drawing)
    assert "broker 5, 2026-10-28" not in found.figure.drawing, "not registered yet"
    assert texts(found.table, 0)[0] == "broker 3"


def test_a_broker_that_registers_fenced_was_not_fenced_out_of_service() -> None:
    rows = [
        row("broker_intervals", from_ms=BEGIN_MS, until_ms=BEGIN_MS + 5, state="fenced"),
        row("broker_intervals", from_ms=BEGIN_MS + 5, state="online"),
    ]
    assert fencing(rows, PERIOD).times == 0


def test_many_brokers_are_cut_to_the_worst() -> None:
    rows = [
        row(
            "broker_intervals",
            broker_id=broker,
            from_ms=BEGIN_MS,
            until_ms=BEGIN_MS + broker * HOUR_MS if broker else None,
            state="fenced" if broker else "online",
        )
        for broker in range(300)
    ]
    found = fencing(rows, PERIOD)
    assert found.brokers == 300
    assert found.figure is not None
    assert "260 brokers with less fenced time not drawn" in found.figure.caption
    assert "200 are not on this page" in found.table.left_out


def test_what_happens_at_the_very_end_is_drawn_within() -> None:
    rows = [
        span(0, BEGIN_MS, PERIOD.until_ms, leader=1, isr=(1,), replicas=(1,)),
        span(0, PERIOD.until_ms, None, leader=-1, isr=(1,), replicas=(1,), offline=True),
    ]
    drawing = timelines(rows, PERIOD).shown[0].figures[0].drawing
    (path,) = re.findall(r'<path d="M([\d.]+),[\d.]+h([\d.]+)v[^>]*data-tip="no leader', drawing)
    (plot,) = re.findall(r'd="M0,0h(\d+)v\d+h-\d+Z"', drawing)[:1]
    assert float(path[0]) + float(path[1]) <= float(plot) + 0.1


def test_a_history_of_one_moment_is_drawn() -> None:
    moment = Period(BEGIN_MS, BEGIN_MS)
    rows = [
        span(0, BEGIN_MS, BEGIN_MS, leader=1, isr=(1,), replicas=(1,)),
        span(0, BEGIN_MS, None, leader=2, isr=(2,), replicas=(2,)),
    ]
    assert len(timelines(rows, moment).shown) == 1
    assert "NaN" not in page(facts(period=moment, partition_intervals=rows))
