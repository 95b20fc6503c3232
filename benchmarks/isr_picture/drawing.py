"""The picture of ISRs over time: a lane for each replica, and a line for each step of the run.

Rule: it is drawn as the audit's report is (ADR 0013). The page's colours are replaced by fixed ones
that can be told apart on white paper, because the picture stands alone.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks.instruments.vega_drawing import draw

_COLOURS: Final = {
    "--ink": "#1f2328",
    "--muted": "#59636e",
    "--rule": "#8c959f",
    "--grid": "#eaeef2",
}
_ROLES: Final = {"leads": "#0b5cad", "in sync": "#9cc9f0", "no leader": "#d1242f"}
_LANE: Final = 17
"""The height of a lane in pixels."""


class Held(NamedTuple):
    """A time in which a broker led a partition, or was in its ISR; broker 0: nobody led it."""

    partition: int
    broker: int
    role: str
    begin: float
    """In seconds since 1970, as `end`."""
    end: float


class Step(NamedTuple):
    """What was done to a node."""

    label: str
    at: float
    """In seconds since 1970."""
    took_s: float
    """From when the node was online again until every ISR was full."""


def drawing(spans: Sequence[Held], steps: Sequence[Step]) -> str:
    """Return the picture as an SVG file."""
    zero = steps[0].at - 3.0
    last = max(span.end for span in spans) - zero
    brokers = sorted({span.broker for span in spans if span.broker})
    lanes = [
        _lane(number, broker)
        for number in sorted({span.partition for span in spans})
        for broker in brokers
    ]
    bars = [
        {
            "lane": _lane(span.partition, broker),
            "begin": max(0.0, span.begin - zero),
            "end": span.end - zero,
            "role": span.role,
        }
        for span in spans
        for broker in ([span.broker] if span.broker else brokers)
        if span.end > zero
    ]
    marks = [{"label": step.label, "at": step.at - zero} for step in steps]
    x = {"type": "quantitative", "scale": {"domain": [0, round(last)], "nice": False}}
    spec: dict[str, Any] = {
        "background": "#ffffff",
        "width": 960,
        "height": _LANE * len(lanes),
        "padding": {"left": 8, "right": 16, "top": 8, "bottom": 8},
        "layer": [_bars(bars, lanes, x), _rules(marks, x), _labels(marks, x)],
    }
    svg = str(draw(spec, "For each replica of four partitions: when it was in sync, when it led"))
    svg = re.sub(r"var\((--\w+)\)", lambda match: _COLOURS[match[1]], svg)
    return svg.replace("<svg ", '<svg font-family="Helvetica, Arial, sans-serif" ', 1) + "\n"


def _lane(partition: int, broker: int) -> str:
    return f"partition {partition}, broker {broker}"


def _bars(bars: list[dict[str, Any]], lanes: list[str], x: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": bars},
        "mark": {"type": "bar", "height": _LANE - 4},
        "encoding": {
            "x": {**x, "field": "begin", "title": "seconds"},
            "x2": {"field": "end"},
            "y": {"field": "lane", "type": "nominal", "sort": lanes, "title": None},
            "color": {
                "field": "role",
                "type": "nominal",
                "scale": {"domain": [*_ROLES], "range": [*_ROLES.values()]},
                "legend": {"title": None, "orient": "bottom"},
            },
        },
    }


def _rules(marks: list[dict[str, Any]], x: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": marks},
        "mark": {"type": "rule", "color": "#1f2328", "strokeDash": [3, 3]},
        "encoding": {"x": {**x, "field": "at"}},
    }


def _labels(marks: list[dict[str, Any]], x: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": marks},
        "mark": {"type": "text", "align": "left", "dx": 3, "y": -8, "fontSize": 12},
        "encoding": {"x": {**x, "field": "at"}, "text": {"field": "label"}},
    }
