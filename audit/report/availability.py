"""How long partitions had no leader or were under their minimum of in-sync replicas.

Rule: the section counts partition-time: one partition for an hour counts as much as sixty for a
minute. It sums the intervals as they go by. The sums are those of the job `availability`, without
that job's row for each partition and day.
"""

from collections import Counter
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from audit.report.details import MOST, Details, RecordAt
from audit.report.drawing import DrawnMark, bars
from audit.report.facts import Rows
from audit.report.figure import Figure, inset
from audit.report.period import Period, Pieces
from audit.report.tabular import Cell, ReportTable, count, length, missing, table, text
from audit.report.words import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    counted,
    duration,
    share,
    utc,
)

_MOST_PIECES: Final = 92
_WORST: Final = 25


class LeadershipTimes(NamedTuple):
    """Times of one partition, or of all, in ms."""

    present_ms: int = 0
    offline_ms: int = 0
    under_min_isr_ms: int = 0
    leader_changes: int = 0

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

    __slots__ = (
        "leader",
        "leader_changes",
        "name",
        "offline_ms",
        "offsets",
        "present_ms",
        "steps",
        "under_ms",
        "waiting",
    )

    def __init__(self, name: str, leader: int) -> None:
        self.name = name
        self.leader = leader
        self.present_ms = self.offline_ms = self.under_ms = self.leader_changes = 0
        self.steps = 0
        """How many intervals were bad."""
        self.offsets: list[int] = []
        """Where the first few of them begin."""
        self.waiting: dict[int, int] | None = {}
        """Time under min ISR by piece, until it first had enough replicas in sync; then None."""

    @property
    def leadership(self) -> LeadershipTimes:
        return LeadershipTimes(self.present_ms, self.offline_ms, self.under_ms, self.leader_changes)

    def behind(self) -> tuple[RecordAt, ...]:
        subject = f"partition:{self.name}"
        return tuple(RecordAt(offset, subject) for offset in self.offsets)


