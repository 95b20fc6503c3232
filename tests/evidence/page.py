"""docs/safety.md, made of the promises' words and of the figures that runs left behind.

    python -m tests.evidence.page [--runs FOLDER] [--allow-dirty] > docs/safety.md

Rule: no figure is typed. The words are in `promises` and `not_promised`, the figures in `runs/`,
what to repeat in `commands`; here is only how they stand on a page. `make docs` writes it, and a
test compares.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.evidence.coverage_table import coverage_section
from tests.evidence.markdown import NOT_RUN, number, table
from tests.evidence.not_promised import NOT_PROMISED
from tests.evidence.pieces import RUNS, Piece, PieceError, read_pieces, summed
from tests.evidence.promises import NOT_MADE, PROMISES, Promise
from tests.evidence.summary import summary
from tests.evidence.what_was_run import SECTIONS, mutants_of, what_was_run

_HEAD = """\
# Safety

What Logberg promises, how each promise is proved, and first of all what it does not promise.
The figures are those that the runs wrote down in `tests/evidence/runs/`; `make docs` makes this
page of them.
"""


def page(pieces: Sequence[Piece], *, allow_dirty: bool = False) -> str:
    """Make the page. Raises PieceError for pieces that nobody could repeat."""
    dirty = [piece for piece in pieces if piece.dirty]
    if dirty and not allow_dirty:
        raise PieceError(
            f"{len(dirty)} pieces are of a tree with changes that no commit holds, the first of "
            f"{dirty[0].what}, {dirty[0].date}: run them again on a commit, or remove them"
        )
    parts = (
        _HEAD,
        contents(),
        summary(pieces),
        not_promised(),
        promises(pieces),
        what_was_run(pieces),
    )
    return "\n".join((*parts, coverage_section(pieces), repeat())).rstrip() + "\n"


def contents() -> str:
    """What is not promised, in a line, above the figures."""
    parts = (f"[{part.title.lower()}](#{_anchor(part.title)})" for part in NOT_PROMISED)
    return f"Not promised: {'; '.join(parts)}.\n"


# -- words -----------------------------------------------------------------------------------------


def not_promised() -> str:
    """What is not promised, before anything is."""
    parts = ["## What is not promised\n"]
    for kind in NOT_PROMISED:
        parts += [
            f"### {kind.title}\n",
            *(f"- **{one.title}** {one.says}" for one in kind.limits),
            "",
        ]
    return "\n".join(parts)


def promises(pieces: Sequence[Piece]) -> str:
    """Each promise with its rule, its proof and its mutants."""
    gaps = "; ".join(f"{n}, {what}" for n, what in NOT_MADE.items())
    parts = [
        "## The promises\n",
        f"Not made yet: {gaps}. A number is never given to another promise.\n",
        table(
            ("", "promise"),
            ((str(p.number), f"[{p.title}](#{_anchor(_title(p))})") for p in PROMISES),
        ),
    ]
    return "\n".join([*parts, *(_promise(one, pieces) for one in PROMISES)])


def _title(promise: Promise) -> str:
    return f"{promise.number}. {promise.title}"


def _promise(promise: Promise, pieces: Sequence[Piece]) -> str:
    def places(found: Sequence[Any]) -> str:
        return "\n".join(f"- [{place.path}](../{place.path}): {place.says}" for place in found)

    return "\n".join(
        (
            f"### {_title(promise)}\n",
            f"{promise.says}\n",
            f"Its rule:\n\n{places(promise.rule)}\n",
            f"Its proof:\n\n{places(promise.proof)}\n",
            f"Meanwhile: {promise.faults}.\n",
            f"Tried: {_tried(promise, pieces)}.\n",
            f"Mutants that break it: {_breaking(promise, pieces)}.\n",
        )
    )


_COUNTED = {
    "seeds": ("count", "seeds of simulated clusters"),
    "crash points": ("points", "crash points"),
    "power cuts": ("cuts", "power cuts"),
    "flips": ("flips", "flipped bits"),
    "kills": ("kills", "leaders killed"),
    "model": ("states", "states of the model"),
    "replays": ("seeds", "runs repeated elsewhere"),
}


def _tried(promise: Promise, pieces: Sequence[Piece]) -> str:
    """How much of what a promise rests on was run."""
    said = []
    for what in promise.runs:
        title, _ = SECTIONS[what]
        total = summed(pieces, what)
        figure, words = _COUNTED[what]
        amount = f"{number(total[figure])} {words}" if total else f"{words}: {NOT_RUN}"
        said.append(f"[{amount}](#{_anchor(title)})")
    return "; ".join(said) or "the tests above"


def _breaking(promise: Promise, pieces: Sequence[Piece]) -> str:
    """How many mutants name a promise's number; I13 and F-11 are no promises' numbers."""
    killed, survivors = mutants_of(pieces)
    if not killed and not survivors:
        return NOT_RUN
    numbers = [re.findall(r"(?<![\w-])\d+", str(one["promise"])) for one in killed.values()]
    count = sum(str(promise.number) in found for found in numbers)
    return f"{count} killed" if count else "none"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def repeat() -> str:
    """How all of it is made again."""
    return (
        "## All of it again\n\n"
        "`make evidence` runs everything above in pieces and records it; it goes on where it "
        "stopped. `make docs` then makes this page. A violation prints the line that repeats it. "
        "What runs have found so far is in [simulation.md](simulation.md#what-seeds-have-found).\n"
    )


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.page")
    parser.add_argument("--runs", type=Path, default=RUNS, help="the folder of the pieces")
    parser.add_argument("--allow-dirty", action="store_true", help="to look at unfinished work")
    given = parser.parse_args()
    try:
        made = page(read_pieces(given.runs), allow_dirty=given.allow_dirty)
    except PieceError as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
