"""Which brokers were fenced, and when: a lane for each broker, cut into pieces of time.

Rule: the red part of a cell is the share of the broker's registered time in that piece during which
it was fenced; a grey cell says that the broker was there. No cell means that it was not registered.
"""

from collections import defaultdict
from itertools import groupby
from typing import Any, Final, NamedTuple

from audit.report.details import Details, RecordAt
from audit.report.drawing import DrawnMark, lanes
from audit.report.facts import Rows
from audit.report.figure import Figure, inset
from audit.report.period import Period, Pieces
from audit.report.tabular import Cell, ReportTable, count, length, missing, table
from audit.report.words import counted, duration, share

_MOST_PIECES: Final = 96
_BROKERS: Final = 40
_ROWS: Final = 100
_LEAST: Final = 0.15
"""The least height of what is red, so that it is seen."""
_KEY: Final = (("in service", "present"), ("fenced, as high as its share of the time", "bad"))


class FencingSection(NamedTuple):
    """The section."""

    brokers: int
    fenced: int
    """How many were fenced at all."""
    times: int
    """How often a broker that was in service was fenced."""
    fenced_ms: int
    figure: Figure | None
    table: ReportTable


class _Broker:
    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.present_ms = 0
        self.fenced_ms = 0
        self.stopping_ms = 0
        self.times = 0
        self.present: dict[int, int] = defaultdict(int)
        self.fenced: dict[int, int] = defaultdict(int)
        self.behind: dict[int, list[RecordAt]] = defaultdict(list)
        """Where it was fenced, by piece."""
        self.all: list[RecordAt] = []

    @property
    def thing(self) -> str:
        return f"broker:{self.broker_id}"


def fencing(rows: Rows, period: Period, details: Details) -> FencingSection:
    """Sum the rows of `broker_intervals` within the period."""
    pieces = period.pieces(_MOST_PIECES)
    brokers = [
        _broker(broker_id, found, period, pieces)
        for broker_id, found in groupby(rows, key=lambda row: row[0])
    ]
    brokers = [broker for broker in brokers if broker.present]
    order = sorted(brokers, key=lambda each: (-each.fenced_ms, -each.times, each.broker_id))
    drawn = sorted(order[:_BROKERS], key=lambda each: each.broker_id)
    return FencingSection(
        len(brokers),
        sum(1 for broker in brokers if broker.fenced_ms),
        sum(broker.times for broker in brokers),
        sum(broker.fenced_ms for broker in brokers),
        _figure(drawn, len(brokers) - len(drawn), pieces, details) if drawn else None,
        _table(order, details),
    )


def _broker(broker_id: int, rows: Any, period: Period, pieces: Pieces) -> _Broker:
    broker = _Broker(broker_id)
    before, before_until = "", -1
    for _, offset, _, from_ms, until_ms, state in rows:
        part = period.clip(from_ms, until_ms)
        in_service = before in {"online", "stopping"} and before_until == from_ms
        if part is not None:
            if state == "fenced" and in_service and from_ms >= period.from_ms:
                broker.times += 1
            broker.present_ms += part[1] - part[0]
            broker.stopping_ms += part[1] - part[0] if state == "stopping" else 0
            _spread(broker.present, part, pieces)
            if state == "fenced":
                broker.fenced_ms += part[1] - part[0]
                _spread(broker.fenced, part, pieces)
                _note(broker, RecordAt(offset, broker.thing), part, pieces)
        before, before_until = state, -1 if until_ms is None else until_ms
    return broker


def _spread(into: dict[int, int], part: tuple[int, int], pieces: Pieces) -> None:
    """Add a part's time to the pieces that it lies in."""
    for place, length_ms in pieces.spread(part):
        into[place] += length_ms


def _note(broker: _Broker, fenced: RecordAt, part: tuple[int, int], pieces: Pieces) -> None:
    """Note where a broker was fenced, for the pieces that this touches."""
    broker.all.append(fenced)
    for place, _ in pieces.spread(part):
        broker.behind[place].append(fenced)


def _figure(drawn: list[_Broker], left_out: int, pieces: Pieces, details: Details) -> Figure:
    marks = []
    for lane, broker in enumerate(drawn):
        for place, present in sorted(broker.present.items()):
            if present:
                marks += _cell(broker, lane, place, pieces, details)
    caption = "No cell: the broker was not registered."
    if left_out:
        caption += f" {counted(left_out, 'broker')} with less fenced time not drawn."
    worst = max(drawn, key=lambda each: each.fenced_ms)
    alt = (
        f"Cells of {counted(len(drawn), 'broker')}, one per {pieces.unit}: how much of it each was "
        f"fenced. Longest: broker {worst.broker_id}, {duration(worst.fenced_ms)}. "
        "The table that follows has the sums."
    )
    names = tuple(f"broker {broker.broker_id}" for broker in drawn)
    drawing = lanes(marks, pieces.whole, len(names), alt)
    return Figure(f"Fenced time per {pieces.unit}", drawing, caption, _KEY, names)


def _cell(
    broker: _Broker, lane: int, place: int, pieces: Pieces, details: Details
) -> list[DrawnMark]:
    span = inset(pieces.span(place))
    present, fenced = broker.present[place], broker.fenced.get(place, 0)
    there = DrawnMark(*span, "present", lane=lane)
    if not broker.behind[place]:
        return [there]
    tip = f"broker {broker.broker_id}, {pieces.name(place)}: fenced "
    tip += f"{duration(fenced)} of {duration(present)} ({share(fenced, present)})"
    behind = broker.behind[place]
    command = ("history", broker.thing, *details.since(behind[0].offset))
    ref = details.add(tip, len(behind), behind, *command)
    high = max(_LEAST, fenced / present)
    return [there, DrawnMark(*span, "bad", tip, ref, lane, high)]


def _table(order: list[_Broker], details: Details) -> ReportTable:
    rows = []
    for broker in order[:_ROWS]:
        name, ref = f"broker {broker.broker_id}", None
        if broker.all:
            title = f"{name}: times fenced"
            ref = details.add(title, len(broker.all), broker.all, "history", broker.thing)
        rows.append(
            (
                Cell(name, broker.broker_id, thing=broker.thing),
                length(broker.fenced_ms, "bad" if broker.fenced_ms else "", ref),
                Cell(share(broker.fenced_ms, broker.present_ms), broker.fenced_ms, "num"),
                count(broker.times, "", ref),
                length(broker.stopping_ms),
                length(broker.present_ms),
            )
        )
    return table(
        "Brokers",
        [
            "Broker",
            "#Fenced",
            "#Of its time",
            "#Times fenced",
            "#Stopping",
            "#Registered",
        ],
        rows,
        left_out=missing(len(order), _ROWS, "brokers", "most fenced time"),
    )
