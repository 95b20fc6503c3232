"""`python -m tests.voter_runs`: change the voters of real clusters under load and kills, and judge.

Exit 1 if anything that was acknowledged is missing, doubled or elsewhere, if logs differ, or if
writes paused for longer than `--pause`.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.evidence.pieces import percentiles, write_piece
from tests.voter_runs.running import RunResult, VoterRun


def in_words(result: RunResult) -> str:
    """Return one run as a line for people."""
    leaders = sum(change.victim_led for change in result.changes)
    during = sum(change.under_way for change in result.changes)
    refused = sum((change.refused for change in result.changes), Counter[str]())
    said = ", ".join(f"{code} {count}" for code, count in sorted(refused.items())) or "none"
    problems = len(result.verdict.problems)
    return (
        f"seed {result.seed}: {result.took_s:.0f} s, {len(result.changes)} changes, {during} kills "
        f"during one, {leaders} of a leader, {result.epochs} epochs; refused: {said}; "
        f"{result.acknowledged:,} acknowledged, {problems} problems; "
        f"longest pause {1000 * result.pause_s:.0f} ms"
    )


def figures(results: Sequence[RunResult]) -> dict[str, Any]:
    """What all runs measured together."""
    changes = [change for result in results for change in result.changes]
    refused = sum((change.refused for change in changes), Counter[str]())
    verdicts = [result.verdict for result in results]
    return {
        "runs": len(results),
        "changes": len(changes),
        "kills_during": sum(change.under_way for change in changes),
        "epochs": sum(result.epochs for result in results),
        "leaders_killed": sum(change.victim_led for change in changes),
        "refused": dict(sorted(refused.items())),
        "acknowledged": sum(result.acknowledged for result in results),
        "missing": sum(len(verdict.missing) for verdict in verdicts),
        "doubled": sum(len(verdict.doubled) for verdict in verdicts),
        "misplaced": sum(len(verdict.misplaced) for verdict in verdicts),
        "unsound": [line for verdict in verdicts for line in verdict.unsound],
        "fenced": sum(verdict.fenced for verdict in verdicts),
        "longest_pause_ms": percentiles([1000 * result.pause_s for result in results]),
        "samples_ms": [round(1000 * result.pause_s, 1) for result in results],
        "pause_of_change_ms": {
            kind: percentiles([1000 * change.pause_s for change in of_kind])
            for kind, of_kind in (
                ("leader killed", [change for change in changes if change.victim_led]),
                ("other killed", [change for change in changes if not change.victim_led]),
            )
            if of_kind
        },
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.voter_runs", description="Change voters of real clusters under load."
    )
    parser.add_argument("--count", type=int, default=20, help="runs (20)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first run (1)")
    parser.add_argument("--pause", type=float, default=1.0, help="longest pause allowed, s (1)")
    parser.add_argument("--folder", type=Path, help="for the clusters (a temporary one)")
    parser.add_argument("--record", type=Path, help="write a piece of evidence there")
    return parser


def main() -> int:
    asked = arguments().parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="logberg-voters-"))
    results: list[RunResult] = []
    began = time.monotonic()
    for seed in range(asked.first, asked.first + asked.count):
        into = folder / f"run-{seed}"
        try:
            result = asyncio.run(VoterRun(into, seed).run())
        except BaseException:
            print(f"seed {seed} failed; what is left is in {into}", file=sys.stderr)
            raise
        results.append(result)
        print(in_words(result), flush=True)
        for problem in result.verdict.problems[:20]:
            print(f"  {problem}")
        if result.verdict.problems:
            print(f"  the cluster's folder: {into}")
        else:
            shutil.rmtree(into)
    found = figures(results)
    took_s = time.monotonic() - began
    pauses = found["longest_pause_ms"]
    print(
        f"{len(results)} runs in {took_s:.0f} s: {found['changes']} changes of "
        f"the voters, {found['kills_during']} kills while one was under way, "
        f"{found['leaders_killed']} of a leader; refused and asked again: {found['refused']}\n"
        f"acknowledged {found['acknowledged']:,}: missing {found['missing']}, doubled "
        f"{found['doubled']}, misplaced {found['misplaced']}, unsound {len(found['unsound'])}, "
        f"brokers fenced {found['fenced']}\n"
        f"longest pause of a run: {pauses}\nlongest pause at a change: "
        f"{found['pause_of_change_ms']}"
    )
    if asked.record is not None:
        print(write_piece(asked.record, "voter runs", found, took_s))
    sound = not any(result.verdict.problems for result in results)
    return 0 if sound and pauses["max"] <= 1000 * asked.pause else 1


if __name__ == "__main__":
    sys.exit(main())
