"""Tables of the page. Each says what it leaves out.

Rule: the page stays small for a history of any size, so each table has a limit. A table that was
cut says how many rows are missing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from audit.report.words import counted, duration, moment, number


class Cell(NamedTuple):
    """The content of a cell. `sort` orders it if its text would not."""

    text: str
    sort: int | str | None = None
    kind: str = ""
    """`num`, `mono`, `hash`, `time`, `long`, `name`, `tag`, `bad`, `warn`, `bars`: the style."""
    more: str = ""
    """A second, smaller line."""
    ref: int | None = None
    """The place of its records in `Details`."""
    thing: str = ""
    """What to draw over time: `partition:orders-3`, `broker:3`."""


class ReportColumn(NamedTuple):
    """A column's heading; `numeric` columns are set right and sorted by number."""

    title: str
    numeric: bool = False


class ReportTable(NamedTuple):
    """A table with its caption."""

    caption: str
    columns: tuple[ReportColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: str = ""
    """A sentence; empty if the table is complete."""
    filtered: bool = True
    """Whether a table with more than a few rows gets a filter field."""


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    left_out: str = "",
    filtered: bool = True,
) -> ReportTable:
    """Build a table. A column whose name begins with `#` is numeric."""
    return ReportTable(
        caption,
        tuple(ReportColumn(name.removeprefix("#"), name.startswith("#")) for name in columns),
        tuple(map(tuple, rows)),
        left_out,
        filtered,
    )


def text(value: str | None, kind: str = "") -> Cell:
    """Return a cell with text; a dash if there is none."""
    return Cell(value or "\N{EN DASH}", None, kind)


def count(value: int, kind: str = "", ref: int | None = None) -> Cell:
    """Return a cell with a whole number."""
    return Cell(number(value), value, f"num {kind}".strip(), ref=ref)


def length(value_ms: int, kind: str = "", ref: int | None = None) -> Cell:
    """Return a cell with a length of time."""
    return Cell(duration(value_ms), value_ms, f"num {kind}".strip(), ref=ref)


def at(timestamp_ms: int) -> Cell:
    """Return a cell with a time."""
    return Cell(moment(timestamp_ms), timestamp_ms, "time")


def missing(total: int, limit: int, what: str, by: str) -> str:
    """Return how many rows a table leaves out; empty if it leaves out none."""
    if total <= limit:
        return ""
    return (
        f"The {number(limit)} {what} with {by}, of {number(total)}; "
        f"{counted(total - limit, 'is', 'are')} not on this page."
    )
