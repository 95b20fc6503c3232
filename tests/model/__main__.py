"""Explores the model: `python -m tests.model [--record FOLDER] [--quick] [--only NAME …]`.

Rule: it fails unless every configuration is explored to its end with all invariants true, and every
mutant and stretched configuration breaks the invariant that it is known for. Results are recorded
at once, so an early end loses nothing.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.evidence.pieces import write_piece
from tests.model.checker import CheckerError, NoCheckerError, Outcome, check, find_checker
from tests.model.explorations import (
    CONFIGURATIONS,
    MUTANTS,
    STRETCHED,
    Mutant,
    bounded,
    bounds_of,
    bounds_text,
    configuration,
    invariants_of,
    module_of,
    mutated,
    specification_of,
    stretched,
)

_MOST_S = 3600.0
_QUICK = {"terms": 2, "entries": 1}
_QUICK_NAMES = {"power", "replays", "reads", "jump", "five", "leases"}


def main() -> int:
    """Explore; print a table; return the exit code."""
    asked = _ask()
    try:
        command = find_checker()
    except NoCheckerError as error:
        print(f"model: {error}", file=sys.stderr)
        return 1
    chosen = set(asked.only or (_QUICK_NAMES if asked.quick else CONFIGURATIONS))
    names = [name for name in CONFIGURATIONS if name in chosen]
    bad = []
    print(f"{'configuration':14} {'bounds':55} {'states':>10} {'distinct':>9} depth    s")
    explored = refused = 0
    for name in names:
        text = _text(name, quick=asked.quick)
        try:
            outcome = check(
                command, module_of(name), text, workers=asked.workers, most_s=asked.most_s
            )
        except CheckerError as error:
            print(f"{name:14} {error}")
            bad.append(name)
            continue
        explored += 1
        print(
            f"{name:14} {bounds_text(name, text):55} {outcome.states:10,} {outcome.distinct:9,} "
            f"{outcome.depth:5} {outcome.took_s:4.0f}",
            flush=True,
        )
        if outcome.violated:
            bad.append(name)
            print(f"  {outcome.violated} is violated:\n    " + "\n    ".join(outcome.trace))
        mutants = [m for m in MUTANTS if m.configuration == name]
        found = _refuse(command, mutants, asked, bad)
        _refuse_stretched(command, name, asked, bad)
        refused += len(found)
        if asked.record is not None:
            print(
                write_piece(
                    asked.record,
                    "model",
                    figures(name, text, outcome, mutants, found),
                    outcome.took_s,
                )
            )
    print(f"{explored} configurations, {refused} mutants refused, {len(bad)} bad")
    return 1 if bad else 0


def _ask() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="write the figures there")
    parser.add_argument("--quick", action="store_true", help="smaller bounds, fewer configurations")
    parser.add_argument("--only", nargs="*", choices=CONFIGURATIONS, metavar="NAME")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--most-s", type=float, default=_MOST_S, help="for each exploration")
    return parser.parse_args()


def _text(name: str, *, quick: bool) -> str:
    text = configuration(name)
    if not quick or specification_of(name) != "Guard" or bounds_of(text).nodes != 3:
        return text
    return bounded(text, **_QUICK)


def _refuse(
    command: list[str], mutants: list[Mutant], asked: argparse.Namespace, bad: list[str]
) -> list[tuple[Mutant, Outcome]]:
    refused = []
    for mutant in mutants:
        text = mutated(mutant)
        try:
            outcome = check(
                command,
                module_of(mutant.configuration),
                text,
                workers=asked.workers,
                most_s=asked.most_s,
            )
        except CheckerError as error:
            print(f"    without {mutant.rule}: {error}")
            bad.append(mutant.rule)
            continue
        print(
            f"    without {mutant.rule}: {outcome.violated or 'NOTHING'} is violated in "
            f"{len(outcome.trace)} steps, {outcome.states:,} states, {outcome.took_s:.0f} s"
        )
        print(f"        {' '.join(outcome.trace)}", flush=True)
        if outcome.violated:
            refused.append((mutant, outcome))
        else:
            bad.append(mutant.rule)
    return refused


def _refuse_stretched(
    command: list[str], name: str, asked: argparse.Namespace, bad: list[str]
) -> None:
    for beyond in STRETCHED:
        if beyond.configuration != name:
            continue
        what = f"{beyond.constant} {beyond.beyond}"
        try:
            outcome = check(
                command,
                module_of(name),
                stretched(beyond),
                workers=asked.workers,
                most_s=asked.most_s,
            )
        except CheckerError as error:
            print(f"    {what}: {error}")
            bad.append(what)
            continue
        print(f"    {what}: {outcome.violated or 'NOTHING'} is violated", flush=True)
        if not outcome.violated:
            bad.append(what)


def figures(
    name: str,
    text: str,
    outcome: Outcome,
    mutants: list[Mutant],
    refused: list[tuple[Mutant, Outcome]],
) -> dict[str, object]:
    """What is recorded of a configuration, and of the mutants that were tried in it."""
    rejected = [mutant.rule for mutant, _ in refused]
    return {
        "spec": f"{specification_of(name)}: {name}",
        "bounds": bounds_text(name, text),
        "states": outcome.states,
        "distinct": outcome.distinct,
        "depth": outcome.depth,
        "invariants": invariants_of(text),
        "violated": [outcome.violated] if outcome.violated else [],
        "mutants_rejected": [
            {"name": mutant.rule, "invariant": result.violated, "trace": result.trace}
            for mutant, result in refused
        ],
        "mutants_not_rejected": [m.rule for m in mutants if m.rule not in rejected],
    }


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    raise SystemExit(code)
