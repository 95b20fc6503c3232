"""Drawings over time: bars above an axis, and lanes below each other, as SVG for the page.

Rule: a drawing is finished here. Places along the time are percentages and heights are pixels, so
one drawing fits a phone and a desk, and its words keep their size. Colours are classes of the
page's style. Every word is escaped, so a name that a user chose can't become markup (ADR 0067).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from audit.report.period import Period
from audit.report.words import number

LANE: Final = 24
"""The height of a lane in CSS pixels."""
_GAP: Final = 2
"""What stays free above and below the marks of a lane."""
_TICKS: Final = 22
"""The height of the line with the times."""
_TOP: Final = 20
"""The room above the highest bar, for its number."""
_EDGE: Final = 8.0
"""A time that is nearer to an edge than so many percent is written towards the middle."""


class DrawnMark(NamedTuple):
    """One rectangle of a drawing."""

    from_ms: int
    until_ms: int
    tone: str
    """The class that colours it: `normal`, `present`, `bad`, `warn`."""
    tip: str = ""
    """What it is, in words."""
    ref: int | None = None
    """The place of its records in `Details`."""
    lane: int = 0
    height: float = 1.0
    """The part of the lane, or of the axis, that it fills from below."""


def bars(
    marks: Sequence[DrawnMark], period: Period, highest: tuple[float, str], alt: str
) -> Markup:
    """Draw bars above one axis. `highest`: the value of height 1, and its unit."""
    height = 110
    most, unit = highest
    said = escape(f"{_rounded(most)} {unit}")
    parts = [
        f'<line class="grid" x1="0" x2="100%" y1="{_TOP}" y2="{_TOP}"/>',
        f'<text class="unit" x="0" y="{_TOP - 6}">{said}</text>',
    ]
    parts += [_rect(mark, period, _TOP, height - _TOP) for mark in marks]
    return _svg(parts, period, height, alt)


def lanes(marks: Iterable[DrawnMark], period: Period, count: int, alt: str) -> Markup:
    """Draw `count` lanes below each other. The page writes their names beside them."""
    room = LANE - 2 * _GAP
    parts = [_rect(mark, period, mark.lane * LANE + _GAP, room) for mark in marks]
    return _svg(parts, period, count * LANE, alt)


def _rounded(value: float) -> str:
    return f"{value:.1f}" if value < 10 and value % 1 else number(round(value))


def _svg(parts: list[str], period: Period, height: int, alt: str) -> Markup:
    drawn = "".join((*_axis(period, height), *parts))
    return Markup(  # noqa: S704 - numbers of ours, and words that were escaped
        f'<svg class="plot" width="100%" height="{height + _TICKS}" role="img" '
        f'aria-label="{escape(alt)}">{drawn}</svg>'
    )


def _rect(mark: DrawnMark, period: Period, top: float, room: float) -> str:
    begin, end = _percent(mark.from_ms, period), _percent(mark.until_ms, period)
    high = max(1.0, room * mark.height)
    tip = f' data-tip="{escape(mark.tip)}"' if mark.tip else ""
    ref = "" if mark.ref is None else f' data-ref="{mark.ref}"'
    return (
        f'<rect class="{mark.tone}" x="{begin:.2f}%" y="{top + room - high:.1f}" '
        f'width="{end - begin:.2f}%" height="{high:.1f}"{tip}{ref}/>'
    )


def _axis(period: Period, height: int) -> Iterable[str]:
    """Yield the line below, and the times that are named. A phone hides every other."""
    yield f'<line class="rule" x1="0" x2="100%" y1="{height}" y2="{height}"/>'
    for place, (at_ms, words) in enumerate(period.named_ticks()):
        x = _percent(at_ms, period)
        anchor = "start" if x < _EDGE else "end" if x > 100 - _EDGE else "middle"
        odd = " odd" if place % 2 else ""
        yield (
            f'<line class="rule{odd}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{height}" '
            f'y2="{height + 4}"/><text class="tick{odd}" text-anchor="{anchor}" x="{x:.2f}%" '
            f'y="{height + 17}">{escape(words)}</text>'
        )


def _percent(at_ms: int, period: Period) -> float:
    return (at_ms - period.from_ms) * 100 / max(1, period.length_ms)
