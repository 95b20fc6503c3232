"""One partition over time: a lane for each broker, and one lane for each problem.

Rule: neighbouring intervals in one state are one bar. A bar that is too short to be seen is
widened. If there are too many bars, the longest of a lane are drawn, and the caption counts the
others.
"""

from collections import Counter
from heapq import nlargest
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from audit.report.drawing import WIDTH, draw
from audit.report.figure import Figure, coloured, time_axis
from audit.report.period import Period
from audit.report.words import SECOND_MS, counted, duration, minute, moment

_LANES: Final = 12
_BARS: Final = 300
"""The most bars of one lane and one state."""
_SHORTEST_MS: Final = SECOND_MS
"""No drawing covers less time."""
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
    """It is still so at the horizon."""
    offset: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    min_isr: int
    offline: bool
    under_min_isr: bool


class _Bar(NamedTuple):
    lane: str
    state: str
    from_ms: int
    until_ms: int


def figure(title: str, name: str, intervals: list[Interval], period: Period) -> Figure:
    """Draw the states of a partition, one lane for each broker."""
    period = Period(period.from_ms, max(period.until_ms, period.from_ms + _SHORTEST_MS))
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
        caption += f"{counted(dropped, 'short piece')} not drawn: there are too many to see. "
    if dropped_lanes:
        caption += f"{counted(dropped_lanes, 'broker')} that had it for less time not drawn."
    drawing = draw(spec, _alt(name, seen, lanes, period))
    key = tuple((state, _COLOURS[state]) for state in states)
    return Figure(title, drawing, caption.strip(), key)


def _lanes(intervals: list[Interval]) -> tuple[list[int], int]:
    """Return the brokers to draw, and the number of those left out."""
    times: Counter[int] = Counter()
    for each in intervals:
        for broker in (*each.replicas, *each.isr):
            times[broker] += each.until_ms - each.from_ms + 1
    kept = sorted(broker for broker, _ in times.most_common(_LANES))
    return kept, len(times) - len(kept)


def _bars(intervals: list[Interval], lanes: set[int]) -> list[_Bar]:
    """Return the bars of all lanes. Neighbouring intervals in one state are one bar."""
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
    latest = period.until_ms - least
    marks = [
        {
            "from": min(bar.from_ms, latest),
            "until": max(bar.until_ms, min(bar.from_ms, latest) + least),
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
    is_out = f"datum.colour == '{_OUT}'"
    return {
        "width": WIDTH,
        "height": 28 * len(lanes) + 8,
        "data": {"values": marks},
        "layer": [
            {
                "transform": [{"filter": f"!({is_out})"}],
                "mark": {"type": "bar"},
                "encoding": encoding,
            },
            {
                "transform": [{"filter": is_out}],
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
