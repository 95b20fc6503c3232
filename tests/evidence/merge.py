"""Fold pieces of one kind and one commit into one, so that runs stay a few files.

    python -m tests.evidence.merge FOLDER

Rule: what the pieces add up to is the same before and after. Seeds are folded where ranges follow
each other without a hole, since a piece says where it begins and how many it holds; runs of real
processes are folded as they are. Pieces of another commit, Python or kind stay apart.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.evidence.pieces import (
    Piece,
    PieceError,
    percentiles,
    read_piece,
    read_pieces,
    save,
    seed_range,
    summed,
)

FOLDED = ("seeds", "kills", "power cuts")
"""What comes in many pieces; of the others each is a whole."""


class Kept(NamedTuple):
    """A piece and its file."""

    path: Path
    piece: Piece


def merge(folder: Path) -> int:
    """Fold what can be folded; return how many files are gone. Raises PieceError."""
    read_pieces(folder)
    kept = [Kept(path, read_piece(path)) for path in sorted(folder.glob("*.json"))]
    gone = 0
    for group in groups(kept):
        if len(group) < 2:
            continue
        whole = folded([one.piece for one in group])
        # Beside the others until it stands there whole; a folder that is read as it stands then
        # would count twice, so it goes by another name until they are gone.
        aside = save(folder / "merging", whole)
        for one in group:
            one.path.unlink()
        aside.unlink()
        save(folder, whole)
        gone += len(group) - 1
    if (folder / "merging").exists():
        (folder / "merging").rmdir()
    return gone


def groups(kept: Iterable[Kept]) -> list[list[Kept]]:
    """Pieces that can be one."""
    alike: defaultdict[tuple[str, ...], list[Kept]] = defaultdict(list)
    for one in kept:
        piece = one.piece
        if piece.what in FOLDED:
            alike[piece.what, piece.kind, piece.commit, piece.python].append(one)
    found: list[list[Kept]] = []
    for (what, *_), group in alike.items():
        found += _following(group) if what == "seeds" else [group]
    return found


def _following(group: Sequence[Kept]) -> list[list[Kept]]:
    """Seeds whose ranges follow each other."""
    runs: list[list[Kept]] = []
    end = None
    for one in sorted(group, key=lambda one: seed_range(one.piece).first):
        found = seed_range(one.piece)
        if found.first == end:
            runs[-1].append(one)
        else:
            runs.append([one])
        end = found.end
    return runs


def folded(pieces: Sequence[Piece]) -> Piece:
    """One piece that says what several say."""
    first = pieces[0]
    figures: dict[str, Any] = summed(pieces, first.what)
    took_s = round(figures.pop("took_s"), 1)
    del figures["pieces"]
    figures.pop("ranges", None)
    if "first" in first.figures:
        # Words that are the same in all stay words.
        same = {key: first.figures[key] for key in ("simulator", "kind", "first")}
        figures = {**same, **{k: v for k, v in figures.items() if k not in same}}
    if "samples_ms" in figures:
        figures["next_commit_ms"] = percentiles(figures["samples_ms"])
    day = max(piece.date for piece in pieces)
    return first._replace(
        command=_command(pieces, figures), date=day, took_s=took_s, figures=figures
    )


def _command(pieces: Sequence[Piece], figures: dict[str, Any]) -> str:
    command = pieces[0].command
    if "first" in figures:
        command = re.sub(r" --(?:first|count|minutes) \S+", "", command)
        return f"{command} --first {figures['first']} --count {figures['count']}"
    return "; ".join(dict.fromkeys(piece.command for piece in pieces))


def main() -> int:
    """Fold a folder's pieces."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.merge")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    try:
        gone = merge(folder)
    except PieceError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder}: {gone} files fewer, {len(read_pieces(folder))} left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
