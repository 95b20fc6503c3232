"""The full run: all that docs/safety.md tells of, recorded, going on where it was stopped.

    python -m tests.evidence.full [--minutes M] [--jobs J] [--only seeds|rest] [--python PATH ...]

Rule: seeds first, in chunks, each kind in turn, until the time is over; then everything else that
is not recorded yet. Nothing is run twice: a kind of seeds goes on behind what is recorded of it.
Each command runs in a process of its own, and what it finds is written before the next begins, so
that a stop loses one chunk at most. A tree with changes that no commit holds is refused.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.evidence.commands import COMMANDS
from tests.evidence.merge import merge
from tests.evidence.pieces import DIRTY, ROOT, RUNS, Piece, own_commit, read_pieces, seed_range
from tests.simulation import quorum_seeds, seeds
from tests.simulation.many import BY_NUMBER

CHUNK = 400
"""Seeds of one command: some minutes."""


class Profile(NamedTuple):
    """A kind of seeds."""

    simulator: str
    kind: str
    """As the command is told; empty: the one that each number says."""

    def counts(self, piece: Piece) -> bool:
        """Whether a piece is of this kind."""
        if piece.what != "seeds":
            return False
        found = seed_range(piece)
        return found.simulator == self.simulator and found.kind == (self.kind or BY_NUMBER)


def profiles() -> list[Profile]:
    """All kinds of seeds; those that a number can say run by number only, lest they run twice."""
    more = [Profile("cluster", kind) for kind in seeds.MORE_KINDS]
    more += [Profile("quorum", kind) for kind in quorum_seeds.MORE_KINDS]
    return [Profile("cluster", ""), Profile("quorum", ""), *more]


def next_chunk(among: Sequence[Profile], pieces: Iterable[Piece]) -> tuple[Profile, int]:
    """Return whose turn it is, the one with the fewest seeds, and its next seed."""
    found = list(pieces)

    def seeds_of(profile: Profile) -> int:
        return sum(piece.figures["count"] for piece in found if profile.counts(piece))

    profile = min(among, key=seeds_of)
    ends = [seed_range(piece).end for piece in found if profile.counts(piece)]
    return profile, max(ends, default=1)


class Full:
    """The run, over a folder of pieces."""

    def __init__(self, runs: Path, jobs: int, pythons: Sequence[str] = ()) -> None:
        """`pythons`: others that have Logberg installed, for the replays."""
        self._runs = runs
        self._jobs = jobs
        self._pythons = pythons
        self.failed: list[str] = []

    def seeds(self, minutes: float) -> None:
        """Run chunks until the time is over."""
        until = time.monotonic() + 60 * minutes
        among = profiles()
        while (left := until - time.monotonic()) > 0:
            profile, first = next_chunk(among, read_pieces(self._runs))
            before = len(list(self._runs.glob("*.json")))
            self._run(
                "tests.simulation.many",
                *("--simulator", profile.simulator, "--kind", profile.kind),
                *("--first", str(first), "--count", str(CHUNK), "--jobs", str(self._jobs)),
                *("--minutes", f"{left / 60:.1f}"),
            )
            if len(list(self._runs.glob("*.json"))) == before:
                raise SystemExit("nothing was recorded; the full run stops here")
            merge(self._runs)

    def rest(self) -> None:
        """Run what else there is, unless it is recorded."""
        for what, command in COMMANDS.items():
            for run in command.runs if what != "seeds" else ():
                if any(_made_by(run.module, piece) for piece in read_pieces(self._runs)):
                    say(f"{what}: {run.module} has left its record already")
                elif not there(run.module):
                    say(f"{what}: LEFT OUT, there is no {run.module}")
                else:
                    more = [f"--python={python}" for python in self._pythons if what == "replays"]
                    self._run(run.module, *run.filled(self._jobs), *more)

    def _run(self, module: str, *arguments: str) -> None:
        words = [part for part in arguments if part]
        if "--kind" in arguments and "" in arguments:
            words.remove("--kind")
        said = " ".join(["python -m", module, *words])
        say(said)
        done = subprocess.run(
            [sys.executable, "-m", module, *words, "--record", str(self._runs)],
            cwd=ROOT,
            check=False,
        )
        if done.returncode:
            say(f"exit {done.returncode}: {said}")
            self.failed.append(said)


def _made_by(module: str, piece: Piece) -> bool:
    return piece.command.split()[:3] == ["python", "-m", module]


def there(module: str) -> bool:
    """Whether a module can be run."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def say(text: str) -> None:
    """A line for whoever waits."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def told(pieces: Sequence[Piece]) -> Iterator[str]:
    """What is recorded, a line each."""
    for what in COMMANDS:
        found = [piece for piece in pieces if piece.what == what]
        if what == "seeds":
            count = sum(piece.figures["count"] for piece in found)
            yield f"seeds: {count:,} in {len(found)} pieces"
        else:
            yield f"{what}: {len(found)} pieces" if found else f"{what}: not run yet"


def main() -> int:
    """Run what is left."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.full")
    parser.add_argument("--minutes", type=float, default=60.0, help="for seeds")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", choices=("seeds", "rest"), help="one of the two halves")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where pieces are kept")
    parser.add_argument("--python", action="append", default=[], help="another one, for replays")
    parser.add_argument("--allow-dirty", action="store_true", help="pieces that don't count")
    given = parser.parse_args()
    if own_commit().endswith(DIRTY) and not given.allow_dirty:
        print("the tree has changes that no commit holds: commit them first", file=sys.stderr)
        return 1
    given.runs.mkdir(parents=True, exist_ok=True)
    full = Full(given.runs.resolve(), given.jobs, given.python)
    if given.only != "rest":
        full.seeds(given.minutes)
    if given.only != "seeds":
        full.rest()
    print(*told(read_pieces(given.runs)), sep="\n")
    for line in full.failed:
        print(f"FAILED {line}")
    return 1 if full.failed else 0


if __name__ == "__main__":
    sys.exit(main())
