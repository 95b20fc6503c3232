"""Leaders and in-sync replicas over time, for the partitions with most changes.

Rule: each is drawn over the whole period, and a second time close up: where it was longest without
a leader, otherwise where it changed most. Minutes can't be seen in a drawing of a month.
"""

from collections import Counter
from heapq import nsmallest
from itertools import pairwise
from typing import Any, Final, NamedTuple

from audit.report.facts import Rows
from audit.report.figure import Figure
from audit.report.lanes import Interval, figure
from audit.report.period import Period
from audit.report.tabular import ReportTable, at, missing, table, text
from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS, duration, minute

_BUSIEST: Final = 8
_LONGEST_AWAY: Final = 4
_ROWS: Final = 40
_LEADER_WEIGHS: Final = 10
"""How many changes of the ISR a change of leader counts for in the search for the busiest
window."""
_LENGTH_COUNTS: Final = 0.4
"""Exponent: a window of twice the length must hold a third more changes to be preferred."""
_CLOSE_UPS: Final = (10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS)


class Timeline(NamedTuple):
    """One partition."""

    name: str
    changes: int
    figures: tuple[Figure, ...]
    table: ReportTable


class Timelines(NamedTuple):
    """The section."""

    shown: tuple[Timeline, ...]
    partitions: int
    """How many changed at all in the period."""


def timelines(rows: Rows, period: Period) -> Timelines:
    """Draw the partitions that changed most in the period, and those offline longest.

    Reads the rows twice: once to choose, once to collect. The rows of a partition come in order.
    """
    happened, away = _measured(rows, period)
    busiest = nsmallest(_BUSIEST, happened, key=lambda key: (-happened[key], key))
    longest_away = nsmallest(_LONGEST_AWAY, away, key=lambda key: (-away[key], key))
    chosen: dict[_Key, list[Interval]] = {key: [] for key in (*busiest, *longest_away)}
    topics: dict[_Key, str] = {}
    for row in rows:
        found = chosen.get(row[:2])
        interval = None if found is None else _within(row, period)
        if found is not None and interval is not None:
            topics[row[:2]] = row[3]
            found.append(interval)
    names = Counter((topics[key], key[1]) for key in chosen)
    shown = []
    for key, intervals in chosen.items():
        label = f"{topics[key]}-{key[1]}"
        if names[topics[key], key[1]] > 1:
            label += f" (topic id {key[0]})"
        shown.append(_timeline(label, intervals, period))
    return Timelines(tuple(shown), len(happened))


_Key = tuple[str, int]
"""Topic id and partition."""


def _measured(rows: Rows, period: Period) -> tuple[dict[_Key, int], dict[_Key, int]]:
    """Return how often each partition changed in the period, and how long it was offline."""
    there: Counter[_Key] = Counter()
    away: Counter[_Key] = Counter()
    for row in rows:
        part = period.clip(row[5], row[6])
        if part is None:
            continue
        there[row[:2]] += 1
        if row[11]:
            away[row[:2]] += part[1] - part[0]
    happened = {key: number - 1 for key, number in there.items() if number > 1}
    return happened, {key: length for key, length in away.items() if key in happened and length}


def _within(row: tuple[Any, ...], period: Period) -> Interval | None:
    """Return an interval cut to the period, or None."""
    _, _, offset, _, _, from_ms, until_ms, leader, isr, replicas, low, off, under = row
    part = period.clip(from_ms, until_ms)
    if part is None:
        return None
    return Interval(*part, until_ms is None, offset, leader, isr, replicas, low, off, under)


def _timeline(name: str, intervals: list[Interval], period: Period) -> Timeline:
    figures = [figure("The whole period", name, intervals, period)]
    near, what = _without_leader(intervals, period), "around its longest time without leader"
    if near is None:
        near, what = _busiest(intervals, period), "its busiest"
    if near is not None:
        title = f"{duration(near.length_ms)} from {minute(near.from_ms)} UTC, {what}"
        figures.append(figure(title, name, intervals, near))
    return Timeline(name, len(intervals) - 1, tuple(figures), _table(name, intervals))


def _without_leader(intervals: list[Interval], period: Period) -> Period | None:
    """Return a window around the longest offline interval, or None."""
    offline = [each for each in intervals if each.offline]
    longest = max(offline, key=lambda each: each.until_ms - each.from_ms, default=None)
    if longest is None:
        return None
    away = longest.until_ms - longest.from_ms
    fitting = [size for size in _CLOSE_UPS if 3 * away <= size and 4 * size <= period.length_ms]
    if not fitting:
        return None
    start = (longest.from_ms + longest.until_ms - fitting[0]) // 2
    start = max(period.from_ms, start // MINUTE_MS * MINUTE_MS)
    return Period(start, min(start + fitting[0], period.until_ms))


def _busiest(intervals: list[Interval], period: Period) -> Period | None:
    """Return the window with most changes for its length, or None if no window shows more."""
    happened = [
        (after.from_ms, 1 if after.leader == before.leader else _LEADER_WEIGHS)
        for before, after in pairwise(intervals)
    ]
    fitting = [
        size for size in _CLOSE_UPS if period.length_ms <= 1_000 * size <= 125 * period.length_ms
    ]
    if not fitting or len(happened) < 3:
        return None
    windows = [(*_fullest(happened, size), size) for size in fitting]
    _, first_ms, size = max(windows, key=lambda window: window[0] / window[2] ** _LENGTH_COUNTS)
    start = max(period.from_ms, first_ms - size // 20) // MINUTE_MS * MINUTE_MS
    return Period(start, min(start + size, period.until_ms))


def _fullest(happened: list[tuple[int, int]], size: int) -> tuple[int, int]:
    """Return the greatest weight within a window of this size, and when that window begins."""
    low, weight = 0, 0
    best = (0, 0)
    for at_ms, weighs in happened:
        weight += weighs
        while at_ms - happened[low][0] > size * 9 // 10:
            weight -= happened[low][1]
            low += 1
        if weight > best[0]:
            best = (weight, happened[low][0])
    return best


def _table(name: str, intervals: list[Interval]) -> ReportTable:
    rows = [
        (
            at(each.from_ms),
            text("to the end" if each.lasts else duration(each.until_ms - each.from_ms)),
            text("none", "bad") if each.offline else text(str(each.leader)),
            text(_ids(each.isr), "warn" if each.under_min_isr else ""),
            text(_ids(each.replicas)),
            text(str(each.min_isr)),
            text(str(each.offset), "mono"),
        )
        for each in intervals[-_ROWS:]
    ]
    return table(
        f"Steps of {name}",
        ["From", "For", "Leader", "ISR", "Replicas", "Min ISR", "Offset"],
        rows,
        left_out=missing(len(intervals), _ROWS, "steps", "the latest begin"),
        filtered=False,
    )


def _ids(brokers: tuple[int, ...]) -> str:
    return " ".join(map(str, brokers))
