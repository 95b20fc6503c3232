"""Who changed how much, and when: first people and services, then the cluster itself.

Rule: a record that counts is a change. The log's own bookkeeping is summed separately and not
drawn: answers kept for retries, no-ops, and the marks of epochs and transactions. Brokers and
controllers write far more than people do, so the two groups never share an axis.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from audit.report.drawing import draw
from audit.report.facts import Rows
from audit.report.figure import (
    OTHERS_COLOUR,
    SERIES,
    Figure,
    coloured,
    counting_axis,
    inset,
    time_axis,
)
from audit.report.period import Period, Pieces
from audit.report.tabular import ReportTable, at, count, missing, table, text
from audit.report.words import DAY_MS, counted, day_ms, day_of, minute, number

_BOOKKEEPING: Final = frozenset(
    {
        "NO_OP_RECORD",
        "REQUEST_OUTCOME_RECORD",
        "BEGIN_EPOCH_RECORD",
        "BEGIN_TRANSACTION_RECORD",
        "END_TRANSACTION_RECORD",
        "ABORT_TRANSACTION_RECORD",
    }
)
_CLUSTER: Final = {"Broker": "brokers", "Controller": "controllers"}
"""Principals of the cluster itself, by the word before the colon, and the name of their sum."""
_MOST_PIECES: Final = 92
_MOST_ROWS: Final = 150
_OTHERS: Final = "all others"
_TIMES: Final = "\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}"


class Group(NamedTuple):
    """People and services, or the cluster itself."""

    total: int
    principals: int
    busiest: tuple[str, int]
    """Who changed most, and how much; an empty name if nobody changed anything."""
    figure: Figure | None
    table: ReportTable


class ChangesSection(NamedTuple):
    """The section."""

    people: Group
    cluster: Group
    bookkeeping: int


class _Sum:
    """What one principal did with one operation."""

    def __init__(self) -> None:
        self.count = 0
        self.types: Counter[str] = Counter()
        self.first_ms = 0
        self.last_ms = 0

    def add(self, kind: str, amount: int, first_ms: int, last_ms: int) -> None:
        self.first_ms = min(self.first_ms, first_ms) if self.count else first_ms
        self.last_ms = max(self.last_ms, last_ms)
        self.count += amount
        self.types[kind] += amount


class _Group:
    """Sums of one group."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
        self.totals: Counter[str] = Counter()
        self.drawn: dict[str, Counter[int]] = defaultdict(Counter)
        """By series, then by piece."""

    def order(self) -> list[str]:
        """Return the series, the largest first."""
        totals = {series: places.total() for series, places in self.drawn.items()}
        return sorted(totals, key=lambda series: (-totals[series], series))


def changes(rows: Rows, period: Period) -> ChangesSection:
    """Sum the rows of `changes` whose day lies in the period."""
    first_day, last_day = day_of(period.from_ms), day_of(period.until_ms)
    pieces = period.pieces(_MOST_PIECES, DAY_MS)
    people, cluster = _Group(), _Group()
    bookkeeping = 0
    for day, principal, operation, kind, amount, _first, _last, first_ms, last_ms in rows:
        if not first_day <= day <= last_day:
            continue
        if kind in _BOOKKEEPING:
            bookkeeping += amount
            continue
        ours = _CLUSTER.get(principal.partition(":")[0])
        group = cluster if ours else people
        group.sums[principal, operation].add(kind, amount, first_ms, last_ms)
        group.totals[principal] += amount
        group.drawn[ours or principal][pieces.place(day_ms(day))] += amount
    return ChangesSection(
        _finished(people, pieces, "people and services", "principal"),
        _finished(cluster, pieces, "brokers and controllers", "kind of node"),
        bookkeeping,
    )


def _finished(group: _Group, pieces: Pieces, what: str, by: str) -> Group:
    totals = group.totals
    most = max(totals, key=lambda name: (totals[name], name), default="")
    return Group(
        totals.total(),
        len(totals),
        (most, totals[most]),
        _figure(group, pieces, by) if totals else None,
        _table(group.sums, what),
    )


