"""Who changed how much, and when.

Rule: a record that counts is a change. Answers kept for retries, no-ops and the marks of epochs
and transactions are bookkeeping of the log itself: they are summed apart and not drawn.
"""

from collections import Counter, defaultdict
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
from audit.report.tabular import Table, at, count, missing, table, text
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
_MOST_PIECES: Final = 92
_MOST_ROWS: Final = 200
_OTHERS: Final = "all others"


class Changes(NamedTuple):
    """The section."""

    total: int
    bookkeeping: int
    principals: int
    busiest: tuple[str, int]
    """Who changed most, and how much."""
    figure: Figure | None
    by_principal: Table


class _Sum:
    """What one principal did by one operation."""

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


def changes(rows: Rows, period: Period) -> Changes:
    """Sum the rows of `changes` whose day lies in the period."""
    first_day, last_day = day_of(period.from_ms), day_of(period.until_ms)
    sums: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    pieces = period.pieces(_MOST_PIECES, DAY_MS)
    drawn: dict[str, Counter[int]] = defaultdict(Counter)
    bookkeeping = 0
    for day, principal, operation, kind, amount, _first, _last, first_ms, last_ms in rows:
        if not first_day <= day <= last_day:
            continue
        if kind in _BOOKKEEPING:
            bookkeeping += amount
            continue
        sums[principal, operation].add(kind, amount, first_ms, last_ms)
        drawn[principal][pieces.place(day_ms(day))] += amount
    totals = Counter({principal: places.total() for principal, places in drawn.items()})
    order = sorted(totals, key=lambda principal: (-totals[principal], principal))
    return Changes(
        totals.total(),
        bookkeeping,
        len(totals),
        (order[0], totals[order[0]]) if order else ("", 0),
        _figure(drawn, order, pieces) if order else None,
        _table(sums),
    )


def _table(sums: dict[tuple[str, str], _Sum]) -> Table:
    kept = sorted(sums.items(), key=lambda item: (-item[1].count, item[0]))
    rows = [
        (
            text(principal),
            text(operation),
            count(found.count),
            text(_kinds(found.types), "long"),
            at(found.first_ms),
            at(found.last_ms),
        )
        for (principal, operation), found in kept[:_MOST_ROWS]
    ]
    return table(
        "Changes by principal and operation",
        ["Principal", "Operation", "#Changes", "Records", "First", "Last"],
        rows,
        left_out=missing(len(kept), _MOST_ROWS, "row", "most changes"),
    )


def _kinds(types: Counter[str]) -> str:
    """Name the record types as the log does, the commonest first."""
    named = [f"{kind} \N{MULTIPLICATION SIGN} {number(n)}" for kind, n in types.most_common(3)]
    if len(types) > 3:
        named.append(f"and {counted(len(types) - 3, 'other type')}")
    return ", ".join(named)


def _figure(drawn: dict[str, Counter[int]], order: list[str], pieces: Pieces) -> Figure:
    shown = order if len(order) <= len(SERIES) else order[: len(SERIES)]
    others = order[len(shown) :]
    stacks = [(name, drawn[name]) for name in shown]
    if others:
        stacks.append((_OTHERS, sum((drawn[name] for name in others), Counter())))
    marks = []
    floor: Counter[int] = Counter()
    for name, places in stacks:
        for place, amount in sorted(places.items()):
            low = floor[place]
            floor[place] += amount
            marks.append(_mark(name, pieces.span(place), low, amount, pieces.unit))
    names = [name for name, _ in stacks]
    colours = [*SERIES[: len(shown)], *([OTHERS_COLOUR] if others else [])]
    drawing = draw(_spec(marks, names, colours, pieces), _alt(floor, names, pieces))
    caption = (
        "Answers kept for retries, no-ops and the marks of epochs and transactions are left out."
    )
    if others:
        caption = f"“{_OTHERS}” are {counted(len(others), 'principal')}. {caption}"
    return Figure(
        f"Changes per {pieces.unit}, by principal",
        drawing,
        caption,
        tuple(zip(names, colours, strict=True)),
    )


def _mark(name: str, span: tuple[int, int], low: int, amount: int, unit: str) -> dict[str, Any]:
    when = day_of(span[0]) if unit == "day" else f"{unit} from {minute(span[0])}"
    tip = f"{when}, {name}: {counted(amount, 'change')}"
    return {**inset(span), "low": low, "high": low + amount, "colour": name, "tip": tip}


def _spec(
    marks: list[dict[str, Any]], names: list[str], colours: list[str], pieces: Pieces
) -> dict[str, Any]:
    whole = Period(pieces.begin_ms, pieces.span(pieces.number - 1)[1])
    return {
        "width": 960,
        "height": 250,
        "data": {"values": marks},
        "mark": {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5},
        "encoding": {
            "x": time_axis(whole),
            "x2": {"field": "until"},
            "y": counting_axis(f"changes per {pieces.unit}", format="~s"),
            "y2": {"field": "high"},
            "color": coloured(names, colours),
            "description": {"field": "tip"},
        },
    }


def _alt(floor: Counter[int], names: list[str], pieces: Pieces) -> str:
    place, most = max(floor.items(), key=lambda item: (item[1], -item[0]))
    return (
        f"Stacked bars, one per {pieces.unit}, coloured by principal: {', '.join(names)}. "
        f"The highest, {number(most)}, begins on {minute(pieces.span(place)[0])} UTC. "
        "The table that follows has the numbers."
    )
