"""Reads the docs pages: links, headings, and the blocks that tests run.

Rule: a block is run if the line before its fence is `<!-- run -->`, or `<!-- run: NAME -->` with
the name of its shell. `<!-- background -->` starts each line of the block and leaves it running. In
a `console` block a command follows `$ `, and the lines after it are the output that it must print.
`…` stands for any text within a line; a line that is only `…` stands for any lines.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.source import ROOT

_FENCE = re.compile(
    r"^<!-- (?P<how>run|background)(?:: (?P<shell>[a-z]+))? -->\n"
    r"```(?P<kind>[a-z]+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MAIN = "main"


class Step(NamedTuple):
    """One command, or one whole `sh` block."""

    line: int
    command: str
    expected: str | None
    """What it must print; None: it must succeed, whatever it prints."""
    background: bool


def pages() -> list[Path]:
    """Every page that a reader may open."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def steps(page: Path) -> dict[str, list[Step]]:
    """What a page wants to be run, by shell."""
    text = page.read_text()
    found: dict[str, list[Step]] = {}
    for block in _FENCE.finditer(text):
        line = text.count("\n", 0, block.start("text")) + 1
        into = found.setdefault(block["shell"] or MAIN, [])
        if block["how"] == "background":
            into += [Step(line, one, None, True) for one in block["text"].splitlines()]
        elif block["kind"] == "console":
            into += _transcript(block["text"], line)
        else:
            into.append(Step(line, block["text"], None, False))
    return found


def _transcript(text: str, line: int) -> Iterator[Step]:
    command, printed, at = "", "", line
    for number, one in enumerate(text.splitlines(keepends=True), line):
        if one.startswith("$ "):
            if command:
                yield Step(at, command, printed, False)
            command, printed, at = one[2:], "", number
        else:
            printed += one
    assert command, f"line {line}: a console block without a command"
    yield Step(at, command, printed, False)


def fits(expected: str, printed: str) -> bool:
    """Whether what was printed is what a page says."""
    parts = []
    for line in expected.splitlines():
        if line == "…":
            parts.append(r"(?:.*\n)*?")
            continue
        # Tables are as wide as their content: blanks in a row count as one.
        words = (".*".join(map(re.escape, word.split("…"))) for word in line.split())
        indent = r"\s*" if line.startswith(" ") else ""
        parts.append(indent + r"\s+".join(words) + "\n")
    text = "".join(line.rstrip() + "\n" for line in printed.splitlines() if line.strip())
    return re.fullmatch("".join(parts), text) is not None


def links(page: Path) -> Iterator[str]:
    """Targets of a page's links, save those in code."""
    return (match[1] for match in _LINK.finditer(_FENCED.sub("", page.read_text())))


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`, as GitHub makes it of headings."""
    text = _FENCED.sub("", page.read_text())
    return {
        re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")
        for heading in _HEADING.findall(text)
    }
