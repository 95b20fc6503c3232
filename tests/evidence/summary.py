"""The first screen of docs/safety.md: the last full run beside what it must reach.

Rule: each figure has its goal beside it, and one that misses it is shown as missed. What was not
run has no figure, not a zero.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.evidence.coverage_table import cells, holes
from tests.evidence.markdown import NOT_RUN, duration, number, table
from tests.evidence.pieces import Piece, summed
from tests.evidence.what_was_run import mutants_of

ANSWERS = ("acknowledged", "refused", "reads")
"""Of what the seeds count: what clients were told, each held against the log by judges."""


class Goal(NamedTuple):
    """What a figure must reach."""

    says: str
    reached: Callable[[float], bool]


def at_least(least: int) -> Goal:
    """So many, or more."""
    return Goal(f"{least:,} or more", lambda value: value >= least)


NONE = Goal("0", lambda value: value == 0)
ANY = Goal("", lambda _: True)
BELOW_A_SECOND = Goal("below 1,000 ms", lambda value: value < 1000)


class Figure(NamedTuple):
    """One line."""

    what: str
    value: float | None
    """None: nobody measured it."""
    goal: Goal = ANY
    form: Callable[[float], str] = number

    @property
    def cells(self) -> tuple[str, str, str]:
        """What, how much, what it must be."""
        if self.value is None:
            return self.what, NOT_RUN, self.goal.says
        text = self.form(self.value)
        return self.what, text if self.goal.reached(self.value) else f"**{text} !**", self.goal.says


def summary(pieces: Sequence[Piece]) -> str:
    """The table."""
    rows = (figure.cells for figure in figures(pieces))
    return table(("in the last full run", "figure", "must be"), rows, right=(1,))


def figures(pieces: Sequence[Piece]) -> list[Figure]:
    """All lines."""
    return [*_simulated(pieces), *_killed(pieces), *_others(pieces)]


def _simulated(pieces: Sequence[Piece]) -> list[Figure]:
    total = summed(pieces, "seeds")
    covered = "coverage" in total
    return [
        Figure("seeds of simulated clusters", total.get("count"), at_least(50_000)),
        Figure("violations in them", total.get("violations"), NONE),
        Figure("simulated time", total.get("simulated_s"), form=duration),
        Figure("faults that struck", _all(total.get("faults"))),
        Figure("answers checked", _all(total.get("checked"), ANSWERS)),
        Figure(
            "empty cells of fault by operation",
            len(holes(cells(pieces))) if covered else None,
            NONE,
        ),
    ]


def _all(counts: dict[str, int] | None, kinds: Sequence[str] | None = None) -> int | None:
    if counts is None:
        return None
    return sum(count for kind, count in counts.items() if kinds is None or kind in kinds)


def _killed(pieces: Sequence[Piece]) -> list[Figure]:
    total = summed(pieces, "kills")
    wrong = _all(total, ("missing", "doubled", "misplaced")) if total else None
    unsound = len(total.get("unsound", [])) if total else None
    return [
        Figure("real leaders killed under load", total.get("kills"), at_least(500)),
        Figure("changes acknowledged meanwhile", total.get("acknowledged")),
        Figure("of them missing, doubled or misplaced", wrong, NONE),
        Figure("logs unsound after it", unsound, NONE),
        Figure("brokers fenced by it", total.get("fenced"), NONE),
        Figure(
            "kill to the next commit, p99",
            total.get("next_commit_ms", {}).get("p99"),
            BELOW_A_SECOND,
            lambda ms: f"{ms:,.0f} ms",
        ),
    ]


def _others(pieces: Sequence[Piece]) -> list[Figure]:
    def of(what: str, key: str) -> Any:
        return summed(pieces, what).get(key)

    ran = any(piece.what == "mutants" for piece in pieces)
    killed, survivors = mutants_of(pieces)
    return [
        Figure("crash points on real files", of("crash points", "points"), at_least(600)),
        Figure("violations at them", of("crash points", "violations"), NONE),
        Figure("power cuts on real processes", of("power cuts", "cuts")),
        Figure("violations after them", of("power cuts", "violations"), NONE),
        Figure("flipped bits", of("flips", "flips"), at_least(1_000_000)),
        Figure("flips that nobody noticed", of("flips", "silent"), NONE),
        Figure("mutants killed", len(killed) if ran else None, at_least(20)),
        Figure("mutants that survived", len(survivors) if ran else None, NONE),
        Figure("states of the model", of("model", "states")),
        Figure("runs that differ elsewhere", of("replays", "different"), NONE),
    ]
