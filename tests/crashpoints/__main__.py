"""Kills a controller at every change of its files, and judges the result.

    python -m tests.crashpoints [--role leader] [--every N] [--jobs N] [--record FOLDER]
    python -m tests.crashpoints --role leader --point 123:half

A point is a step of a scenario, and how much of that step's write reached the file. For a point
that fails it prints one line that runs the point again.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.crashpoints.points import Enumeration, Found
from tests.crashpoints.refusals import FullDisk, Refusals
from tests.crashpoints.scenarios import SCENARIOS
from tests.evidence.pieces import write_piece

AGAIN_EVERY = 97
"""Of whom the second kill is tried at every step of the start: each 97th step of a scenario."""
ROLES: dict[str, tuple[str, type[Enumeration], bool]] = {
    **{name: (name, Enumeration, False) for name in SCENARIOS},
    **{f"restarted {name}": (name, Enumeration, True) for name in SCENARIOS},
    **{f"{name} on a broken disk": (name, Refusals, False) for name in SCENARIOS},
    **{f"{name} on a full disk": (name, FullDisk, False) for name in SCENARIOS},
}
"""The scenario of a role, what happens at its points, and whether that happens a second time, while
the node starts again."""


def enumerate_role(
    role: str,
    every: int = 1,
    jobs: int = 2,
    point: str = "",
    *,
    only: str = "",
    until_one_fails: bool = False,
) -> Found:
    """Try the points of a role: every one, each `every`-th step's, or one."""
    scenario, kind, twice = ROLES[role]
    first_every = AGAIN_EVERY * every if twice else every

    def wanted(label: str) -> bool:
        if until_one_fails and enumeration.found.failed:
            return False
        if point:
            return point == label or point.startswith(f"{label}/")
        first, _, second = label.partition("/")
        number, _, share = first.partition(":")
        if second:
            return int(second.partition(":")[0]) % every == 0
        return int(number) % first_every == 0 and (not twice or share in ("before", "half"))

    enumeration = kind(scenario, wanted, jobs, twice=twice)
    shown = time.monotonic()

    told: set[str] = set()

    def show() -> None:
        nonlocal shown
        if enumeration.in_copy:
            return
        for label in enumeration.found.failed.keys() - told:
            told.add(label)
            tell_failure(role, label, enumeration.found.failed[label])
        if time.monotonic() - shown > 1:
            shown = time.monotonic()
            found = enumeration.found
            print(
                f"\r{role}: {found.points:,} points, {len(found.failed)} failed",
                end="",
                file=sys.stderr,
                flush=True,
            )

    enumeration.on_point, enumeration.only = show, only
    return enumeration.run()


def main() -> int:
    parser = argparse.ArgumentParser(description="Crash points on real files.")
    parser.add_argument("--role", choices=ROLES, help="one only")
    parser.add_argument("--every", type=int, default=1, help="each N-th step only")
    parser.add_argument("--jobs", type=int, default=2, help="so many points at a time")
    parser.add_argument("--point", default="", help="one only, as a failure names it")
    parser.add_argument("--only", default="", help="of files with this in their names")
    parser.add_argument("--files", action="store_true", help="count by file, too")
    parser.add_argument("--record", type=Path, help="write what was found into this folder")
    given = parser.parse_args()
    points = failed = 0
    for role in [given.role] if given.role else ROLES:
        began = time.monotonic()
        found = enumerate_role(role, given.every, given.jobs, given.point, only=given.only)
        took = time.monotonic() - began
        tell(role, found, took, given.files)
        points += found.points
        failed += len(found.failed)
        if given.record:
            write_piece(given.record, "crash points", figures(role, found), took)
    print(f"{points:,} crash points, {failed} failed")
    return 1 if failed or not points else 0


def figures(role: str, found: Found) -> dict[str, object]:
    """What is recorded of a role."""
    return {
        "role": role,
        "points": found.points,
        "by_step": dict(sorted(found.by_step.items())),
        "violations": len(found.failed),
        "failed": [rerun(role, point) for point in found.failed],
    }


def rerun(role: str, point: str) -> str:
    return f"python -m tests.crashpoints --role '{role}' --point {point}"


def tell(role: str, found: Found, took_s: float, files: bool) -> None:
    steps = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.by_step.items()))
    print(
        f"\r{role}: {found.points:,} points of {found.steps:,} steps, "
        f"{len(found.failed)} failed, {took_s:.0f} s; {steps}",
        flush=True,
    )
    if files:
        print(*(f"    {n:6,} {what}" for what, n in sorted(found.by_file.items())), sep="\n")


def tell_failure(role: str, point: str, failure: str) -> None:
    lines = failure.splitlines()
    said = next((line for line in lines if "SimulationFailedError: " in line), lines[-1])
    print(f"\nFAILED {lines[0]}: {said}\n  again: {rerun(role, point)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
