"""Figures of a run, and their table.

Rule: a figure is the median of its rounds. It keeps the rounds, its target, and a floor that was
measured just before it on the same machine. The table also shows every figure that misses its
target.
"""

import datetime as dt
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table


class Floor(msgspec.Struct, frozen=True):
    """What the machine could do at best, in the figure's own unit."""

    what: str
    value: float


class Figure(msgspec.Struct, frozen=True):
    """One line of the table."""

    piece: str
    what: str
    unit: str
    """`/s`: more is better; `ms`, `s`, `bytes`, `count`: less is better."""
    rounds: tuple[float, ...]
    floor: Floor | None = None
    target: float | None = None
    note: str = ""

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def ratio(self) -> float | None:
        """How many times the floor."""
        return None if self.floor is None or not self.floor.value else self.value / self.floor.value

    @property
    def more_is_better(self) -> bool:
        """Rates are; times and counts of trouble are not."""
        return self.unit == "/s"

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.more_is_better else self.value <= self.target


class Run(msgspec.Struct, frozen=True, rename="camel"):
    """A whole run, as `--json` writes it."""

    started: str
    machine: str
    python: str
    load_average: tuple[float, ...]
    """Before the run: other work on the machine makes every figure worse."""
    seconds: float
    figures: list[Figure]


def describe_run(figures: Sequence[Figure], load: tuple[float, ...], seconds: float) -> Run:
    """Put figures and machine together."""
    cores = os.cpu_count()
    return Run(
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        machine=f"{platform.system()} {platform.machine()}, {cores} cores, {_processor()}",
        python=platform.python_version(),
        load_average=load,
        seconds=round(seconds, 1),
        figures=list(figures),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def number(value: float) -> str:
    """A number that is read at a glance: three significant digits, thousands apart."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_unit(value: float, unit: str) -> str:
    """A value as the table shows it."""
    if unit == "count":
        return f"{value:.0f}"
    return f"{number(value)}{unit}" if unit == "/s" else f"{number(value)} {unit}"


def show(run: Run, console: Console) -> None:
    """Print the table."""
    table = Table(title=f"Logberg on {run.machine}, Python {run.python}", title_justify="left")
    for name, justify in (
        ("", "left"),
        ("median", "right"),
        ("rounds", "right"),
        ("target", "right"),
        ("floor, same run", "left"),
        ("ratio", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    last = ""
    for figure in run.figures:
        if last and figure.piece != last:
            table.add_section()
        last = figure.piece
        table.add_row(*_cells(figure))
    console.print(table)
    for figure in run.figures:
        if figure.note:
            console.print(f"  {figure.what}: {figure.note}", style="dim", highlight=False)
    missed = [figure.what for figure in run.figures if figure.met is False]
    console.print(
        f"{run.seconds:.0f} s; load average before the run {run.load_average[0]:.1f}. "
        + (f"Missed: {'; '.join(missed)}." if missed else "Every target is met."),
        highlight=False,
    )


def markdown(run: Run) -> str:
    """The table for a page."""
    lines = [
        "| | median | rounds | target | floor, same run | ratio |",
        "|---|--:|--:|--:|---|--:|",
    ]
    for figure in run.figures:
        what, value, *rest = _plain_cells(figure)
        what = f"&emsp;{what.strip()}" if what.startswith(" ") else what
        if figure.met is not None:
            value = f"**{value}**" if figure.met else f"{value} (missed)"
        lines.append(f"| {' | '.join([what, value, *rest])} |")
    return "\n".join(lines) + "\n"


def _cells(figure: Figure) -> list[str]:
    what, value, *rest = _plain_cells(figure)
    if figure.met is not None:
        value = f"[{'green' if figure.met else 'red'}]{value}[/]"
    return [what, value, *rest]


def _plain_cells(figure: Figure) -> list[str]:
    value = with_unit(figure.value, figure.unit)
    low, high = min(figure.rounds), max(figure.rounds)
    spread = "" if len(figure.rounds) < 2 else f"{number(low)} to {number(high)}"
    target = ""
    if figure.target is not None:
        bound = "at least" if figure.more_is_better else "at most"
        target = f"{bound} {with_unit(figure.target, figure.unit)}"
    floor = ratio = ""
    if figure.floor is not None:
        floor = f"{figure.floor.what}: {with_unit(figure.floor.value, figure.unit)}"
    if figure.ratio is not None:
        ratio = f"{figure.ratio:.2f}" if figure.ratio < 10 else f"{figure.ratio:.0f}"
    return [figure.what, value, spread, target, floor, ratio]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of all lie; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
