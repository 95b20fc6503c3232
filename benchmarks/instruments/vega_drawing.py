"""Drawings for the pages of benchmarks: turns a Vega-Lite specification into an SVG.

Rule: a drawing is finished here, not in the reader's browser. Colours are CSS variables of the
page, so one drawing serves light mode, dark mode and paper. The SVG is parsed again, and only known
elements and attributes are kept.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from xml.etree import ElementTree as ET

from markupsafe import Markup

WIDTH: Final = 960
"""The width of each drawing in CSS pixels, with axes and legend."""

_SVG: Final = "http://www.w3.org/2000/svg"
_VEGA_LITE: Final = "6.4"
_ELEMENTS: Final = frozenset({"svg", "g", "path", "rect", "line", "text", "tspan", "circle"})
_KEPT: Final = frozenset(
    {
        "d",
        "x",
        "y",
        "x1",
        "y1",
        "x2",
        "y2",
        "dx",
        "dy",
        "width",
        "height",
        "viewBox",
        "transform",
        "fill",
        "stroke",
        "opacity",
        "fill-opacity",
        "stroke-opacity",
        "stroke-width",
        "stroke-dasharray",
        "text-anchor",
        "font-size",
        "font-weight",
    }
)
_LONG_FRACTION: Final = re.compile(r"(\d+\.\d\d)\d+")
_FONT: Final = "Helvetica Neue, Arial, sans-serif"
"""The font by which text is measured. The page's own font replaces it."""

_AXIS: Final = {
    "labelColor": "var(--muted)",
    "titleColor": "var(--muted)",
    "domainColor": "var(--rule)",
    "tickColor": "var(--rule)",
    "gridColor": "var(--grid)",
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "labelPadding": 6,
    "titlePadding": 10,
}
CONFIG: Final[Mapping[str, Any]] = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": _AXIS,
    "axisX": {"grid": False, "labelFlush": False, "labelOverlap": "greedy"},
    "axisY": {"domain": False, "ticks": False, "tickCount": 4},
    "text": {"fill": "var(--ink)"},
    "title": {"color": "var(--ink)", "anchor": "start", "fontSize": 13, "fontWeight": 600},
}
TIMES: Final = {"type": "utc"}
"""The scale of times."""


class DrawingError(Exception):
    """The drawing library is not installed, or drew something that the page doesn't allow."""


def draw(spec: Mapping[str, Any], alt: str) -> Markup:
    """Draw a Vega-Lite specification. `alt` describes the picture in words.

    The page shows a mark's `description` when the reader points at it. Raises DrawingError.
    """
    try:
        import vl_convert  # noqa: PLC0415 - optional, and slow to load
    except ImportError:
        raise DrawingError("benchmarks draw with vl-convert-python. Install it.") from None
    whole = {"config": CONFIG, "autosize": {"type": "fit-x", "contains": "padding"}, **spec}
    try:
        drawn = vl_convert.vegalite_to_svg(json.dumps(whole), vl_version=_VEGA_LITE)
    except ValueError as error:
        raise DrawingError(f"a drawing failed: {error}") from error
    return Markup(_cleaned(drawn, alt))


def _cleaned(drawn: str, alt: str) -> str:
    """Keep what a picture needs, and drop what only a live chart needs."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(drawn)
    for element in root.iter():
        _clean_element(element)
    root.set("role", "img")
    root.set("aria-label", alt)
    return ET.tostring(root, encoding="unicode")


def _clean_element(element: ET.Element) -> None:
    name = element.tag.removeprefix(f"{{{_SVG}}}")
    if name not in _ELEMENTS:
        raise DrawingError(f"a drawing holds an element <{name}>, which the page doesn't allow.")
    label = element.get("aria-label")
    is_mark = name in {"path", "rect", "text", "line"} and label
    kept = {key: value for key, value in element.attrib.items() if key in _KEPT}
    element.attrib.clear()
    for key, value in kept.items():
        if "url(" in value:
            raise DrawingError(f"a drawing refers to {value}; references are not allowed.")
        element.set(key, _LONG_FRACTION.sub(r"\1", value) if key in {"d", "transform"} else value)
    if is_mark and label:
        element.set("data-tip", label)
