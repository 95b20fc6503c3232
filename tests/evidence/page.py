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
from typing import Any, NamedTuple

from tests.evidence.coverage_table import cells, coverage_section, holes
from tests.evidence.markdown import NOT_RUN, duration, none_or_loud, number, table
from tests.evidence.not_promised import NOT_PROMISED
from tests.evidence.pieces import RUNS, Piece, PieceError, read_pieces, summed
from tests.evidence.promises import NOT_MADE, PROMISES, Promise
from tests.evidence.what_was_run import SECTIONS, mutants_of, what_was_run

_HEAD = """\
# Safety

What Quorate promises, how each promise is proved, and first of all what it does not promise.
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
    parts = (_HEAD, summary(pieces), not_promised(), promises(pieces), what_was_run(pieces))
    return "\n".join((*parts, coverage_section(pieces), repeat())).rstrip() + "\n"


# -- one screen ------------------------------------------------------------------------------------


ANSWERS = ("acknowledged", "refused", "reads")
"""Of what the seeds count: what clients were told, each held against the log by judges."""


class Asked(NamedTuple):
    """A figure, and what a full run must reach."""

    what: str
    found: str
    asked: str


def summary(pieces: Sequence[Piece]) -> str:
    """One screen: the last full run beside what it must reach."""
    lines = [
        "Not promised: "
        + "; ".join(f"[{part.title.lower()}](#{_anchor(part.title)})" for part in NOT_PROMISED)
        + ".\n",
        "In the last full run:\n",
        table(("", "figure", "must be"), asked(pieces), right=(1,)),
    ]
    return "\n".join(lines)


def asked(pieces: Sequence[Piece]) -> list[Asked]:
    """The figures of the summary."""
    found = {what: summed(pieces, what) for what in {piece.what for piece in pieces}}
    return [*_simulated(found.get("seeds", {}), pieces), *_on_machines(found, pieces)]


def _simulated(seeds: dict[str, Any], pieces: Sequence[Piece]) -> list[Asked]:
    if not seeds:
        return [Asked("seeds of simulated clusters", NOT_RUN, "50,000 or more")]
    empty = holes(cells(pieces)) if seeds.get("coverage") else []
    checked = sum(seeds.get("checked", {}).get(kind, 0) for kind in ANSWERS)
    return [
        Asked("seeds of simulated clusters", number(seeds["count"]), "50,000 or more"),
        Asked("violations in them", none_or_loud(seeds["violations"]), "0"),
        Asked("simulated time", duration(seeds.get("simulated_s", 0)), ""),
        Asked("faults that struck", number(sum(seeds.get("faults", {}).values())), ""),
        Asked("answers checked", number(checked), ""),
        Asked("empty cells of fault by operation", none_or_loud(len(empty)), "0"),
    ]


def _on_machines(found: dict[str, dict[str, Any]], pieces: Sequence[Piece]) -> list[Asked]:
    def of(what: str, key: str) -> str:
        return number(found[what][key]) if what in found else NOT_RUN

    def wrong(what: str, *keys: str) -> str:
        return none_or_loud(sum(found[what].get(k, 0) for k in keys)) if what in found else NOT_RUN

    kills = found.get("kills", {})
    p99 = f"{number(round(kills['next_commit_ms']['p99']))} ms" if kills else NOT_RUN
    unsound = len(kills.get("unsound", []))
    killed, survivors = mutants_of(pieces)
    of_all = f"{len(killed)} of {len(killed) + len(survivors)}"
    return [
        Asked("crash points on real files", of("crash points", "points"), "600 or more"),
        Asked("violations at them", wrong("crash points", "violations"), "0"),
        Asked("power cuts on real processes", of("power cuts", "cuts"), ""),
        Asked("violations after them", wrong("power cuts", "violations"), "0"),
        Asked("flipped bits", of("flips", "flips"), "1,000,000 or more"),
        Asked("flips that nobody noticed", wrong("flips", "silent"), "0"),
        Asked("real leaders killed under load", of("kills", "kills"), "500 or more"),
        Asked(
            "acknowledged, and missing, doubled or misplaced",
            wrong("kills", "missing", "doubled", "misplaced"),
            "0",
        ),
        Asked("logs unsound, brokers fenced by it", _and(wrong("kills", "fenced"), unsound), "0"),
        Asked("kill to the next commit, p99", p99, "below 1,000 ms"),
        Asked("mutants killed", of_all if "mutants" in found else NOT_RUN, "all of 20 or more"),
        Asked("states of the model", of("model", "states"), ""),
        Asked("runs that differ elsewhere", wrong("replays", "different"), "0"),
    ]


def _and(said: str, more: int) -> str:
    return none_or_loud(more) if more else said


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
