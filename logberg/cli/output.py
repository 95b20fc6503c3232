"""Tables for people, JSON for programs, and nothing that a terminal would obey.

Rule: names, racks, hosts, reasons and messages come from others. Every command writes through this
file, and `shown` replaces what would move the cursor, change the terminal, reverse the text or
begin a line. With `--output json` stdout holds one JSON document (or one a line, where a command
says so) and nothing else. What is written to a pipe or a file is whole: no line is wrapped and no
cell is cut.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
import msgspec
from rich.cells import cell_len
from rich.console import Console, RenderableType
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
    "ok": "green",
    "look": "yellow",
    "act": "bold red",
}

Piece = str | Text
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls (C0, DEL, C1), formats (bidi among them), lone surrogates, and
separators of lines and paragraphs."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: object) -> str:
    r"""Return `text` as it is safe to write: `\n`, `\x1b`, `\u202e` for what a terminal obeys."""
    said = str(text)
    if said.isascii() and said.isprintable():
        return said
    return "".join(map(_escaped, said))


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    number = ord(character)
    short = f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
    return _NAMED.get(character, short if number < 0x10000 else f"\\U{number:08x}")


def say(*pieces: Piece, err: bool = False) -> None:
    """Write one line; a `Text` keeps its style where colours are seen."""
    click.echo("".join(map(_coloured, pieces)), err=err)


def note(text: str) -> None:
    """Write a note on stderr."""
    say(f"note: {text}", err=True)


def _coloured(piece: Piece) -> str:
    if isinstance(piece, str):
        return shown(piece)
    words = str(piece.style).split()
    colour = next((word for word in words if word not in ("bold", "dim")), None)
    bold, dim = "bold" in words or None, "dim" in words or None
    return click.style(shown(piece.plain), fg=colour, bold=bold, dim=dim)


def styled(state: str) -> Text:
    """A state in its colour."""
    return Text(state, style=STATE_STYLES.get(state, ""))


def print_json(value: Any) -> None:
    """Write one JSON document."""
    click.echo(_json(msgspec.json.format(msgspec.json.encode(value), indent=2)))


def print_line(value: Any, *, err: bool = False) -> None:
    """Write one JSON document on one line."""
    click.echo(_json(msgspec.json.encode(value)), err=err)


def print_bytes(data: bytes) -> None:
    """Write bytes as they are to a pipe or a file; a terminal gets them as safe text."""
    if sys.stdout.isatty():
        say(data.decode(errors="replace"))
    else:
        click.echo(data, nl=False)


def _json(document: bytes) -> str:
    """The same document, in which JSON's own escapes stand for what a terminal obeys."""
    text = document.decode()
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        character
        if character == "\n" or unicodedata.category(character) not in _UNSAFE
        # One above U+FFFF is two escapes in JSON.
        else "".join(f"\\u{unit:04x}" for unit in _utf16(character))
        for character in text
    )


def _utf16(character: str) -> list[int]:
    data = character.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


class Sheet:
    """A table: headings or none, rows of cells, a title or none."""

    def __init__(
        self, headings: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None
    ) -> None:
        self._headings = list(headings)
        self._title = title
        kept = [list(row) for row in rows]
        self._right = [
            bool(kept) and bool(headings) and all(isinstance(row[at], int) for row in kept)
            for at in range(len(kept[0]) if kept else len(self._headings))
        ]
        self._rows = [[_safe(cell) for cell in row] for row in kept]

    def drawn(self) -> RenderableType:
        """As rich draws it, fitted to a terminal: what is too long for its column goes on below."""
        drawn = Table(box=None, pad_edge=False, show_header=bool(self._headings))
        if self._title is not None:
            drawn.title, drawn.title_justify = _safe(self._title), "left"
        for at, right in enumerate(self._right):
            heading = _safe(self._headings[at]) if self._headings else ""
            drawn.add_column(heading, justify="right" if right else "left", overflow="fold")
        for row in self._rows:
            drawn.add_row(*row)
        return drawn

    def lines(self) -> list[str]:
        """As plain lines, each as long as it needs to be."""
        rows = [[cell.plain for cell in row] for row in self._rows]
        if self._headings:
            rows.insert(0, [shown(heading) for heading in self._headings])
        wide = [max(cell_len(row[at]) for row in rows) for at in range(len(self._right))]
        title = [] if self._title is None else [shown(self._title)]
        return title + [self._line(row, wide) for row in rows]

    def _line(self, row: list[str], wide: list[int]) -> str:
        cells = []
        for cell, width, right in zip(row, wide, self._right, strict=True):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if right else cell + space)
        return "  ".join(cells).rstrip()


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Sheet:
    """A table; numbers are set right."""
    return Sheet(columns, rows, title)


def facts(pairs: Iterable[tuple[str, Any]]) -> Sheet:
    """Names and values, one a line."""
    return Sheet((), [(Text(name, style="dim"), value) for name, value in pairs])


def show(*parts: Sheet | str) -> None:
    """Write tables and lines."""
    on_terminal = sys.stdout.isatty()
    for part in parts:
        if isinstance(part, str):
            say(part)
        elif on_terminal:
            Console(highlight=False).print(part.drawn())
        else:
            for line in part.lines():
                click.echo(line)


def drawn(part: Sheet | str) -> RenderableType:
    """A part of a display that rich keeps up to date."""
    return part.drawn() if isinstance(part, Sheet) else _safe(part)


def _safe(cell: Any) -> Text:
    """A cell in which nothing is markup and nothing is obeyed."""
    if isinstance(cell, Text):
        return Text(shown(cell.plain), style=cell.style)
    return Text(shown(cell))


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--output table|json`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        envvar="LOGBERG_OUTPUT",
        show_envvar=True,
        help="For people, or for programs.",
    )(command)
