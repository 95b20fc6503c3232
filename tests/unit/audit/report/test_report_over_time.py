"""What the report keeps over time: steps of partitions for the page to draw, brokers by cells."""

import base64
import json
import re
import zlib
from itertools import accumulate

import pytest

pytest.importorskip("jinja2", reason="the report is written by jinja2: logberg[audit]")

from audit.report import timelines as timelines_module
from audit.report.details import Details
from audit.report.fencing import fencing
from audit.report.page import page
from audit.report.period import Period
from audit.report.tabular import ReportTable
from audit.report.timelines import Timelines, TimelineSums, UnknownTimelineError
from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS
from tests.report import sample
from tests.report.sample import BEGIN_MS, PERIOD, facts, row, span


def plain(said: str) -> str:
    return said.replace("\xa0", " ")


def texts(table: ReportTable, column: int) -> list[str]:
    return [each[column].text for each in table.rows]


def timelines(rows: list, period: Period = PERIOD, *asked: str) -> Timelines:
    sums = TimelineSums(period)
    for each in rows:
        sums.add(each)
    return sums.section(sample.broker_intervals(), asked)


def names(found: Timelines) -> list[str]:
    return [line[0] for line in found.lines]


def test_every_step_of_a_partition_that_changed_is_kept() -> None:
    rows = sample.partition_intervals(3)
    found = timelines(rows)
    for name, topic, times, offsets, states, lasts in found.lines:
        number = int(name.removeprefix("orders-"))
        its = [each for each in rows if each[1] == number]
        within = [each for each in its if each[6] is None or each[6] >= BEGIN_MS]
        assert topic == "orders"
        ends = [each[6] or PERIOD.until_ms for each in within]
        starts = [max(each[5], BEGIN_MS) for each in within]
        assert list(accumulate(times)) == [*starts, ends[-1]]
        assert list(accumulate(offsets)) == [each[2] for each in within]
        assert [found.states[state] for state in states] == [each[7:11] for each in within]
        assert lasts == 1
    assert found.partitions == 3
    assert found.steps == sum(len(line[4]) for line in found.lines)


def test_the_one_longest_without_leader_is_first_and_drawn_unless_another_is_asked_for() -> None:
    rows = [*sample.partition_intervals(), *sample.hurt()]
    found = timelines(rows)
    assert names(found)[:2] == ["orders-0", "payments-0"], "both were away for 90 minutes"
    assert found.asked == ("partition:orders-0",)
    asked = timelines(rows, PERIOD, "orders-3", "topic:payments", "broker:3")
    assert asked.asked == ("partition:orders-3", "topic:payments", "broker:3")
    assert {line[1] for line in asked.lines[:14]} == {"orders", "payments"}


@pytest.mark.parametrize("thing", ["orders-99", "topic:none", "broker:77", "user:ana", ""])
def test_a_timeline_of_nothing_is_refused_by_name(thing: str) -> None:
    with pytest.raises(UnknownTimelineError, match=re.escape(repr(thing))):
        timelines(sample.partition_intervals(3), PERIOD, thing)


def test_what_is_too_much_for_a_page_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*sample.partition_intervals(), *sample.hurt()]
    every = timelines(rows)
    monkeypatch.setattr(timelines_module, "_MOST_STEPS", every.steps // 2)
    found = timelines(rows)
    assert found.steps <= every.steps // 2
    assert found.partitions == every.partitions
    left = every.partitions - len(found.lines)
    assert plain(found.left_out).startswith(f"{left} partitions that changed least are not on")
    last = names(every)[-1]
    assert last not in names(found)
    assert last in names(timelines(rows, PERIOD, f"partition:{last}")), "what is asked for is kept"


def test_two_topics_of_one_name_are_told_apart() -> None:
    rows = []
    for topic_id in ("one", "two"):
        rows += [(topic_id, *each[1:]) for each in sample.partition_intervals(3)]
    found = names(timelines(rows))
    assert "orders-0 (topic id one)" in found
    assert "orders-0 (topic id two)" in found


def test_brokers_are_kept_within_the_period() -> None:
    brokers = dict(timelines([]).brokers)
    assert sorted(brokers) == list(range(6))
    assert [step[2] for step in brokers[1]] == ["online", "stopping", "fenced", "online"]
    assert brokers[0][0][:2] == [BEGIN_MS, PERIOD.until_ms]


def test_the_page_holds_them_packed() -> None:
    (data,) = re.findall(r'id="data">([^<]+)<', page(facts()))
    found = json.loads(zlib.decompress(base64.b64decode(data)))
    assert found["period"] == list(PERIOD)
    assert found["asked"] == ["partition:orders-0"]
    assert len(found["lines"]) == 34, "orders has 20 partitions; of payments 14 changed"
    assert len(found["records"]) == len({tuple(map(str, each)) for each in found["records"]})
    for _, total, places, command in found["details"]:
        assert 0 < len(places) <= min(6, total)
        assert max(places) < len(found["records"])
        assert command.startswith("logberg audit ")


def test_fencing_counts_what_was_in_service_and_spreads_time_over_pieces() -> None:
    details = Details("log")
    found = fencing(sample.broker_intervals(), PERIOD, details)
    assert (found.brokers, found.fenced, found.times) == (6, 3, 26)
    assert found.fenced_ms == sum(5 + 3 * n for n in range(24)) * MINUTE_MS + 16 * MINUTE_MS
    assert found.figure is not None
    assert "broker 3, 2026-11-01: fenced 4 h 18 min of 1 d (17.9 %)" in plain(found.figure.drawing)
    assert found.figure.drawing.count('class="present"') == 5 * 31 + 22, "broker 5 came later"
    assert texts(found.table, 0)[0] == "broker 3"
    assert any(detail.command == "logberg audit history log broker:3" for detail in details.all)


def test_a_broker_that_registers_fenced_was_not_fenced_out_of_service() -> None:
    rows = [
        row("broker_intervals", from_ms=BEGIN_MS, until_ms=BEGIN_MS + 5, state="fenced"),
        row("broker_intervals", from_ms=BEGIN_MS + 5, state="online"),
    ]
    assert fencing(rows, PERIOD, Details("log")).times == 0


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
    found = fencing(rows, PERIOD, Details("log"))
    assert found.brokers == 300
    assert found.figure is not None
    assert "260 brokers with less fenced time not drawn" in found.figure.caption
    assert "200 are not on this page" in found.table.left_out


def test_a_history_of_one_moment_is_drawn() -> None:
    moment = Period(BEGIN_MS, BEGIN_MS)
    rows = [
        span(0, BEGIN_MS, BEGIN_MS, leader=1, isr=(1,), replicas=(1,)),
        span(0, BEGIN_MS, None, leader=2, isr=(2,), replicas=(2,)),
    ]
    assert timelines(rows, moment).partitions == 1
    drawn = page(facts(period=moment, partition_intervals=rows))
    # The page's last part is data in base 64, which may have any letters.
    assert "NaN" not in re.sub(r"<script[^>]*>[A-Za-z0-9+/=]+</script>", "", drawn)


def test_a_partition_that_never_changed_has_no_timeline() -> None:
    found = timelines([span(0, BEGIN_MS - DAY_MS, None, leader=1, isr=(1,), replicas=(1,))])
    assert (found.partitions, found.lines, found.asked) == (0, [], ())
