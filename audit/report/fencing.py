"""Which brokers were fenced, and when: a heat map of brokers by pieces of time.

Rule: a cell shows the share of the broker's registered time in that piece during which it was
fenced. No cell means that the broker was not registered. There are few colours, each with a name.
"""

from collections import defaultdict
from itertools import groupby
from typing import Any, Final, NamedTuple

from audit.report.drawing import draw
from audit.report.facts import Rows
from audit.report.figure import Figure, coloured, time_axis
from audit.report.period import Period, Pieces
from audit.report.tabular import Cell, ReportTable, count, length, missing, table
from audit.report.words import counted, duration, share

_MOST_PIECES: Final = 96
_BROKERS: Final = 40
_ROWS: Final = 100
_STEPS: Final = (
    (0, "not fenced"),
    (1, "under 1 %"),
    (10, "1 to 5 %"),
    (50, "5 to 25 %"),
    (250, "25 to 75 %"),
    (750, "75 % and more"),
)
"""The lower limit of each step in thousandths of the time. The first step is only for 0."""
_KEY: Final = tuple((name, f"var(--heat-{n})") for n, (_, name) in enumerate(_STEPS))


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


def fencing(rows: Rows, period: Period) -> FencingSection:
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
        _figure(drawn, len(brokers) - len(drawn), pieces) if drawn else None,
        _table(order),
    )


def _broker(broker_id: int, rows: Any, period: Period, pieces: Pieces) -> _Broker:
    broker = _Broker(broker_id)
    before, before_until = "", -1
    for _, _, _, from_ms, until_ms, state in rows:
        part = period.clip(from_ms, until_ms)
        in_service = before in {"online", "stopping"} and before_until == from_ms
        if part is not None:
            if state == "fenced" and in_service and from_ms >= period.from_ms:
                broker.times += 1
            broker.present_ms += part[1] - part[0]
            broker.fenced_ms += part[1] - part[0] if state == "fenced" else 0
            broker.stopping_ms += part[1] - part[0] if state == "stopping" else 0
            _spread(broker.present, part, pieces)
            if state == "fenced":
                _spread(broker.fenced, part, pieces)
        before, before_until = state, -1 if until_ms is None else until_ms
    return broker


def _spread(into: dict[int, int], part: tuple[int, int], pieces: Pieces) -> None:
    """Add a part's time to the pieces that it lies in."""
    for place, length_ms in pieces.spread(part):
        into[place] += length_ms


def _figure(drawn: list[_Broker], left_out: int, pieces: Pieces) -> Figure:
    cells = []
    for broker in drawn:
        for place, present in sorted(broker.present.items()):
            if present:
                cells.append(_cell(broker, place, present, pieces))
    caption = "No cell: the broker was not registered."
    if left_out:
        caption += f" {counted(left_out, 'broker')} with less fenced time not drawn."
    worst = max(drawn, key=lambda each: each.fenced_ms)
    alt = (
        f"Heat map of {counted(len(drawn), 'broker')}, one cell per {pieces.unit}: how much of it "
        f"each was fenced. Longest: broker {worst.broker_id}, {duration(worst.fenced_ms)}. "
        "The table that follows has the sums."
    )
    names = [f"broker {broker.broker_id}" for broker in drawn]
    return Figure(
        f"Fenced time per {pieces.unit}", draw(_spec(cells, names, pieces), alt), caption, _KEY
    )


def _cell(broker: _Broker, place: int, present: int, pieces: Pieces) -> dict[str, Any]:
    begin, end = pieces.span(place)
    fenced = broker.fenced.get(place, 0)
    gap = max(1, min(end - begin, pieces.step_ms * pieces.number // 30) // 14)
    tip = f"broker {broker.broker_id}, {pieces.name(place)}: fenced "
    tip += f"{duration(fenced)} of {duration(present)} ({share(fenced, present)})"
    return {
        "from": begin,
        "until": end - gap,
        "broker": f"broker {broker.broker_id}",
        "colour": _step(fenced, present),
        "tip": tip if fenced else f"{tip.partition(': ')[0]}: not fenced",
    }


def _step(fenced: int, present: int) -> str:
    if not fenced:
        return _STEPS[0][1]
    return [name for least, name in _STEPS[1:] if least == 1 or fenced * 1000 >= least * present][
        -1
    ]


def _spec(cells: list[dict[str, Any]], names: list[str], pieces: Pieces) -> dict[str, Any]:
    return {
        "width": 960,
        "height": 22 * len(names) + 4,
        "data": {"values": cells},
        "mark": {"type": "bar"},
        "encoding": {
            "x": time_axis(pieces.whole),
            "x2": {"field": "until"},
            "y": {
                "field": "broker",
                "type": "nominal",
                "sort": names,
                "scale": {"domain": names, "paddingInner": 0.12, "paddingOuter": 0.1},
                "axis": {"title": None, "grid": False, "minExtent": 90},
            },
            "color": coloured([name for name, _ in _KEY], [colour for _, colour in _KEY]),
            "description": {"field": "tip"},
        },
    }


def _table(order: list[_Broker]) -> ReportTable:
    rows = [
        (
            Cell(f"broker {broker.broker_id}", broker.broker_id),
            length(broker.fenced_ms, "warn" if broker.fenced_ms else ""),
            Cell(share(broker.fenced_ms, broker.present_ms), broker.fenced_ms, "num"),
            count(broker.times),
            length(broker.stopping_ms),
            length(broker.present_ms),
        )
        for broker in order[:_ROWS]
    ]
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
