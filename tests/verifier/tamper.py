"""Tamper with ledgers and see each found: `python -m tests.verifier.tamper --count 10000 --seed 1`.

Rule: a trial fails unless the first thing that the verifier names is at the tampering's place, and
unless it finds nothing when it is not told what the tampering needs. The product's own verification
is asked of the same folders; where it is told the same it must find as much.
"""

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from audit.places.folder import LocalTree
from audit.places.replicas import Replica
from audit.places.tree_disk import TreeDisk
from audit.questions.compare import compare
from audit.questions.verification import verify_replica
from ledger.errors import LedgerError
from tests.verifier import (
    tampering_batches,
    tampering_bytes,
    tampering_checkpoints,
    tampering_ends,
)
from tests.verifier.small_world import Files, small, write
from tests.verifier.tampering import DIGEST, HEAD, NOTHING, REPLICAS, WHOLE, Kind, Tampered
from verifier.logberg_verify import Bad, Options, verify

WORLDS = 8
KINDS: list[Kind] = [
    *tampering_bytes.KINDS,
    *tampering_batches.KINDS,
    *tampering_ends.KINDS,
    *tampering_checkpoints.KINDS,
]


class Outcome(NamedTuple):
    """What came of a trial."""

    found: bool
    at_place: bool
    by_product: bool | None
    """None: not asked, as it can't be told what is needed."""
    said: str


class Bench:
    """Folders that are tampered with and mended again: one world, and two replicas of it."""

    def __init__(self, root: Path, seed: int) -> None:
        self.world = small(seed)
        self.folder, *self.replicas = (
            write(self.world.files, root / f"world-{seed}" / name)
            for name in ("it", "two", "three")
        )

    def tampered(self, files: Files) -> None:
        self._change(self.world.files, files)

    def mended(self, files: Files) -> None:
        self._change(files, self.world.files)

    def _change(self, old: Files, new: Files) -> None:
        for name in old.keys() - new.keys():
            (self.folder / name).unlink()
        write({name: new[name] for name in new if new[name] != old.get(name)}, self.folder)


def trial(bench: Bench, kind: Kind, dice: random.Random) -> Outcome:
    """Tamper once, look, and mend."""
    tampered = kind.way(bench.world, dice)
    assert tampered.files != bench.world.files
    bench.tampered(tampered.files)
    try:
        folders, options = _asked(bench, kind, tampered)
        findings = verify(folders, options).findings
        if kind.needs != NOTHING:
            ignorant = verify([bench.folder], Options()).findings
            assert not ignorant, f"{kind.name}: found without {kind.needs}: {ignorant[0]}"
        return Outcome(
            bool(findings),
            bool(findings) and _is_at(findings[0], bench.folder, tampered),
            _product(bench, kind, tampered),
            str(findings[0]) if findings else "nothing was found",
        )
    finally:
        bench.mended(tampered.files)


def _asked(bench: Bench, kind: Kind, tampered: Tampered) -> tuple[list[Path], Options]:
    world = bench.world
    folders = [bench.folder, *(bench.replicas if kind.needs == REPLICAS else [])]
    if kind.needs == HEAD:
        return folders, Options(heads=tuple(map(world.head, tampered.heads)))
    if kind.needs == DIGEST:
        footer = world.files[tampered.file][-1]
        return folders, Options(digests=((int(tampered.file[12:32]), footer[24:56]),))
    return folders, Options(whole=kind.needs == WHOLE)


def _is_at(bad: Bad, folder: Path, tampered: Tampered) -> bool:
    if tampered.heads:
        sure, offset = tampered.heads
        return (bad.kind, bad.offset, bad.file) == ("head", offset, str(folder)) and (
            bad.what == "the ledger ends before it" or bad.what.endswith(f"behind offset {sure}")
        )
    return any(
        bad.file == str(folder / file) and start <= bad.byte < stop
        for file, start, stop in tampered.spans()
    )


def _product(bench: Bench, kind: Kind, tampered: Tampered) -> bool | None:
    """Ask `logberg audit verify` and `compare`; they replay, so they need no digests."""
    if not kind.product:
        return None
    known = dict(map(bench.world.head, tampered.heads))
    folders = [bench.folder, *(bench.replicas if kind.needs == REPLICAS else [])]
    replicas = [Replica(one.name, str(one), TreeDisk(LocalTree(one))) for one in folders]
    try:
        verified = {one.name: verify_replica(one, known=known) for one in replicas}
        if not all(one.ok for one in verified.values()):
            return True
        reports = {name: one.report for name, one in verified.items() if one.report is not None}
        return bool(compare(replicas, reports).divergences)
    except LedgerError:
        return True


def run(root: Path, count: int, seed: int, worlds: int = WORLDS) -> dict[Kind, Counter[str]]:
    """Try every kind in turn, `count` times in all. Returns, by kind, how often what came."""
    dice = random.Random(seed)
    benches = [Bench(root, number) for number in range(worlds)]
    table = {kind: Counter[str]() for kind in KINDS}
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        outcome = trial(dice.choice(benches), kind, dice)
        table[kind].update(
            tried=1,
            found=outcome.found,
            at_place=outcome.at_place,
            asked_product=outcome.by_product is not None,
            by_product=bool(outcome.by_product),
        )
        if not outcome.at_place or outcome.by_product is False:
            print(f"trial {number}: {kind.name}: {outcome}", file=sys.stderr)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    with TemporaryDirectory() as root:
        table = run(Path(root), asked.count, asked.seed)
    columns = ("tried", "found", "at_place", "by_product", "asked_product")
    print(f"{'kind':58} {'needs':20} " + " ".join(f"{name:>13}" for name in columns))
    for kind, counts in table.items():
        figures = " ".join(f"{counts[name]:13}" for name in columns)
        print(f"{kind.name:58} {kind.needs:20} {figures}")
    total = sum(table.values(), Counter[str]())
    print(f"{'all':58} {'':20} " + " ".join(f"{total[name]:13}" for name in columns))
    print(f"{time.monotonic() - began:.0f} s")
    right = total["tried"] == total["at_place"] and total["by_product"] == total["asked_product"]
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
