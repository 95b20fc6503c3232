"""A drawing with its title and caption, and the parts that all drawings over time share.

Rule: an axis that counts begins at 0 and names its unit. If a mark is widened to be visible, the
caption says so.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from audit.report.drawing import TIMES
from audit.report.period import Period

SERIES: Final = tuple(f"var(--series-{number})" for number in range(1, 7))
"""Colours for series. Colour-blind readers can tell them apart; there are no more such colours."""
OTHERS_COLOUR: Final = "var(--others)"
_FORMATS: Final = {
    "year": "%-d %b %Y",
    "quarter": "%-d %b",
    "month": "%-d %b",
    "week": "%-d %b",
    "date": "%-d %b",
    "day": "%-d %b",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
}
_GROUPED: Final = "replace(format(datum.value, ','), regexp(',', 'g'), '\u202f')"
_INSET: Final = 0.07
"""The part of a piece that stays free at each side of its bar."""


class Figure(NamedTuple):
    """A picture on the page."""

    title: str
    drawing: Markup
    caption: str = ""
    key: tuple[tuple[str, str], ...] = ()
    """What the colours mean: names with their CSS colours; words on the page, not in the drawing,
    so that they wrap, grow and are read."""


def time_axis(period: Period) -> dict[str, Any]:
    """Return the encoding of x for marks that begin at `from` and end at `until`."""
    return {
        "field": "from",
        "type": "temporal",
        "scale": {**TIMES, "domain": list(period), "nice": False},
        "axis": {"title": None, "format": _FORMATS, "values": period.ticks()},
    }


def coloured(names: Sequence[str], colours: Sequence[str]) -> dict[str, Any]:
    """Return the encoding of colour. The figure's `key` explains the colours."""
    return {
        "field": "colour",
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(colours)},
        "legend": None,
    }


def counting_axis(title: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of y for marks from `low` to `high`, with the unit on top."""
    return {
        "field": "low",
        "type": "quantitative",
        "scale": {"zero": True},
        "axis": {
            "title": title,
            "titleAngle": 0,
            "titleAlign": "left",
            "titleBaseline": "bottom",
            "titleX": 0,
            "titleY": -8,
            "minExtent": 44,
            "labelExpr": _GROUPED,
            **more,
        },
    }


def inset(span: tuple[int, int]) -> dict[str, int]:
    """Return a piece's bar as `from` and `until`, a little narrower than the piece."""
    begin, end = span
    free = int((end - begin) * _INSET)
    return {"from": begin + free, "until": end - free}
