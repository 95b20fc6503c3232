"""Fold the pieces of a full run into `recorded.csv`, and make docs/safety.md's figures of it.

    python -m tests.evidence.summarise [FOLDER] [--dry-run]

FOLDER is where `full` wrote its pieces; by default it is the folder of this commit.

Rule: every row is of one commit. Pieces of different commits are refused, and so are pieces of a
tree with changes that no commit holds. A kind without a piece has no row, so the page says that it
was not run. Whatever failed stands in the table, in the words of the run.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.docs.generate import SAFETY, safety
from tests.evidence.kinds import KINDS, Kind
from tests.evidence.pieces import (
    DIRTY,
    Piece,
    PieceError,
    added,
    default_folder,
    percentiles,
    read_pieces,
)
from tests.evidence.recorded import RECORDED, Row, write_rows
from tests.mutants.table import MUTANTS
from tests.simulation.coverage import CLUSTER_OPERATIONS, every_fault, holes, pairs

ANSWERS = ("acknowledged", "refused", "reads")
"""Of what the seeds count: answers to clients, each of which judges hold against the log."""
FAILED_KEPT = 10


def rows_of(pieces: Sequence[Piece]) -> list[Row]:
    """Fold pieces into rows. Raises PieceError."""
    _refuse(pieces)
    alike: defaultdict[tuple[str, str, str], list[Piece]] = defaultdict(list)
    for piece in pieces:
        alike[piece.what, piece.kind, piece.python].append(piece)
    order = list(KINDS)
    rows: list[Row] = []
    for (what, *_), found in sorted(alike.items(), key=lambda one: (order.index(one[0][0]), one)):
        groups = _following(found) if what == "seeds" else [found]
        rows += [_row(KINDS[what], group) for group in groups]
    rows += _coverage_row([piece for piece in pieces if piece.what == "seeds"])
    return rows


def _refuse(pieces: Sequence[Piece]) -> None:
    if not pieces:
        raise PieceError("there is no piece of evidence; make some: make evidence")
    for piece in pieces:
        if piece.commit.endswith(DIRTY):
            raise PieceError(
                f"{piece.what}, {piece.date}: made from a tree with changes that no commit holds; "
                "commit them and run it again, or remove the piece"
            )
    commits = sorted({piece.commit for piece in pieces})
    if len(commits) > 1:
        raise PieceError(
            f"pieces of {len(commits)} commits: {', '.join(commit[:12] for commit in commits)}; "
            "keep those of one"
        )


def _following(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Group pieces of seeds by ranges without a hole, so that one command repeats each group."""
    group: list[Piece] = []
    for piece in sorted(pieces, key=lambda one: one.seeds):
        if group and piece.seeds.first != group[-1].seeds.end:
            yield group
            group = []
        group.append(piece)
    yield group


def _row(kind: Kind, pieces: Sequence[Piece]) -> Row:
    first, total = pieces[0], added(pieces)
    if first.what == "seeds":
        checked = total.get("checked", {})
        total["answers"] = sum(checked.get(name, 0) for name in ANSWERS)
    figures = {name: _amount(total[name]) for name in kind.shown if name in total}
    for name, prefix in kind.samples.items():
        at = percentiles(total.get(name, []))
        figures |= {f"{prefix}{q}_ms".replace(" ", "_"): value for q, value in at.items()}
    if first.what == "mutants":
        figures |= _by_promise(total["mutants"])
    return Row(
        first.what,
        first.kind,
        int(_amount(total.get(kind.counted, 0))),
        int(sum(_amount(total.get(name, 0)) for name in kind.wrong)),
        figures,
        _failures(kind, total),
        sum(piece.took_s for piece in pieces),
        max(piece.date for piece in pieces),
        " ".join(sorted({first.python, *total.get("pythons", [])})),
        first.commit[:12],
        _command(pieces),
    )


def _amount(value: Any) -> float:
    """A number; of a list its length, of a table its sum."""
    if isinstance(value, list):
        return len(dict.fromkeys(map(str, value)))
    if isinstance(value, dict):
        return float(sum(value.values()))
    return float(value)


def _by_promise(mutants: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How many mutants break each promise, as their table says. `I13` names an invariant."""
    counts: defaultdict[int, int] = defaultdict(int)
    for mutant in mutants:
        known = MUTANTS.get(mutant["name"])
        for word in (known.promise if known else str(mutant["promise"])).split(", "):
            if word.isdecimal():
                counts[int(word)] += 1
    return {f"promise_{number}": count for number, count in sorted(counts.items())}


def _failures(kind: Kind, total: dict[str, Any]) -> str:
    lines = [str(line) for line in total.get("failed", [])]
    for name in kind.wrong:
        value = total.get(name, 0)
        if isinstance(value, list):
            lines += [f"{name}: {one}" for one in value]
        elif value:
            lines.append(f"{name}: {value:,}")
    return _first(lines)


def _first(lines: Sequence[str]) -> str:
    """The first of them and how many more there are, on one line, as a row of the table is one."""
    more = [f"and {len(lines) - FAILED_KEPT:,} more"] if len(lines) > FAILED_KEPT else []
    return "; ".join(" ".join(line.split()) for line in [*lines[:FAILED_KEPT], *more])


def _command(pieces: Sequence[Piece]) -> str:
    """What repeats all of it: seeds in one go, others one after another."""
    if pieces[0].what != "seeds":
        return "; ".join(dict.fromkeys(piece.command for piece in pieces))
    count = pieces[-1].seeds.end - pieces[0].seeds.first
    command = re.sub(r" --(?:first|count|minutes|jobs) \S+", "", pieces[0].command)
    return f"{command} --first {pieces[0].seeds.first} --count {count}"


def _coverage_row(seeds: Sequence[Piece]) -> list[Row]:
    """The row of fault by operation, over the seeds of both simulators."""
    if not seeds:
        return []
    coverage = every_fault(added(seeds).get("coverage", {}))
    empty = [f"{fault} never met {op}" for fault, op in holes(coverage, CLUSTER_OPERATIONS)]
    filled = sum(bool(count) for met in coverage.values() for count in met.values())
    expected = len(pairs(coverage, CLUSTER_OPERATIONS))
    row = _row(KINDS["seeds"], seeds)
    return [
        row._replace(
            what="coverage",
            kind="",
            count=filled,
            wrong=len(empty),
            figures={"faults": len(coverage), "expected": expected},
            failed=_first(empty),
            seconds=0,
            command=KINDS["coverage"].again,
        )
    ]


def main() -> int:
    """Fold a folder's pieces."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.summarise")
    parser.add_argument("folder", type=Path, nargs="?", default=default_folder())
    parser.add_argument("--dry-run", action="store_true", help="say what the rows are, no more")
    given = parser.parse_args()
    try:
        rows = rows_of(read_pieces(given.folder))
    except PieceError as error:
        print(error, file=sys.stderr)
        return 1
    for row in rows:
        print(f"{row.what:12} {row.kind:32} {row.count:>12,}  wrong {row.wrong}")
    if not given.dry_run:
        write_rows(rows)
        SAFETY.write_text(safety(SAFETY.read_text()))
        print(f"written: {RECORDED.name} and {SAFETY.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
