"""How long partitions had no leader or were under their minimum of in-sync replicas.

Rule: the section counts partition-time: one partition for an hour counts as much as sixty for a
minute. It sums the intervals as they go by. The sums are those of the job `availability`, without
that job's row for each partition and day.
"""

from collections import defaultdict
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from audit.report.drawing import draw
from audit.report.facts import Rows
from audit.report.figure import Figure, counting_axis, inset, time_axis
from audit.report.period import Period, Pieces
from audit.report.tabular import Cell, ReportTable, count, length, missing, table, text
from audit.report.words import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    counted,
    duration,
    share,
)

_MOST_PIECES: Final = 92
_WORST: Final = 25


class LeadershipTimes(NamedTuple):
    """Times of one partition, or of all, in ms."""

    present_ms: int = 0
    offline_ms: int = 0
    under_min_isr_ms: int = 0
    leader_changes: int = 0

    def plus(self, other: "LeadershipTimes") -> "LeadershipTimes":
        """Return the sum."""
        return LeadershipTimes(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def with_leader(self) -> str:
        """Share of the time with a leader, as text."""
        return share(self.with_leader_ms, self.present_ms)

    @property
    def with_leader_ms(self) -> int:
        """Time with a leader."""
        return self.present_ms - self.offline_ms

    @property
    def badness(self) -> tuple[int, int]:
        """A sort key that puts the worst first."""
        return -self.offline_ms, -self.under_min_isr_ms


class Availability(NamedTuple):
    """The section."""

    total: LeadershipTimes
    partitions: int
    offline_partitions: int
    """How many were offline at some time."""
    never_enough: int
    """How many were under min ISR during all of their time."""
    never_enough_ms: int
    """The total time of those; part of the total."""
    worst: tuple[str, LeadershipTimes] | None
    figures: tuple[Figure, ...]
    worst_table: ReportTable


class _Partition:
    """One partition, while its intervals go by in order."""

    __slots__ = ("leader", "leadership", "name", "waiting")

    def __init__(self, name: str, leader: int) -> None:
        self.name = name
        self.leadership = LeadershipTimes()
        self.leader = leader
        self.waiting: dict[int, int] | None = {}
        """Time under min ISR by piece, until it first had enough replicas in sync; then None."""


class _Sums:
    """The sums of the rows so far."""

    def __init__(self, period: Period) -> None:
        self.period = period
        self.pieces = period.pieces(_MOST_PIECES)
        self.partitions: dict[tuple[str, int], _Partition] = {}
        self.offline_ms: dict[int, int] = defaultdict(int)
        self.under_min_isr_ms: dict[int, int] = defaultdict(int)

    def add(self, row: tuple[Any, ...]) -> None:
        """Add an interval. The intervals of one partition must come in order."""
        topic_id, number, _, topic, _, begin_ms, until_ms, leader, _, _, _, offline, under = row
        known = self.partitions.get((topic_id, number))
        moved = known is not None and known.leader != leader and begin_ms >= self.period.from_ms
        if known is None:
            known = self.partitions[topic_id, number] = _Partition(f"{topic}-{number}", leader)
        known.leader = leader
        part = self.period.clip(begin_ms, until_ms)
        if part is None:
            return
        lasted = part[1] - part[0]
        known.leadership = known.leadership.plus(
            LeadershipTimes(lasted, lasted if offline else 0, lasted if under else 0, int(moved))
        )
        if offline:
            self._spread(part, self.offline_ms)
        if under:
            into = self.under_min_isr_ms if known.waiting is None else known.waiting
            self._spread(part, into)
        elif known.waiting is not None and lasted:
            for place, held in known.waiting.items():
                self.under_min_isr_ms[place] += held
            known.waiting = None

    def _spread(self, part: tuple[int, int], into: dict[int, int]) -> None:
        for place, lasted in self.pieces.spread(part):
            into[place] = into.get(place, 0) + lasted


def availability(rows: Rows, period: Period) -> Availability:
    """Sum rows of `partition_intervals` within the period; those of one partition come in order."""
    sums = _Sums(period)
    for row in rows:
        sums.add(row)
    there = [(key, each) for key, each in sums.partitions.items() if each.leadership.present_ms]
    total = LeadershipTimes()
    for _, each in there:
        total = total.plus(each.leadership)
    never = [each for _, each in there if each.waiting]
    hurt = [
        (key, each)
        for key, each in there
        if each.leadership.offline_ms or each.leadership.under_min_isr_ms
    ]
    worst = nsmallest(_WORST, hurt, key=lambda item: (*item[1].leadership.badness, item[0]))
    return Availability(
        total,
        len(there),
        sum(1 for _, each in there if each.leadership.offline_ms),
        len(never),
        sum(each.leadership.under_min_isr_ms for each in never),
        (worst[0][1].name, worst[0][1].leadership) if worst else None,
        _figures(sums, len(never)),
        _worst_table(worst, len(hurt)),
    )


def _worst_table(worst: list[tuple[tuple[str, int], _Partition]], hurt: int) -> ReportTable:
    most = max((each.leadership.offline_ms for _, each in worst), default=0)
    rows = [
        (
            text(each.name, "name"),
            length(each.leadership.offline_ms, "bad" if each.leadership.offline_ms else ""),
            _bar(each.leadership.offline_ms, most),
            length(each.leadership.under_min_isr_ms),
            Cell(each.leadership.with_leader, each.leadership.with_leader_ms, "num"),
            count(each.leadership.leader_changes),
            text(topic_id, "mono"),
        )
        for (topic_id, _), each in worst
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
    """Return a cell with the length in thousandths of the longest, drawn as a bar."""
    return Cell(str(value * 1000 // most if most else 0), value, "bars")


def _figures(sums: _Sums, never_enough: int) -> tuple[Figure, ...]:
    figures = []
    if sums.offline_ms:
        figures.append(_figure(sums.offline_ms, sums.pieces, "without leader", "var(--bad)"))
    if sums.under_min_isr_ms:
        drawn = _figure(sums.under_min_isr_ms, sums.pieces, "under min ISR", "var(--warn)")
        if never_enough:
            never = counted(never_enough, "partition")
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
