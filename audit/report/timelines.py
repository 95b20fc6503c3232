"""Leaders and in-sync replicas of the partitions to which most happened, drawn over time.

Rule: one lane a broker. What is shorter than the drawing can show is widened, never dropped
silently: the longest pieces of a lane are drawn, and the figure says how many are not.
"""

from collections import Counter
from heapq import nlargest, nsmallest
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from audit.report.drawing import WIDTH, draw
from audit.report.facts import Rows
from audit.report.figure import Figure, coloured, time_axis
from audit.report.period import Period
from audit.report.tabular import Table, at, missing, table, text
from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS, counted, duration, minute, moment

_BUSIEST: Final = 8
_LONGEST_AWAY: Final = 4
_LANES: Final = 12
_BARS: Final = 300
"""Of one lane and one state."""
_ROWS: Final = 40
_LEADER_WEIGHS: Final = 10
"""A change of leader, in changes of the ISR, when the busiest window is looked for."""
_LENGTH_COUNTS: Final = 0.4
"""Exponent: twice the time must hold a third more to be preferred."""
_CLOSE_UPS: Final = (10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS)
_LEADS, _IN_ISR, _OUT = "leads", "in sync", "replica, not in sync"
_NO_LEADER, _UNDER = "no leader", "under min ISR"
_COLOURS: Final = {
    _LEADS: "var(--lead)",
    _IN_ISR: "var(--in-sync)",
    _OUT: "var(--out)",
    _NO_LEADER: "var(--bad)",
    _UNDER: "var(--warn)",
}


class Interval(NamedTuple):
    """How a partition was for a while; within the period."""

    from_ms: int
    until_ms: int
    lasts: bool
    """Still so at the horizon."""
    offset: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    min_isr: int
    offline: bool
    under_min_isr: bool


class Timeline(NamedTuple):
    """One partition."""

    name: str
    changes: int
    figures: tuple[Figure, ...]
    table: Table


class Timelines(NamedTuple):
    """The section."""

    shown: tuple[Timeline, ...]
    partitions: int
    """How many had a change at all in the period."""


class _Bar(NamedTuple):
    lane: str
    state: str
    from_ms: int
    until_ms: int


