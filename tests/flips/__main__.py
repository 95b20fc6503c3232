"""Harms every kind of file by the million: `python -m tests.flips --count 1000000 --seed 1`.

First it tries each bit of each byte of the small files, each length of each, and each file removed
or replaced by another. Then it draws harms of all kinds from the seed, on small and larger files,
until `--count` bit flips were tried. Exit 1 if a harm was `silent` or `unclean`.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.evidence.pieces import write_piece
from tests.flips import checkpoints, controllers, incoming, journals, ledgers, wire
from tests.flips.harm import Drawing, Harm, every_bit, every_file, every_length
from tests.flips.memory import Files
from tests.flips.verdicts import Tally, Verdict

PROGRESS_S = 10.0
_LARGER_EVERY = 4
"""Turns: larger files take several times as long."""


class Case(Protocol):
    """Files, which of them are harmed, and what a node makes of them."""

    file: str
    files: Files
    targets: list[str]
    others: Files

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Open them."""


class Kind(NamedTuple):
    """One kind of file: cases that are small enough for every bit, and larger ones."""

    share: int
    """Of the drawn flips."""
    small: tuple[Callable[[], Case], ...]
    larger: tuple[Callable[[], Case], ...] = ()


def _journal(*, stopped: bool, segment_bytes: int) -> Callable[[], Case]:
    return lambda: journals.scripted_journal(stopped=stopped, segment_bytes=segment_bytes)


_WHOLE = 1 << 20
KINDS: dict[str, Kind] = {
    "journal": Kind(
        35,
        tuple(
            _journal(stopped=stopped, segment_bytes=size)
            for stopped in (True, False)
            for size in (400, _WHOLE)
        ),
        (controllers.simulated_journal,),
    ),
    "vote": Kind(30, (journals.votes,)),
    "witness": Kind(3, (journals.synced_notes,)),
    "manifest": Kind(
        4, (journals.manifest, journals.manifest_with_its_copy, journals.copy_of_the_manifest)
    ),
    "ledger": Kind(
        8,
        (ledgers.written_ledger, ledgers.ledger_without_indexes),
        (controllers.simulated_ledger,),
    ),
    "snapshot": Kind(15, (checkpoints.written_checkpoints, checkpoints.checkpoints_in_columns)),
    "agent-image": Kind(3, (checkpoints.saved_image, checkpoints.saved_image_in_columns)),
    "incoming": Kind(1, (incoming.installing, incoming.fetching)),
    "in-flight": Kind(1, (incoming.in_flight,)),
    "link": Kind(1, (wire.link,)),
    "fetch": Kind(2, (wire.answer, wire.answer_without_digest)),
}


def run(names: Iterable[str], count: int, seed: int) -> list[Tally]:
    """Try everything once, and draw the rest; `count` flips in all. One tally a kind."""
    cases = {name: [make() for make in KINDS[name].small] for name in names}
    tallies = {name: Tally(found[0].file, _size(found)) for name, found in cases.items()}
    progress = _Progress(tallies, count)
    for name, found in cases.items():
        for case in found:
            for harm in systematic(case):
                _try(case, harm, tallies[name], thorough=True)
                progress.tell()
    rest = max(0, count - sum(tally.flips for tally in tallies.values()))
    shares = sum(KINDS[name].share for name in cases)
    for name, found in cases.items():
        goal = tallies[name].flips + rest * KINDS[name].share // shares + 1
        larger = [make() for make in KINDS[name].larger]
        tallies[name].size = _size([*found, *larger])
        for case, harm in _drawn(found, larger, seed) if rest else ():
            if tallies[name].flips >= goal:
                break
            _try(case, harm, tallies[name])
            progress.tell()
    progress.tell(last=True)
    return list(tallies.values())


def _drawn(small: list[Case], larger: list[Case], seed: int) -> Iterator[tuple[Case, Harm]]:
    """Harms without end: of each small case one after another, and of a larger one now and then."""
    drawing = {
        id(case): iter(Drawing(case.files, case.targets, case.others, seed))
        for case in (*small, *larger)
    }
    for turn in itertools.count():
        for case in small if turn % _LARGER_EVERY or not larger else larger:
            yield case, next(drawing[id(case)])


def systematic(case: Case, *, thinned: bool = False) -> Iterator[Harm]:
    """Everything that can be listed; `thinned`: one bit of each byte, and not each length."""
    return chain(
        every_bit(case.files, case.targets, thinned=thinned),
        every_length(case.files, case.targets, thinned=thinned),
        every_file(case.files, case.targets, case.others),
    )


def _try(case: Case, harm: Harm, tally: Tally, *, thorough: bool = False) -> None:
    verdict = case.judge(harm.files, thorough=thorough)
    tally.add(harm.way, harm.where, verdict)
    if not verdict.good and len(tally.findings) <= 20:
        print(f"{tally.file}: {harm.way} at {harm.where}: {verdict}", file=sys.stderr)


def _size(cases: Iterable[Case]) -> int:
    return sum(len(case.files[name]) for case in cases for name in case.targets)


class _Progress:
    def __init__(self, tallies: dict[str, Tally], count: int) -> None:
        self._tallies = tallies
        self._count = count
        self._began = self._told = time.monotonic()

    def tell(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self._told < PROGRESS_S:
            return
        self._told = now
        tallies = self._tallies.values()
        flips, bad = sum(t.flips for t in tallies), sum(t.bad for t in tallies)
        print(
            f"{now - self._began:6.0f} s: {flips} of {self._count} flips, "
            f"{sum(t.total for t in tallies) - flips} other harms, {bad} findings",
            file=sys.stderr,
            flush=True,
        )


def main() -> int:
    """Run, print the table, and write the evidence."""
    parser = argparse.ArgumentParser(prog="python -m tests.flips", description=__doc__)
    parser.add_argument("--file", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--count", type=int, default=100_000, help="bit flips to try at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, help="folder for the pieces of evidence")
    asked = parser.parse_args()
    began = time.monotonic()
    tallies = run(KINDS if asked.file == "all" else [asked.file], asked.count, asked.seed)
    took_s = time.monotonic() - began
    print(
        f"{'file':12} {'bytes':>8} {'flips':>8} {'others':>8} {'detected':>8} {'harmless':>8} bad"
    )
    for tally in tallies:
        kinds = tally.kinds
        print(
            f"{tally.file:12} {tally.size:8} {tally.flips:8} {tally.total - tally.flips:8} "
            f"{kinds['detected']:8} {kinds['harmless']:8} {tally.bad:3}"
        )
        for how, times in tally.how.most_common():
            print(f"{'':12} {times:8} {how}")
        if asked.record is not None:
            write_piece(asked.record, "flips", tally.figures(), took_s / len(tallies))
    flips, bad = sum(tally.flips for tally in tallies), sum(tally.bad for tally in tallies)
    print(f"{flips} bit flips, {bad} silent or unclean, {took_s:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
