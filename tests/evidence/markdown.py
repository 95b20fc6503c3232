"""Numbers and tables as docs/safety.md shows them.

Rule: a figure is shown as it was measured, or as `not run yet`; what must be zero and isn't, and
what must be filled and isn't, is shown so that nobody overlooks it.
"""

from collections.abc import Iterable, Sequence

NOT_RUN = "not run yet"


def number(value: float) -> str:
    """1,234 · 1,234.5 · 12.3"""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}"


def short(value: int) -> str:
    """At most four characters, for wide tables: 987 · 12k · 3.4M"""
    for unit, one in (("M", 1_000_000), ("k", 1_000)):
        if value >= one:
            parts = value / one
            return f"{parts:.1f}{unit}" if parts < 9.95 else f"{parts:.0f}{unit}"
    return str(value)


def none_or_loud(value: float, what: str = "") -> str:
    """Nothing, or something that must not be."""
    return "0" if not value else f"**{number(value)}{f' {what}' if what else ''} !**"


def duration(seconds: float) -> str:
    """12 s · 3 min · 4.5 h · 2.1 days"""
    for limit, one, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / one:.0f} {unit}" if unit != "h" else f"{seconds / one:.1f} h"
    return f"{seconds / 86_400:.1f} days"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table; columns in `right` are numbers."""
    ends = set(right)
    lines = [f"| {' | '.join(head)} |"]
    lines.append("|" + "".join("--:|" if n in ends else "---|" for n in range(len(head))))
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def folded(title: str, text: str) -> str:
    """What is long, behind its title."""
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def code(text: str) -> str:
    """Text as it stands."""
    return f"```\n{text}\n```\n"
