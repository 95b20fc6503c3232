"""Tables for people, JSON for programs.

Rule: with `--output json` stdout holds one JSON document (or one a line, where a command says
so) and nothing else; tables are drawn by rich, which leaves out colours when it is piped.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

STATE_STYLES = {
    "online": "green",
    "leader": "bold green",
    "active": "bold green",
    "follower": "green",
    "fenced": "yellow",
    "stopping": "yellow",
    "candidate": "yellow",
    "observer": "cyan",
    "offline": "red",
    "down": "red",
    "damaged": "bold red",
}


def console() -> Console:
    """Stdout; as wide as the terminal, or wide enough when piped."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def print_json(value: Any) -> None:
    """Write one JSON document."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_line(value: Any) -> None:
    """Write one JSON document on one line."""
    click.echo(msgspec.json.encode(value).decode())


def styled(state: str) -> Text:
    """A state in its colour."""
    return Text(state, style=STATE_STYLES.get(state, ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """A table; numbers are set right."""
    drawn = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
    kept = [list(row) for row in rows]
    for number, column in enumerate(drawn.columns):
        if kept and all(isinstance(row[number], int) for row in kept):
            column.justify = "right"
    for row in kept:
        drawn.add_row(*(cell if isinstance(cell, Text) else str(cell) for cell in row))
    return drawn


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Names and values, one a line."""
    drawn = Table.grid(padding=(0, 2))
    for name, value in pairs:
        drawn.add_row(Text(name, style="dim"), value if isinstance(value, Text) else str(value))
    return drawn


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--output table|json`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        envvar="QUORATE_OUTPUT",
        show_envvar=True,
        help="For people, or for programs.",
    )(command)