def timelines(rows: Rows, period: Period) -> Timelines:
    """Draw the partitions that changed most often in the period, and those longest offline.

    Reads the rows twice: to choose, and to keep what was chosen. Each partition's are in order.
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
    """Return how often each partition changed in the period, and how long those were offline."""
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
    figures = [_figure("The whole period", name, intervals, period)]
    near, what = _without_leader(intervals, period), "around its longest time without leader"
    if near is None:
        near, what = _busiest(intervals, period), "its busiest"
    if near is not None:
        title = f"{duration(near.length_ms)} from {minute(near.from_ms)} UTC, {what}"
        figures.append(_figure(title, name, intervals, near))
    return Timeline(name, len(intervals) - 1, tuple(figures), _table(name, intervals))


def _without_leader(intervals: list[Interval], period: Period) -> Period | None:
    """Return a window with the longest offline interval in its midst, or None."""
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
    """Return the window in which most happens for its length, or None where none shows more."""
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
    """Return the greatest weight within such a time, and when that begins."""
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


def _figure(title: str, name: str, intervals: list[Interval], period: Period) -> Figure:
    seen = []
    for each in intervals:
        part = period.clip(each.from_ms, each.until_ms)
        if part is not None:
            seen.append(each._replace(from_ms=part[0], until_ms=part[1]))
    lanes, dropped_lanes = _lanes(seen)
    bars, dropped = _longest(_bars(seen, set(lanes)))
    states = [state for state in _COLOURS if any(bar.state == state for bar in bars)]
    extra = [state for state in (_NO_LEADER, _UNDER) if state in states]
    spec = _spec(bars, [f"broker {lane}" for lane in lanes] + extra, states, period)
    caption = ""
    if dropped:
        caption += f"{counted(dropped, 'short piece')} not drawn: too many to be seen. "
    if dropped_lanes:
        caption += f"{counted(dropped_lanes, 'broker')} that held it for less time not drawn."
    drawing = draw(spec, _alt(name, seen, lanes, period))
    key = tuple((state, _COLOURS[state]) for state in states)
    return Figure(title, drawing, caption.strip(), key)


def _lanes(intervals: list[Interval]) -> tuple[list[int], int]:
    """Return the brokers to draw, and how many are left out."""
    times: Counter[int] = Counter()
    for each in intervals:
        for broker in (*each.replicas, *each.isr):
            times[broker] += each.until_ms - each.from_ms + 1
    kept = sorted(broker for broker, _ in times.most_common(_LANES))
    return kept, len(times) - len(kept)


def _bars(intervals: list[Interval], lanes: set[int]) -> list[_Bar]:
    """Return the bars of all lanes; neighbours in one state are one bar."""
    done: list[_Bar] = []
    open_bars: dict[tuple[str, str], _Bar] = {}
    for each in intervals:
        states = {(f"broker {b}", _state(each, b)) for b in each.replicas if b in lanes}
        if each.offline:
            states.add((_NO_LEADER, _NO_LEADER))
        if each.under_min_isr:
            states.add((_UNDER, _UNDER))
        ended = [key for key in open_bars if key not in states]
        done += [open_bars.pop(key) for key in ended]
        for key in states:
            before = open_bars.get(key)
            if before is not None and before.until_ms == each.from_ms:
                open_bars[key] = before._replace(until_ms=each.until_ms)
                continue
            if before is not None:
                done.append(before)
            open_bars[key] = _Bar(*key, each.from_ms, each.until_ms)
    return sorted([*done, *open_bars.values()])


def _state(each: Interval, broker: int) -> str:
    if broker == each.leader:
        return _LEADS
    return _IN_ISR if broker in each.isr else _OUT


def _longest(bars: list[_Bar]) -> tuple[list[_Bar], int]:
    kept: list[_Bar] = []
    for _, group in groupby(bars, key=lambda bar: bar[:2]):
        kept += nlargest(_BARS, group, key=lambda bar: bar.until_ms - bar.from_ms)
    return kept, len(bars) - len(kept)


def _spec(bars: list[_Bar], lanes: list[str], states: list[str], period: Period) -> dict[str, Any]:
    least = max(1, period.length_ms * 2 // WIDTH)
    marks = [
        {
            "from": bar.from_ms,
            "until": max(bar.until_ms, bar.from_ms + least),
            "lane": bar.lane,
            "colour": bar.state,
            "tip": f"{bar.lane}: {bar.state}, {duration(bar.until_ms - bar.from_ms)}, "
            f"{moment(bar.from_ms)} to {moment(bar.until_ms)}",
        }
        for bar in bars
    ]
    encoding = {
        "x": time_axis(period),
        "x2": {"field": "until"},
        "y": {
            "field": "lane",
            "type": "nominal",
            "sort": lanes,
            "scale": {"domain": lanes, "paddingInner": 0.28, "paddingOuter": 0.14},
            "axis": {"title": None, "grid": False, "minExtent": 90},
        },
        "color": coloured(states, [_COLOURS[state] for state in states]),
        "description": {"field": "tip"},
    }
    thin = {"test": f"datum.colour == '{_OUT}'"}
    return {
        "width": WIDTH,
        "height": 28 * len(lanes) + 8,
        "data": {"values": marks},
        "layer": [
            {
                "transform": [{"filter": f"!({thin['test']})"}],
                "mark": {"type": "bar"},
                "encoding": encoding,
            },
            {
                "transform": [{"filter": thin["test"]}],
                "mark": {"type": "bar", "height": {"band": 0.4}},
                "encoding": encoding,
            },
        ],
    }


def _alt(name: str, seen: list[Interval], lanes: list[int], period: Period) -> str:
    leads = [each.leader for each in seen if each.leader >= 0]
    moves = sum(1 for before, after in pairwise(leads) if before != after)
    offline = sum(each.until_ms - each.from_ms for each in seen if each.offline)
    return (
        f"{name} from {minute(period.from_ms)} to {minute(period.until_ms)} UTC on "
        f"{counted(len(lanes), 'broker')}: the leader moved {counted(moves, 'time')}; "
        f"{duration(offline)} without leader. The table that follows has the steps."
    )


def _table(name: str, intervals: list[Interval]) -> Table:
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
