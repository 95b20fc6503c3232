"""How long partitions were without a leader or under their minimum of in-sync replicas.

Rule: partition-time is what is counted: one partition for one hour, or sixty for a minute. A day
counts whole, as the rows do.
"""

from collections import defaultdict
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from audit.report.drawing import draw
from audit.report.facts import Rows
from audit.report.figure import Figure, counting_axis, inset, time_axis
from audit.report.period import Period, Pieces
from audit.report.tabular import Cell, Table, count, length, missing, table, text
from audit.report.words import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    day_ms,
    day_of,
    duration,
    minute,
    share,
)

_MOST_PIECES: Final = 92
_WORST: Final = 25


class Standing(NamedTuple):
    """Times of one partition, or of all, in ms."""

    present_ms: int = 0
    offline_ms: int = 0
    under_min_isr_ms: int = 0
    leader_changes: int = 0

    def plus(self, other: "Standing") -> "Standing":
        """Return the sum."""
        return Standing(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def with_leader(self) -> str:
        """Its share of time with a leader."""
        return share(self.present_ms - self.offline_ms, self.present_ms)


class Availability(NamedTuple):
    """The section."""

    total: Standing
    partitions: int
    offline_partitions: int
    """How many were offline at all."""
    worst: tuple[str, Standing] | None
    figures: tuple[Figure, ...]
    worst_table: Table


def availability(rows: Rows, period: Period) -> Availability:
    """Sum the rows of `availability` whose day lies in the period."""
    first_day, last_day = day_of(period.from_ms), day_of(period.until_ms)
    pieces = period.pieces(_MOST_PIECES, DAY_MS)
    by_key: dict[str, Standing] = {}
    by_piece: dict[int, Standing] = defaultdict(Standing)
    for kind, key, day, present, offline, under, _fenced, moves in rows:
        if kind != "partition" or not first_day <= day <= last_day:
            continue
        standing = Standing(present, offline, under, moves)
        known = by_key.get(key)
        by_key[key] = standing if known is None else known.plus(standing)
        if offline or under:
            place = pieces.place(day_ms(day))
            by_piece[place] = by_piece[place].plus(standing)
    total = Standing()
    for standing in by_key.values():
        total = total.plus(standing)
    hurt = {key: s for key, s in by_key.items() if s.offline_ms or s.under_min_isr_ms}
    worst = nsmallest(
        _WORST, hurt.items(), key=lambda i: (-i[1].offline_ms, -i[1].under_min_isr_ms, i[0])
    )
    return Availability(
        total,
        len(by_key),
        sum(1 for standing in by_key.values() if standing.offline_ms),
        worst[0] if worst else None,
        _figures(by_piece, pieces) if hurt else (),
        _worst_table(worst, len(hurt)),
    )


def partition_name(key: str) -> str:
    """Return `TOPIC-PARTITION` of a row's key."""
    return key.rpartition("@")[0]


def _worst_table(worst: list[tuple[str, Standing]], hurt: int) -> Table:
    most = max((max(s.offline_ms, s.under_min_isr_ms) for _, s in worst), default=0)
    rows = [
        (
            text(partition_name(key)),
            length(standing.offline_ms, "bad" if standing.offline_ms else ""),
            _bar(standing, most),
            length(standing.under_min_isr_ms),
            Cell(standing.with_leader, standing.present_ms - standing.offline_ms, "num"),
            count(standing.leader_changes),
            text(key.rpartition("@")[2], "mono"),
        )
        for key, standing in worst
    ]
    return table(
        "Worst partitions",
        [
            "Partition",
            "#Without leader",
            "Both, to scale",
            "#Under min ISR",
            "#Time with leader",
            "#Leader changes",
            "Topic id",
        ],
        rows,
        left_out=missing(hurt, _WORST, "partition that was ever hurt", "most time without leader"),
    )


def _bar(standing: Standing, most: int) -> Cell:
    """Return the two lengths in thousandths of the longest in the table, for a small drawing."""
    if not most:
        return Cell("", 0, "bars")
    lengths = (standing.offline_ms, standing.under_min_isr_ms)
    drawn = ",".join(str(value * 1000 // most) for value in lengths)
    return Cell(drawn, max(lengths), "bars")


def _figures(by_piece: dict[int, Standing], pieces: Pieces) -> tuple[Figure, ...]:
    return (
        _figure(
            {place: standing.offline_ms for place, standing in by_piece.items()},
            pieces,
            "without leader",
            "var(--bad)",
        ),
        _figure(
            {place: standing.under_min_isr_ms for place, standing in by_piece.items()},
            pieces,
            "under min ISR",
            "var(--warn)",
        ),
    )


def _figure(lengths: dict[int, int], pieces: Pieces, what: str, colour: str) -> Figure:
    most_ms = max(lengths.values())
    unit_ms, unit = _unit(most_ms)
    marks = []
    for place, length_ms in sorted(lengths.items()):
        span = pieces.span(place)
        when = day_of(span[0]) if pieces.unit == "day" else f"{pieces.unit} from {minute(span[0])}"
        marks.append(
            {
                **inset(span),
                "low": 0,
                "high": length_ms / unit_ms,
                "tip": f"{when}: {duration(length_ms)} of partition-time {what}",
            }
        )
    alt = f"Bars, one per {pieces.unit}: partition-time {what}; the highest is {duration(most_ms)}."
    return Figure(
        f"Partition-time {what}, per {pieces.unit}",
        draw(_spec(marks, pieces, f"partition-{unit}", colour), alt),
    )


def _unit(most_ms: int) -> tuple[int, str]:
    if most_ms >= 2 * HOUR_MS:
        return HOUR_MS, "hours"
    if most_ms >= 2 * MINUTE_MS:
        return MINUTE_MS, "minutes"
    return SECOND_MS, "seconds"


def _spec(marks: list[dict[str, Any]], pieces: Pieces, title: str, colour: str) -> dict[str, Any]:
    whole = Period(pieces.begin_ms, pieces.span(pieces.number - 1)[1])
    return {
        "width": 960,
        "height": 110,
        "data": {"values": marks},
        "mark": {"type": "bar", "color": colour},
        "encoding": {
            "x": time_axis(whole),
            "x2": {"field": "until"},
            "y": counting_axis(title, tickCount=3),
            "y2": {"field": "high"},
            "description": {"field": "tip"},
        },
    }
