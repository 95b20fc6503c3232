"""A piece of evidence: one file that says which command ran, on which commit, and what it found.

Rule: the run that measures a figure writes it. Nobody types one. A piece has `+dirty` behind its
commit if the tree had changes that no commit holds, or if the tree changed while the command ran:
nobody could repeat that run, so `summarise` refuses it. Nothing counts twice: `read_pieces` refuses
seeds whose ranges overlap, and a second run over the same points, flips or model.
"""

import itertools
import json
import math
import platform
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.evidence.kinds import KINDS

ROOT = Path(__file__).parents[2]
DIRTY = "+dirty"
_MADE_HERE = (":!tests/evidence/recorded.csv", ":!docs/safety.md")
"""What `summarise` writes; a change of it does not change what runs."""


class PieceError(Exception):
    """A piece that can't be read or added up. Remedy: run its command again, or remove the file."""


class SeedRange(NamedTuple):
    """Seeds that ran, `first` to `end` without `end`."""

    first: int
    end: int


class Piece(NamedTuple):
    """What one run found."""

    what: str
    """A key of `KINDS`."""
    command: str
    commit: str
    python: str
    date: str
    """The day, UTC."""
    took_s: float
    figures: dict[str, Any]

    @property
    def kind(self) -> str:
        """Which of its like it is, such as `cluster drawn` or `restarted leader`."""
        return " ".join(str(self.figures[key]) for key in KINDS[self.what].named_by)

    @property
    def seeds(self) -> SeedRange:
        """Which seeds a piece of seeds is about."""
        first = self.figures["first"]
        return SeedRange(first, first + self.figures["count"])


def write_piece(
    folder: Path, what: str, figures: dict[str, Any], took_s: float, command: str | None = None
) -> Path:
    """Write what a run found; return the file. It never replaces a file. Raises PieceError."""
    if what not in KINDS:
        raise PieceError(f"evidence of {what!r}? There is: {', '.join(KINDS)}")
    day = datetime.now(UTC).date().isoformat()
    python = platform.python_version()
    command = command or _own_command()
    return save(folder, Piece(what, command, _commit(), python, day, round(took_s, 1), figures))


def save(folder: Path, piece: Piece) -> Path:
    """Write a piece under a name that is free; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [piece.what, piece.kind, piece.commit[:7], str(piece.figures.get("first", ""))]
    stem = "-".join("".join(c if c.isalnum() else "-" for c in word) for word in words if word)
    for number in itertools.count(1):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump(piece._asdict(), file, indent=1)
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def read_piece(path: Path) -> Piece:
    """Read one file. Raises PieceError."""
    try:
        piece = Piece(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise PieceError(f"{path} is no piece of evidence: {error}") from None
    if piece.what not in KINDS:
        raise PieceError(f"{path}: evidence of {piece.what!r}? There is: {', '.join(KINDS)}")
    missing = set(KINDS[piece.what].needed) - set(piece.figures)
    if missing:
        raise PieceError(f"{path} has no figure of {', '.join(sorted(missing))}")
    return piece


def read_pieces(folder: Path) -> list[Piece]:
    """Read a folder's pieces, in the order of their names. Raises PieceError."""
    pieces = [read_piece(path) for path in sorted(folder.glob("*.json"))]
    _refuse_twice(pieces)
    return pieces


def _refuse_twice(pieces: Iterable[Piece]) -> None:
    ranges: defaultdict[str, list[SeedRange]] = defaultdict(list)
    seen: set[tuple[str, ...]] = set()
    for piece in pieces:
        if piece.what == "seeds":
            ranges[piece.kind].append(piece.seeds)
        elif piece.kind:
            # Flips draw from a seed that only the command names; a model has its bounds.
            key = (piece.what, piece.kind, str(piece.figures.get("bounds")))
            key += (piece.command,) if piece.what == "flips" else ()
            if key in seen:
                raise PieceError(
                    f"{piece.what} of {piece.kind} would count twice; remove one piece"
                )
            seen.add(key)
    for kind, found in ranges.items():
        for before, after in itertools.pairwise(sorted(found)):
            if after.first < before.end:
                last = min(before.end, after.end) - 1
                raise PieceError(
                    f"seeds {after.first} to {last} of {kind} would count twice; remove one piece"
                )


def added(pieces: Iterable[Piece]) -> dict[str, Any]:
    """Add up the figures of pieces of one kind.

    Numbers add up, also within tables; lists are joined. Words, and the first seed, are left out.
    """
    total: dict[str, Any] = {}
    for piece in pieces:
        _add(total, {key: value for key, value in piece.figures.items() if key != "first"})
    return total


def _add(total: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _add(total.setdefault(key, {}), value)
        elif isinstance(value, int | float):
            total[key] = total.get(key, 0) + value
        elif isinstance(value, list):
            total[key] = [*total.get(key, []), *value]


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """The middle, the 99th and the worst, each one of the samples (nearest rank)."""
    ranked = sorted(samples)
    if not ranked:
        return {}
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: ranked[max(0, math.ceil(len(ranked) * q) - 1)] for name, q in at.items()}


# -- where a piece comes from ----------------------------------------------------------------------


def _git(*arguments: str) -> str:
    """What git says; nothing where there is no git, or no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def own_commit() -> str:
    """The commit of this tree; with `+dirty` if it has changes that no commit holds."""
    head = _git("rev-parse", "HEAD")
    if not head:
        return f"unknown{DIRTY}"
    changed = _git("status", "--porcelain", "--", ".", *_MADE_HERE)
    return head + (DIRTY if changed else "")


def default_folder() -> Path:
    """Where the pieces of this tree's commit are kept; git ignores it."""
    return ROOT / "evidence-runs" / own_commit()[:12]


_BEGAN = own_commit()


def _commit() -> str:
    """The commit that was there when this process began, if it is still the one that is there."""
    return _BEGAN if own_commit() == _BEGAN else _BEGAN.removesuffix(DIRTY) + DIRTY


_PLACES = ("/", "~", ".")


def _own_command() -> str:
    """How this process was started, without places of this machine."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec else Path(sys.argv[0]).name
    words: list[str] = []
    for word in sys.argv[1:]:
        option, _, value = word.rpartition("=")
        if not value.startswith(_PLACES):
            words.append(shlex.quote(word))
        elif not option and words and words[-1].startswith("--"):
            words.pop()
    return " ".join(["python -m", name, *words])
