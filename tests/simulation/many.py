"""Runs many seeds in several processes, and records the results.

    python -m tests.simulation.many --simulator cluster --kind drawn --first 1 --count 1000 --jobs 2
        [--record FOLDER] [--minutes M]

Rule: no seed depends on another, so neither their number nor their order changes a run. The record
holds whole chunks from the first seed on, without a gap. When the time is over, it names the last
seed.
"""

import argparse
import gc
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.evidence.pieces import write_piece
from tests.simulation import fault_kinds, quorum_seeds, seeds

CHUNK = 20
"""Seeds of one task: a minute at most, so that progress is seen and little is lost at the end."""
TASKS_OF_A_PROCESS = 25
"""Then another takes its place, lest memory grow over hours."""
SIMULATORS: dict[str, Callable[[int, str], Any]] = {
    "cluster": lambda seed, kind: seeds.run_seed(seed, kind=kind),
    "quorum": lambda seed, kind: quorum_seeds.run_seed(seed, kind=kind or None),
}
KINDS = {
    "cluster": [*fault_kinds.KINDS, *fault_kinds.MORE_KINDS],
    "quorum": [*quorum_seeds.KINDS, *quorum_seeds.MORE_KINDS],
}
BY_NUMBER = "by number"
"""The kind that a seed's number says, when none is asked for."""


@dataclass
class Sum:
    """What several seeds came to."""

    count: int = 0
    simulated_s: float = 0.0
    events: int = 0
    failed: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    coverage: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, outcome: Any) -> None:
        """Take one seed in."""
        facts = Counter(outcome.facts)
        events = facts.pop("events", 0)
        failed = []
        if outcome.failure:
            failed = [f"{outcome.rerun}: {outcome.failure.partition(chr(10))[0]}"]
        of_one = (1, outcome.simulated_s, events, failed, facts, outcome.faults, outcome.coverage)
        self.merge(Sum(*of_one))

    def merge(self, other: "Sum") -> None:
        """Take another sum in."""
        self.count += other.count
        self.simulated_s += other.simulated_s
        self.events += other.events
        self.failed += other.failed
        self.checked += other.checked
        self.faults += other.faults
        for fault, operations in other.coverage.items():
            self.coverage.setdefault(fault, Counter()).update(operations)

    def figures(self, simulator: str, kind: str, first: int) -> dict[str, Any]:
        """Return the figures of a piece of evidence."""
        return {
            "simulator": simulator,
            "kind": kind,
            "first": first,
            "count": self.count,
            "violations": len(self.failed),
            "failed": self.failed,
            "simulated_s": round(self.simulated_s, 1),
            "events": self.events,
            "checked": dict(sorted(self.checked.items())),
            "faults": dict(sorted(self.faults.items())),
            "coverage": {
                fault: dict(sorted(operations.items()))
                for fault, operations in sorted(self.coverage.items())
            },
        }


def run_chunk(simulator: str, kind: str, first: int, count: int) -> Sum:
    """Run `count` seeds from `first`; an exception of the harness counts as a failure."""
    found = Sum()
    run = SIMULATORS[simulator]
    for seed in range(first, first + count):
        try:
            found.add(run(seed, kind))
        except Exception:  # noqa: BLE001 - whatever it is, the seed has not passed
            found.count += 1
            last = traceback.format_exc().strip().splitlines()[-1]
            found.failed.append(f"seed {seed} of {simulator} {kind}: the harness failed: {last}")
        # A world is full of cycles; left alone they pile up over thousands of seeds.
        gc.collect()
    return found


def run_many(
    simulator: str, kind: str, first: int, count: int, jobs: int, minutes: float | None
) -> Iterator[Sum]:
    """Yield the sums of the chunks, in the order of their seeds."""
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    starts = range(first, first + count, CHUNK)
    last = first + count
    work = partial(_chunk_of, simulator, kind, last)
    with get_context("fork").Pool(jobs, maxtasksperchild=TASKS_OF_A_PROCESS) as pool:
        for found in pool.imap(work, starts):
            yield found
            if deadline is not None and time.monotonic() > deadline:
                return


def _chunk_of(simulator: str, kind: str, last: int, start: int) -> Sum:
    return run_chunk(simulator, kind, start, min(CHUNK, last - start))


def main() -> int:
    parser = argparse.ArgumentParser(description="Run many seeds, over several processes.")
    parser.add_argument(
        "--simulator", choices=SIMULATORS, help="default: cluster, or the one that has the kind"
    )
    parser.add_argument("--kind", default="", help="default: the kind that each number says")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="begin no more after so long")
    parser.add_argument("--record", type=Path, help="folder for the piece of evidence")
    given = parser.parse_args()
    if given.simulator is None:
        given.simulator = next((name for name in KINDS if given.kind in KINDS[name]), "cluster")
    if given.kind and given.kind not in KINDS[given.simulator]:
        parser.error(f"--kind: one of {', '.join(KINDS[given.simulator])}")
    began = time.monotonic()
    total = Sum()
    chunks = run_many(
        given.simulator, given.kind, given.first, given.count, given.jobs, given.minutes
    )
    for found in chunks:
        total.merge(found)
        for line in found.failed:
            print(f"FAILED {line}", flush=True)
        print(f"\r{total.count:,} of {given.count:,} seeds", end="", file=sys.stderr, flush=True)
    took = time.monotonic() - began
    print(file=sys.stderr)
    print(
        f"{given.simulator} {given.kind or BY_NUMBER}: {total.count:,} seeds from {given.first}, "
        f"{len(total.failed)} failed, {took:.0f} s, {total.simulated_s / 3600:.1f} simulated hours"
    )
    if given.record is not None:
        figures = total.figures(given.simulator, given.kind or BY_NUMBER, given.first)
        print(write_piece(given.record, "seeds", figures, took))
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
