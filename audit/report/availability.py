"""How long partitions were without a leader or under their minimum of in-sync replicas.

Rule: partition-time is what is counted: one partition for one hour, or sixty for a minute. A day
counts whole, as the rows do.
"""

from collections import defaultdict
from heapq import nsmallest
from itertools import groupby
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
    counted,
    day_ms,
    day_of,
    duration,
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
    never_enough: int
    """How many were under min ISR for as long as they were there."""
    never_enough_ms: int
    """How long those were there, in all; part of the total."""
    worst: tuple[str, Standing] | None
    figures: tuple[Figure, ...]
    worst_table: Table


class _Sums:
    """What is kept of the rows while they go by."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.total = Standing()
        self.partitions = 0
        self.offline = 0
        self.hurt: dict[str, Standing] = {}
        self.never_enough = 0
        self.never_enough_ms = 0
        self.offline_ms: dict[int, int] = defaultdict(int)
        self.under_min_isr_ms: dict[int, int] = defaultdict(int)

    def add(self, key: str, days: list[tuple[str, Standing]]) -> None:
        """Add one partition with its days."""
        sum_of = Standing()
        for _, standing in days:
            sum_of = sum_of.plus(standing)
        never_enough = 0 < sum_of.present_ms == sum_of.under_min_isr_ms
        self.partitions += 1
        self.total = self.total.plus(sum_of)
        self.offline += sum_of.offline_ms > 0
        self.never_enough += never_enough
        self.never_enough_ms += sum_of.under_min_isr_ms if never_enough else 0
        if sum_of.offline_ms or sum_of.under_min_isr_ms:
            self.hurt[key] = sum_of
        for day, standing in days:
            place = self.pieces.place(day_ms(day))
            if standing.offline_ms:
                self.offline_ms[place] += standing.offline_ms
            if standing.under_min_isr_ms and not never_enough:
                self.under_min_isr_ms[place] += standing.under_min_isr_ms


def availability(rows: Rows, period: Period) -> Availability:
    """Sum the rows of `availability` whose day lies in the period."""
    first_day, last_day = day_of(period.from_ms), day_of(period.until_ms)
    sums = _Sums(period.pieces(_MOST_PIECES, DAY_MS))
    for (kind, key), found in groupby(rows, key=lambda row: (row[0], row[1])):
        days = [
            (day, Standing(present, offline, under, moves))
            for _, _, day, present, offline, under, _, moves in found
            if first_day <= day <= last_day
        ]
        if kind == "partition" and days:
            sums.add(key, days)
    worst = nsmallest(
        _WORST, sums.hurt.items(), key=lambda i: (-i[1].offline_ms, -i[1].under_min_isr_ms, i[0])
    )
    return Availability(
        sums.total,
        sums.partitions,
        sums.offline,
        sums.never_enough,
        sums.never_enough_ms,
        worst[0] if worst else None,
        _figures(sums),
        _worst_table(worst, len(sums.hurt)),
    )


def partition_name(key: str) -> str:
    """Return `TOPIC-PARTITION` of a row's key."""
    return key.rpartition("@")[0]


def _worst_table(worst: list[tuple[str, Standing]], hurt: int) -> Table:
    most = max((standing.offline_ms for _, standing in worst), default=0)
    rows = [
        (
            text(partition_name(key), "name"),
            length(standing.offline_ms, "bad" if standing.offline_ms else ""),
            _bar(standing.offline_ms, most),
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
            "To scale",
            "#Under min ISR",
            "#Time with leader",
            "#Leader changes",
            "Topic id",
        ],
        rows,
        left_out=missing(hurt, _WORST, "partitions", "most time without leader or under min ISR"),
    )


def _bar(value: int, most: int) -> Cell:
    """Return a length in thousandths of the longest, for a small drawing."""
    return Cell(str(value * 1000 // most if most else 0), value, "bars")


def _figures(sums: _Sums) -> tuple[Figure, ...]:
    figures = []
    if sums.offline_ms:
        figures.append(_figure(sums.offline_ms, sums.pieces, "without leader", "var(--bad)"))
    if sums.under_min_isr_ms:
        drawn = _figure(sums.under_min_isr_ms, sums.pieces, "under min ISR", "var(--warn)")
        if sums.never_enough:
            never = counted(sums.never_enough, "partition")
            drawn = drawn._replace(caption=f"Without {never} that were under it all the time.")
        figures.append(drawn)
    return tuple(figures)


def _figure(lengths: dict[int, int], pieces: Pieces, what: str, colour: str) -> Figure:
    most_ms = max(lengths.values())
    unit_ms, unit = _unit(most_ms)
    marks = []
    for place, length_ms in sorted(lengths.items()):
        marks.append(
            {
                **inset(pieces.span(place)),
                "low": 0,
                "high": length_ms / unit_ms,
                "tip": f"{pieces.name(place)}: {duration(length_ms)} of partition-time {what}",
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
    return {
        "width": 960,
        "height": 110,
        "data": {"values": marks},
        "mark": {"type": "bar", "color": colour},
        "encoding": {
            "x": time_axis(pieces.whole),
            "x2": {"field": "until"},
            "y": counting_axis(title, tickCount=3),
            "y2": {"field": "high"},
            "description": {"field": "tip"},
        },
    }
