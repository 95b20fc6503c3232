"""The full run: all that docs/safety.md tells of, recorded. It continues where it was stopped.

    python -m tests.evidence.full [--minutes M] [--jobs J] [--only seeds|rest] [--python PATH ...]

Rule: seeds run first, in chunks, each kind in turn, until the time is over. Then everything else
runs that has left no record yet. Each command runs in a process of its own, which writes what it
found before the next begins, so a stop loses one chunk at most. Nothing runs twice: a kind of seeds
continues behind its recorded ones. A tree with changes that no commit holds is refused, and so is a
folder with records of another commit.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.evidence.kinds import KINDS
from tests.evidence.pieces import DIRTY, ROOT, Piece, default_folder, own_commit, read_pieces
from tests.simulation import fault_kinds, quorum_seeds
from tests.simulation.many import BY_NUMBER

CHUNK = 400
"""Seeds of one command: some minutes."""


class Profile(NamedTuple):
    """A kind of seeds."""

    simulator: str
    kind: str
    """As the command is given it; empty: each number says its kind."""

    def counts(self, piece: Piece) -> bool:
        """Whether a piece is of this kind."""
        named = f"{self.simulator} {self.kind or BY_NUMBER}"
        return piece.what == "seeds" and piece.kind == named


def profiles() -> list[Profile]:
    """All kinds of seeds. A kind that a number can say runs by number only, so none runs twice."""
    more = [Profile("cluster", kind) for kind in fault_kinds.MORE_KINDS]
    more += [Profile("quorum", kind) for kind in quorum_seeds.MORE_KINDS]
    return [Profile("cluster", ""), Profile("quorum", ""), *more]


def next_chunk(among: Sequence[Profile], pieces: Iterable[Piece]) -> tuple[Profile, int]:
    """Return the profile with the fewest recorded seeds, and its next seed."""
    ranges = {one: [p.seeds for p in pieces if one.counts(p)] for one in among}
    profile = min(among, key=lambda one: sum(r.end - r.first for r in ranges[one]))
    return profile, max((found.end for found in ranges[profile]), default=1)


class Full:
    """The run, over a folder of pieces."""

    def __init__(self, folder: Path, jobs: int, pythons: Sequence[str] = ()) -> None:
        """`pythons`: others that have Logberg installed, for the replays."""
        self._folder = folder
        self._jobs = jobs
        self._pythons = pythons
        self.failed: list[str] = []

    def seeds(self, minutes: float) -> None:
        """Run chunks until the time is over."""
        until = time.monotonic() + 60 * minutes
        while (left := until - time.monotonic()) > 0:
            before = read_pieces(self._folder)
            profile, first = next_chunk(profiles(), before)
            self._run(
                "tests.simulation.many",
                *("--simulator", profile.simulator),
                *(("--kind", profile.kind) if profile.kind else ()),
                *("--first", str(first), "--count", str(CHUNK), "--jobs", str(self._jobs)),
                *("--minutes", f"{left / 60:.1f}"),
            )
            if len(read_pieces(self._folder)) == len(before):
                raise SystemExit("nothing was recorded; the full run stops here")

    def rest(self) -> None:
        """Run every command but the seeds', unless it has left its record."""
        for what, kind in KINDS.items():
            for run in kind.runs:
                if any(_made_by(run.module, piece) for piece in read_pieces(self._folder)):
                    say(f"{what}: {run.module} has left its record already")
                else:
                    more = [f"--python={python}" for python in self._pythons if what == "replays"]
                    self._run(run.module, *run.filled(self._jobs), *more)

    def _run(self, module: str, *arguments: str) -> None:
        said = " ".join(["python -m", module, *arguments])
        say(said)
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments, "--record", str(self._folder)],
            cwd=ROOT,
            check=False,
        )
        if done.returncode:
            say(f"exit {done.returncode}: {said}")
            self.failed.append(said)


def _made_by(module: str, piece: Piece) -> bool:
    return piece.command.split()[:3] == ["python", "-m", module]


def say(text: str) -> None:
    """Print a line at once."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def told(pieces: Sequence[Piece]) -> Iterator[str]:
    """Return what is recorded, as lines."""
    for what in KINDS:
        found = [piece for piece in pieces if piece.what == what]
        if what == "seeds":
            count = sum(piece.figures["count"] for piece in found)
            yield f"seeds: {count:,} in {len(found)} pieces"
        elif KINDS[what].runs:
            yield f"{what}: {len(found)} pieces" if found else f"{what}: not run"


def refusal(commit: str, pieces: Iterable[Piece]) -> str:
    """Why nothing may be recorded now; empty if it may."""
    if commit.endswith(DIRTY):
        return "the tree has changes that no commit holds: commit them first"
    others = sorted({piece.commit[:12] for piece in pieces if piece.commit != commit})
    if others:
        return f"the folder holds records of {', '.join(others)}: name another with --record"
    return ""


def main() -> int:
    """Run what is left."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.full")
    parser.add_argument("--minutes", type=float, default=60.0, help="for seeds")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", choices=("seeds", "rest"), help="one of the two halves")
    parser.add_argument(
        "--record", type=Path, default=default_folder(), help="the folder for the records"
    )
    parser.add_argument("--python", action="append", default=[], help="another one, for replays")
    given = parser.parse_args()
    given.record.mkdir(parents=True, exist_ok=True)
    if refused := refusal(own_commit(), read_pieces(given.record)):
        print(refused, file=sys.stderr)
        return 1
    full = Full(given.record.resolve(), given.jobs, given.python)
    if given.only != "rest":
        full.seeds(given.minutes)
    if given.only != "seeds":
        full.rest()
    print(*told(read_pieces(given.record)), sep="\n")
    for line in full.failed:
        print(f"FAILED {line}")
    return 1 if full.failed else 0


if __name__ == "__main__":
    sys.exit(main())
