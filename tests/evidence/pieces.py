"""A piece of evidence: one file that says which command ran, on which commit, and what it found.

Rule: figures are written by the run that measured them and only added up afterwards. Nobody types
one. A piece of a tree with changes that no commit holds says so (`+dirty`), and so does one whose
tree changed while it ran: it can't be repeated, so the page refuses it. Nothing counts twice: seeds
whose ranges overlap are refused, and so is a second run over the same points, flips or model.
"""

import itertools
import json
import math
import platform
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "evidence" / "runs"
DIRTY = "+dirty"

FIGURES: dict[str, frozenset[str]] = {
    "seeds": frozenset({"simulator", "kind", "first", "count", "violations"}),
    "crash points": frozenset({"role", "points", "violations"}),
    "power cuts": frozenset({"cuts", "acknowledged", "violations"}),
    "flips": frozenset({"file", "bytes", "flips", "silent"}),
    "kills": frozenset({"kills", "acknowledged", "missing", "samples_ms"}),
    "mutants": frozenset({"mutants", "survivors"}),
    "model": frozenset({"spec", "states", "invariants"}),
    "replays": frozenset({"seeds", "different"}),
}
"""What there is evidence of, and the figures that each piece of it must have."""

_KIND = {"seeds": ("simulator", "kind"), "crash points": ("role",), "flips": ("file",)}
_KIND |= {"model": ("spec",)}
_MADE_HERE = (":!tests/evidence/runs", ":!docs/safety.md")
"""What evidence itself changes; it doesn't make a tree another one."""


class PieceError(Exception):
    """A piece that can't be read or added up. Remedy: run its command again, or remove the file."""


class Piece(NamedTuple):
    """What one run found."""

    what: str
    command: str
    commit: str
    python: str
    date: str
    """The day, UTC."""
    took_s: float
    figures: dict[str, Any]

    @property
    def dirty(self) -> bool:
        """Made of code that no commit holds."""
        return self.commit.endswith(DIRTY)

    @property
    def kind(self) -> str:
        """Which of its like it is, as its file's name says."""
        words = (str(self.figures.get(key) or "by number") for key in _KIND.get(self.what, ()))
        return "-".join("".join(c if c.isalnum() else "-" for c in word) for word in words)


def write_piece(
    folder: Path, what: str, figures: dict[str, Any], took_s: float, command: str | None = None
) -> Path:
    """Write what a run found; return the file. Nothing that stands there is written over."""
    if what not in FIGURES:
        raise PieceError(f"evidence of {what!r}? There is: {', '.join(FIGURES)}")
    day = datetime.now(UTC).date().isoformat()
    python = platform.python_version()
    return save(
        folder,
        Piece(what, command or _own_command(), _commit(), python, day, round(took_s, 1), figures),
    )


def save(folder: Path, piece: Piece) -> Path:
    """Write a piece under a name that is free."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _readable(piece._asdict()) + "\n"
    named = [piece.what.replace(" ", "-"), piece.kind, piece.commit[:7].removesuffix(DIRTY)]
    named += [f"{piece.figures['first']}"] if "first" in piece.figures else []
    stem = "-".join(word for word in named if word)
    for number in range(1, 100_000):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        return path
    raise PieceError(f"{folder} is full of {stem}")


def read_piece(path: Path) -> Piece:
    """Read one file. Raises PieceError."""
    try:
        piece = Piece(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise PieceError(f"{path} is no piece of evidence: {error}") from None
    if piece.what not in FIGURES:
        raise PieceError(f"{path}: evidence of {piece.what!r}? There is: {', '.join(FIGURES)}")
    missing = FIGURES[piece.what] - set(piece.figures)
    if missing:
        raise PieceError(f"{path} has no figure of {', '.join(sorted(missing))}")
    return piece


def read_pieces(folder: Path = RUNS) -> list[Piece]:
    """Read a folder's pieces, in the order of their names. Raises PieceError."""
    pieces = [read_piece(path) for path in sorted(folder.glob("*.json"))]
    _refuse_twice(pieces)
    return pieces


