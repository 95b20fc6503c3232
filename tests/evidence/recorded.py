"""`recorded.csv`: one row a kind of run, all of one commit, for a person to read.

Rule: `summarise` writes the file, from pieces, and nobody edits it. A figure that was not measured
is not in it.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

RECORDED = Path(__file__).parent / "recorded.csv"


class Row(NamedTuple):
    """What all runs of one kind found."""

    what: str
    """A key of `KINDS`."""
    kind: str
    """Which of its like; empty where there is one only."""
    count: int
    wrong: int
    """How many violations; 0 is what must be."""
    figures: dict[str, float]
    failed: str
    """What went wrong, in the words of the run, on one line."""
    seconds: float
    date: str
    python: str
    commit: str
    command: str


def read_rows(path: Path = RECORDED) -> list[Row]:
    """Read the file. Raises OSError, ValueError, TypeError."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Row(**cast("dict[str, Any]", row)) for row in csv.DictReader(file)]
    return [
        row._replace(
            count=int(row.count),
            wrong=int(row.wrong),
            seconds=float(row.seconds),
            figures=_figures(str(row.figures)),
        )
        for row in rows
    ]


def _figures(text: str) -> dict[str, float]:
    pairs = (figure.split("=") for figure in text.split())
    return {name: float(value) for name, value in pairs}


def write_rows(rows: Iterable[Row], path: Path = RECORDED) -> None:
    """Write the file anew."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in rows:
            figures = " ".join(f"{name}={value:.15g}" for name, value in row.figures.items())
            fields = row._asdict() | {"figures": figures, "seconds": round(row.seconds)}
            writer.writerow(fields.values())


_NO_COUNTS = ("depth", "invariants", "pythons", "hash_seeds")


def summed(rows: Sequence[Row]) -> Row:
    """One row for several. Counts add up; of other figures it has the largest."""
    figures: dict[str, float] = {}
    for row in rows:
        for name, value in row.figures.items():
            before = figures.get(name, 0)
            largest = name in _NO_COUNTS or name.endswith("_ms")
            figures[name] = max(before, value) if largest else before + value
    return rows[0]._replace(
        kind="",
        count=sum(row.count for row in rows),
        wrong=sum(row.wrong for row in rows),
        figures=figures,
        failed="; ".join(row.failed for row in rows if row.failed),
        seconds=sum(row.seconds for row in rows),
        date=max(row.date for row in rows),
        python=" ".join(dict.fromkeys(word for row in rows for word in row.python.split())),
        command="",
    )
