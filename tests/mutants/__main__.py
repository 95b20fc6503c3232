"""Kills every mutant, and names the seed or test that kills it.

    python -m tests.mutants [NAME ...] [--search] [--count N] [--jobs 1|2] [--record FOLDER]

Without `--search` it first tries the recorded seed or test; with it, seeds from 1 on. Exit 1 if a
mutant survives.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.evidence.pieces import write_piece
from tests.mutants.judging import Judged, Search, judge_by_name, shortened
from tests.mutants.kept import Killer, read_killers, write_killers
from tests.mutants.mutant import DirectedTest, Seed
from tests.mutants.table import MUTANTS

SEEDS = 10
"""Of each hunt, in a search."""
LIMIT_S = 600.0
KEPT_SEEDS = 2
"""Of one mutant: when the product changes, some cease to kill."""


def judge_all(
    names: list[str], kept: list[list[Killer]], given: argparse.Namespace
) -> Iterator[Judged]:
    """Judge mutant after mutant, each in a process that no other one has broken."""
    wanted = Search(given.search, given.count, given.faults_s, given.limit_s)
    tasks = [(name, some, wanted) for name, some in zip(names, kept, strict=True)]
    context = get_context("forkserver")
    context.set_forkserver_preload([judge_by_name.__module__])
    with context.Pool(given.jobs, maxtasksperchild=1) as pool:
        for number, judged in enumerate(pool.imap(judge_by_name, tasks), start=1):
            print(f"{number} of {len(names)}: {judged.name}", file=sys.stderr, flush=True)
            yield judged


def keep(judged: Judged, kept: list[Killer]) -> list[Killer]:
    """Return what to keep of a mutant now: what killed it first, tests behind the seeds."""
    if not isinstance(judged.killer, Seed) or judged.killer in kept:
        return kept
    newest = shortened(MUTANTS[judged.name], judged.killer)
    seeds = [newest, *(killer for killer in kept if isinstance(killer, Seed))]
    tests = [killer for killer in kept if isinstance(killer, DirectedTest)]
    return [*seeds[:KEPT_SEEDS], *tests]


def figures(all_judged: list[Judged]) -> dict[str, Any]:
    """What a run found, as evidence."""
    dead = [judged for judged in all_judged if judged.killer is not None]
    return {
        "mutants": [
            {
                "name": judged.name,
                "promise": judged.promise,
                "killed_by": str(judged.killer),
                "says": judged.says[:200],
                "took_s": judged.took_s,
            }
            for judged in dead
        ],
        "survivors": [judged.name for judged in all_judged if judged.killer is None],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; default: all")
    parser.add_argument("--search", action="store_true", help="look for seeds, kept or not")
    parser.add_argument("--count", type=int, default=SEEDS, help="of seeds for each hunt")
    parser.add_argument("--faults-s", type=float, help="of each seed; default: as it draws")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="for one mutant")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1)
    parser.add_argument("--keep", action="store_true", help="write what kills to kept.json")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="write the evidence there")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in MUTANTS]
    if unknown:
        parser.error(f"no such mutant: {', '.join(unknown)}; there are: {', '.join(MUTANTS)}")
    began = time.monotonic()
    kept = read_killers()
    found: list[Judged] = []
    names = given.names or list(MUTANTS)
    for judged in judge_all(names, [kept.get(name, []) for name in names], given):
        found.append(judged)
        by = "SURVIVED" if judged.killer is None else str(judged.killer)
        print(f"{judged.name} [{judged.promise}]\n    {by}, {judged.took_s:.1f} s", flush=True)
        print(f"    {judged.says[:200]}", flush=True)
        if given.keep:
            kept[judged.name] = keep(judged, kept.get(judged.name, []))
            write_killers({name: kept[name] for name in MUTANTS if name in kept})
    survivors = [judged.name for judged in found if judged.killer is None]
    took_s = time.monotonic() - began
    print(f"{len(found)} mutants, {len(found) - len(survivors)} killed in {took_s:.0f} s")
    if survivors:
        print(f"survived: {', '.join(survivors)}")
    if given.record:
        print(write_piece(given.record, "mutants", figures(found), took_s))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