class _Pieces:
    """Bad time by piece, with the places of the first few intervals."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.length_ms: dict[int, int] = {}
        self.steps: Counter[int] = Counter()
        self.behind: dict[int, list[RecordAt]] = {}

    def add(self, part: tuple[int, int], known: _Partition, offset: int) -> None:
        for place, lasted in self.pieces.spread(part):
            self.length_ms[place] = self.length_ms.get(place, 0) + lasted
            self.steps[place] += 1
            behind = self.behind.setdefault(place, [])
            if len(behind) < MOST:
                behind.append(RecordAt(offset, f"partition:{known.name}"))


class AvailabilitySums:
    """The sums of the intervals so far."""

    def __init__(self, period: Period) -> None:
        self.period = period
        self.partitions: dict[tuple[str, int], _Partition] = {}
        self.offline = _Pieces(period.pieces(_MOST_PIECES))
        self.under = _Pieces(period.pieces(_MOST_PIECES))

    def add(self, row: tuple[Any, ...]) -> None:
        """Add an interval. The intervals of one partition must come in order."""
        topic_id, number, offset, topic, _, begin_ms, until_ms, leader, _, _, _, offline, under = (
            row
        )
        known = self.partitions.get((topic_id, number))
        if known is None:
            known = self.partitions[topic_id, number] = _Partition(f"{topic}-{number}", leader)
        elif known.leader != leader:
            known.leader = leader
            if self.period.from_ms <= begin_ms <= self.period.until_ms:
                known.leader_changes += 1
        part = self.period.clip(begin_ms, until_ms)
        if part is None:
            return
        lasted = part[1] - part[0]
        known.present_ms += lasted
        if offline or under:
            known.steps += 1
            if len(known.offsets) < MOST:
                known.offsets.append(offset)
        if offline:
            known.offline_ms += lasted
            self.offline.add(part, known, offset)
        if under:
            known.under_ms += lasted
            self._add_under(part, known, offset)
        elif known.waiting is not None and lasted:
            for place, held in known.waiting.items():
                self.under.length_ms[place] = self.under.length_ms.get(place, 0) + held
            known.waiting = None

    def _add_under(self, part: tuple[int, int], known: _Partition, offset: int) -> None:
        if known.waiting is None:
            self.under.add(part, known, offset)
            return
        for place, lasted in self.under.pieces.spread(part):
            known.waiting[place] = known.waiting.get(place, 0) + lasted

    def section(self, details: Details) -> Availability:
        """Return the section."""
        there = [(key, each) for key, each in self.partitions.items() if each.present_ms]
        never = [each for _, each in there if each.waiting]
        hurt = [(key, each) for key, each in there if each.offline_ms or each.under_ms]
        worst = nsmallest(_WORST, hurt, key=lambda item: (*item[1].leadership.badness, item[0]))
        return Availability(
            LeadershipTimes(
                sum(each.present_ms for _, each in there),
                sum(each.offline_ms for _, each in there),
                sum(each.under_ms for _, each in there),
                sum(each.leader_changes for _, each in there),
            ),
            len(there),
            sum(1 for _, each in there if each.offline_ms),
            len(never),
            sum(each.under_ms for each in never),
            (worst[0][1].name, worst[0][1].leadership) if worst else None,
            _figures(self, len(never), details),
            _worst_table(worst, len(hurt), details),
        )


def availability(rows: Rows, period: Period, details: Details) -> Availability:
    """Sum rows of `partition_intervals` within the period; those of one partition come in order."""
    sums = AvailabilitySums(period)
    for row in rows:
        sums.add(row)
    return sums.section(details)


def _worst_table(
    worst: list[tuple[tuple[str, int], _Partition]], hurt: int, details: Details
) -> ReportTable:
    most = max((each.offline_ms for _, each in worst), default=0)
    rows = []
    for (topic_id, _), each in worst:
        thing, times = f"partition:{each.name}", each.leadership
        ref = details.add(f"{each.name}: bad times", each.steps, each.behind(), "history", thing)
        rows.append(
            (
                Cell(each.name, None, "name", thing=thing),
                length(each.offline_ms, "bad" if each.offline_ms else "", ref),
                _bar(each.offline_ms, most),
                length(each.under_ms, "", ref),
                Cell(times.with_leader, times.with_leader_ms, "num"),
                count(each.leader_changes),
                text(topic_id, "mono"),
            )
        )
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


def _figures(sums: AvailabilitySums, never_enough: int, details: Details) -> tuple[Figure, ...]:
    figures = []
    if sums.offline.length_ms:
        figures.append(_figure(sums.offline, "without leader", "bad", details))
    if sums.under.length_ms:
        drawn = _figure(sums.under, "under min ISR", "warn", details)
        if never_enough:
            never = counted(never_enough, "partition")
            drawn = drawn._replace(caption=f"Without {never} that were under it all the time.")
        figures.append(drawn)
    return tuple(figures)


def _figure(found: _Pieces, what: str, tone: str, details: Details) -> Figure:
    pieces = found.pieces
    most_ms = max(found.length_ms.values())
    unit_ms, unit = _unit(most_ms)
    marks = []
    for place, length_ms in sorted(found.length_ms.items()):
        tip = f"{pieces.name(place)}: {duration(length_ms)} of partition-time {what}"
        begin, end = pieces.span(place)
        behind = found.behind.get(place, [])
        ref = None
        if behind:
            span = (*details.since(behind[0].offset), "--to", utc(end))
            command = ("log", "--resource", "partition:*", *span)
            ref = details.add(tip, found.steps[place], behind, *command)
        marks.append(
            DrawnMark(*inset((begin, end)), tone, tip, ref, 0, length_ms / max(1, most_ms))
        )
    alt = f"Bars, one per {pieces.unit}: partition-time {what}; the highest is {duration(most_ms)}."
    return Figure(
        f"Partition-time {what}, per {pieces.unit}",
        bars(marks, pieces.whole, (most_ms / unit_ms, f"partition-{unit}"), alt),
    )


def _unit(most_ms: int) -> tuple[int, str]:
    if most_ms >= 2 * HOUR_MS:
        return HOUR_MS, "hours"
    if most_ms >= 2 * MINUTE_MS:
        return MINUTE_MS, "minutes"
    return SECOND_MS, "seconds"
