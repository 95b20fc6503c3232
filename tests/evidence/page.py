"""The parts of docs/safety.md that come from `recorded.csv`.

Rule: no figure is typed. A kind that was not run says so; a figure that misses what it must reach
is bold and has an exclamation mark, and what failed stands below the table.
"""

import re
from collections.abc import Sequence

from tests.evidence.kinds import KINDS, Kind
from tests.evidence.recorded import Row, summed

NOT_RUN = "**not run**"


def recorded_table(rows: Sequence[Row]) -> str:
    """Where the rows come from, then a line for each kind of runs."""
    lines = [
        f"{_origin(rows)}\n",
        "| what | how many | at least | wrong, must be 0 | also counted | again |",
        "|---|--:|--:|--:|---|---|",
    ]
    failed = []
    for what, kind in KINDS.items():
        found = [row for row in rows if row.what == what]
        cells = _cells(kind, found) if found else (NOT_RUN, _least(kind), "", "")
        lines.append(f"| {' | '.join((kind.title, *cells, f'`{kind.again}`'))} |")
        failed += [f"{f'{what} {row.kind}'.strip()}: {row.failed}" for row in found if row.failed]
    if failed:
        lines += ["", "What went wrong or is missing:", "", "```", *failed, "```"]
    return "\n".join(lines) + "\n"


def _origin(rows: Sequence[Row]) -> str:
    if not rows:
        return "Nothing was run."
    whole = summed(rows)
    dates = sorted({row.date for row in rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"All of it ran on commit `{whole.commit}`, {when}, on Python "
        f"{', '.join(sorted(whole.python.split()))}, and took {_duration(whole.seconds)}."
    )


def _cells(kind: Kind, rows: Sequence[Row]) -> tuple[str, str, str, str]:
    row, kinds = summed(rows), len({row.kind for row in rows})
    of_kinds = f" of {kinds} kinds" if kinds > 1 else ""
    return (
        _loud(f"{row.count:,} {kind.unit}{of_kinds}", row.count < kind.least),
        _least(kind),
        _loud(f"{row.wrong:,}", bool(row.wrong)),
        ", ".join(
            _loud(_figure(name, value), value >= kind.below.get(name, float("inf")))
            for name, value in row.figures.items()
            if not name.startswith("promise_")
        ),
    )


def _least(kind: Kind) -> str:
    return f"{kind.least:,}" if kind.least else ""


def _loud(text: str, wrong: bool) -> str:
    return f"**{text} !**" if wrong else text


def _figure(name: str, value: float) -> str:
    for ending, text in (("_ms", f"{value:,.0f} ms"), ("_s", _duration(value))):
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} {text}"
    return f"{name.replace('_', ' ')} {value:,.0f}"


def _duration(seconds: float) -> str:
    """12 s · 3 min · 4.5 h · 2.1 days"""
    for limit, one, digits, unit in (
        (120, 1, 0, "s"),
        (7_200, 60, 0, "min"),
        (172_800, 3_600, 1, "h"),
    ):
        if seconds < limit:
            return f"{seconds / one:.{digits}f} {unit}"
    return f"{seconds / 86_400:.1f} days"


def promise_table(rows: Sequence[Row], text: str) -> str:
    """The promises that a page makes under its headings, with the mutants that break each."""
    mutants = {name: n for row in rows if row.what == "mutants" for name, n in row.figures.items()}
    lines = ["|  | promise | mutants that break it, all killed |", "|--:|---|--:|"]
    if any(row.wrong for row in rows if row.what == "mutants"):
        lines[0] = "|  | promise | mutants that break it and were killed |"
    for number, title in re.findall(r"^### (\d+)\. (.+)$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", f"{number}. {title}".lower()).replace(" ", "-")
        count = f"{mutants.get(f'promise_{number}', 0):.0f}" if mutants else NOT_RUN
        lines.append(f"| {number} | [{title}](#{anchor}) | {count} |")
    return "\n".join(lines) + "\n"
