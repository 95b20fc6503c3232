"""Runs the same seeds under other hash seeds and other Pythons: each must be the same run.

    python -m tests.simulation.replays --seeds 20 [--python PATH ...] [--record FOLDER]

Rule: it compares a digest of all events, not the verdict. If two runs of a seed differ, something
in them does not depend on the seed alone.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.evidence.pieces import write_piece

HASH_SEEDS = ("0", "1", "4242")
ROOT = Path(__file__).parents[2]
_CODE = """
import sys
from tests.simulation import quorum_seeds, seeds
first, count = int(sys.argv[1]), int(sys.argv[2])
for seed in range(first, first + count):
    for kind in ("", "drawn", "damage", "hunt"):
        for name, run in (("cluster", seeds.run_seed), ("quorum", quorum_seeds.run_seed)):
            found = run(seed, kind=kind or None)
            head = found.failure.partition(chr(10))[0]
            print(f"{name} {kind or 'by number'} {seed}: {found.digest} {head}", flush=True)
"""


class Way(NamedTuple):
    """Which Python runs, and how it hashes."""

    python: str
    hash_seed: str


def runs_of(way: Way, first: int, count: int) -> list[str]:
    """Return one line a run: what it was and its digest."""
    environment = {**os.environ, "PYTHONHASHSEED": way.hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [way.python, "-c", _CODE, str(first), str(count)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{way.python} could not run the seeds:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()


def version_of(python: str) -> str:
    """Return the version that a Python says, as `3.12.1`."""
    code = "import platform; print(platform.python_version())"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare runs between Pythons and hash seeds.")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--python", action="append", default=[], help="another Python that has Logberg installed"
    )
    parser.add_argument("--record", type=Path, help="folder for the piece of evidence")
    given = parser.parse_args()
    began = time.monotonic()
    pythons = [sys.executable, *given.python]
    ways = [Way(pythons[0], hash_seed) for hash_seed in HASH_SEEDS]
    ways += [Way(python, str(n + 7)) for n, python in enumerate(pythons[1:])]
    expected: list[str] = []
    differing: list[str] = []
    for way in ways:
        found = runs_of(way, given.first, given.seeds)
        expected = expected or found
        others = [
            f"{line} instead of {want}"
            for line, want in zip(found, expected, strict=True)
            if line != want
        ]
        differing += others
        print(
            f"Python {version_of(way.python)}, PYTHONHASHSEED={way.hash_seed}: "
            f"{len(found)} runs, {len(others)} differ",
            flush=True,
        )
        for line in others[:5]:
            print(f"  {line}", flush=True)
    if given.record is not None:
        figures = {
            "seeds": len(expected),
            "pythons": [version_of(python) for python in pythons],
            "hash_seeds": [way.hash_seed for way in ways],
            "different": len(differing),
        }
        print(write_piece(given.record, "replays", figures, time.monotonic() - began))
    return 1 if differing or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