def summed(pieces: Iterable[Piece], what: str) -> dict[str, Any]:
    """Add up the figures of one kind of evidence; empty where there is none.

    Numbers add up, also within tables; lists and strings are collected, each string once. What
    doesn't add up is made anew: percentiles from the samples, the depth as the deepest, a range of
    seeds as `ranges`. `took_s` and `pieces` are added.
    """
    found = [piece for piece in pieces if piece.what == what]
    if not found:
        return {}
    total: dict[str, Any] = {"pieces": len(found), "took_s": sum(p.took_s for p in found)}
    for piece in found:
        _add(total, {k: v for k, v in piece.figures.items() if k not in _NOT_ADDED})
    if "samples_ms" in total:
        total["next_commit_ms"] = percentiles(total["samples_ms"])
    if what == "model":
        total["depth"] = max((p.figures.get("depth", 0) for p in found), default=0)
    if what == "seeds":
        total["ranges"] = [seed_range(piece) for piece in found]
    return total


_NOT_ADDED = {"first", "next_commit_ms", "depth"}


def _add(total: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _add(total.setdefault(key, {}), value)
        elif isinstance(value, int | float):
            total[key] = total.get(key, 0) + value
        elif isinstance(value, list):
            total[key] = [*total.get(key, []), *value]
        else:
            total[key] = list(dict.fromkeys([*total.get(key, []), value]))


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """The middle, the 99th and the worst, each one of the samples (nearest rank)."""
    ranked = sorted(samples)
    if not ranked:
        return {}
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: ranked[max(0, math.ceil(len(ranked) * q) - 1)] for name, q in at.items()}


class SeedRange(NamedTuple):
    """Seeds that ran."""

    simulator: str
    kind: str
    first: int
    count: int

    @property
    def end(self) -> int:
        """The first seed behind it."""
        return self.first + self.count


def seed_range(piece: Piece) -> SeedRange:
    """Which seeds a piece is about."""
    figures = piece.figures
    return SeedRange(figures["simulator"], figures["kind"], figures["first"], figures["count"])


def _refuse_twice(pieces: Iterable[Piece]) -> None:
    by_kind: defaultdict[tuple[str, str], list[SeedRange]] = defaultdict(list)
    seen: dict[tuple[str, ...], Piece] = {}
    for piece in pieces:
        if piece.what == "seeds":
            found = seed_range(piece)
            by_kind[found.simulator, found.kind].append(found)
        elif piece.what in _SAME:
            key = (piece.what, *(str(getter(piece)) for getter in _SAME[piece.what]))
            if key in seen:
                raise PieceError(
                    f"{' '.join(key)} would count twice, of {seen[key].commit[:12]} and of "
                    f"{piece.commit[:12]}; remove one piece"
                )
            seen[key] = piece
    for ranges in by_kind.values():
        ranges.sort(key=lambda one: one.first)
        for before, after in itertools.pairwise(ranges):
            if after.first < before.end:
                raise PieceError(
                    f"seeds {after.first} to {min(before.end, after.end) - 1} of "
                    f"{after.simulator} {after.kind} would count twice; remove one piece"
                )


_SAME: dict[str, tuple[Callable[[Piece], Any], ...]] = {
    "crash points": (lambda piece: piece.figures["role"],),
    "flips": (lambda piece: piece.figures["file"], lambda piece: piece.command),
    "model": (lambda piece: piece.figures["spec"], lambda piece: piece.figures.get("bounds")),
}
"""By what a run is known that would only be the same again. Kills and power cuts never are."""


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
    """Which commit this tree is, and whether it is more than that."""
    head = _git("rev-parse", "HEAD")
    if not head:
        return f"unknown{DIRTY}"
    changed = _git("status", "--porcelain", "--", ".", *_MADE_HERE)
    return head + (DIRTY if changed else "")


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


def _readable(value: Any, indent: str = "") -> str:
    """JSON of which a change shows as few lines: tables by line, lists of numbers in one."""
    inner = indent + " "
    if isinstance(value, float):
        return json.dumps(round(value, 3))
    if isinstance(value, dict) and value:
        rows = (f"{inner}{json.dumps(k)}: {_readable(v, inner)}" for k, v in value.items())
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(one, dict | str) for one in value):
        rows = (inner + json.dumps(one) for one in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(value)