def _table(sums: dict[tuple[str, str], _Sum], what: str) -> ReportTable:
    kept = sorted(sums.items(), key=lambda item: (-item[1].count, item[0]))
    rows = [
        (
            text(principal, "name"),
            text(operation, "word"),
            count(found.count),
            text(_kinds(found.types), "long"),
            at(found.first_ms),
            at(found.last_ms),
        )
        for (principal, operation), found in kept[:_MOST_ROWS]
    ]
    return table(
        f"Changes of {what}, by principal and operation",
        ["Principal", "Operation", "#Changes", "Records", "First", "Last"],
        rows,
        left_out=missing(len(kept), _MOST_ROWS, "rows", "most changes"),
    )


def _kinds(types: Counter[str]) -> str:
    """Name the record types, the most frequent first."""
    named = [f"{_readable(kind)}{_TIMES}{number(n)}" for kind, n in types.most_common(3)]
    if len(types) > 3:
        named.append(f"and {counted(len(types) - 3, 'other type')}")
    return ", ".join(named)


def _readable(kind: str) -> str:
    """Return `PARTITION_CHANGE_RECORD` as `partition change`."""
    return kind.removesuffix("_RECORD").replace("_", " ").lower()


def _figure(group: _Group, pieces: Pieces, by: str) -> Figure:
    order = group.order()
    shown = order if len(order) <= len(SERIES) else order[: len(SERIES)]
    others = order[len(shown) :]
    stacks = [(name, group.drawn[name]) for name in shown]
    if others:
        stacks.append((_OTHERS, sum((group.drawn[name] for name in others), Counter())))
    marks, heights = _stacked(stacks, pieces)
    names = [name for name, _ in stacks]
    colours = [*SERIES[: len(shown)], *([OTHERS_COLOUR] if others else [])]
    drawing = draw(_spec(marks, names, colours, pieces), _alt(heights, names, pieces))
    caption = f"“{_OTHERS}” are {counted(len(others), 'principal')}." if others else ""
    title = f"Changes per {pieces.unit}, by {by}"
    return Figure(title, drawing, caption, tuple(zip(names, colours, strict=True)))


def _stacked(
    stacks: list[tuple[str, Counter[int]]], pieces: Pieces
) -> tuple[list[dict[str, Any]], Counter[int]]:
    """Return the stacked bars, and the height of each stack."""
    marks = []
    heights: Counter[int] = Counter()
    for name, places in stacks:
        for place, amount in sorted(places.items()):
            low = heights[place]
            heights[place] += amount
            tip = f"{pieces.name(place)}, {name}: {counted(amount, 'change')}"
            mark = {"low": low, "high": low + amount, "colour": name, "tip": tip}
            marks.append({**inset(pieces.span(place)), **mark})
    return marks, heights


def _spec(
    marks: list[dict[str, Any]], names: Sequence[str], colours: Sequence[str], pieces: Pieces
) -> dict[str, Any]:
    return {
        "width": 960,
        "height": 220,
        "data": {"values": marks},
        "mark": {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5},
        "encoding": {
            "x": time_axis(pieces.whole),
            "x2": {"field": "until"},
            "y": counting_axis(f"changes per {pieces.unit}"),
            "y2": {"field": "high"},
            "color": coloured(names, colours),
            "description": {"field": "tip"},
        },
    }


def _alt(heights: Counter[int], names: list[str], pieces: Pieces) -> str:
    place, most = max(heights.items(), key=lambda item: (item[1], -item[0]))
    return (
        f"Stacked bars, one per {pieces.unit}, coloured by principal: {', '.join(names)}. "
        f"The highest, {number(most)}, begins on {minute(pieces.span(place)[0])} UTC. "
        "The table that follows has the sums."
    )
