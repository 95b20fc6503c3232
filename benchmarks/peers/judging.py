"""Judges the figures of a run: medians of its rounds, ratios round by round, bounds.

Rule: a ratio is taken between figures of the same round. Its spread is shown
beside the median: the smallest and the largest of the rounds.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from benchmarks.peers.rows import Bound

Rounds = dict[str, dict[str, list[dict[str, float]]]]
"""Row, service, and the figures of each round."""


class Judged(NamedTuple):
    """A bound, and what was found."""

    bound: Bound
    ours: float
    limit: float
    met: bool


class Ratio(NamedTuple):
    """Ours divided by a peer's."""

    median: float
    least: float
    most: float


class Run(msgspec.Struct, frozen=True):
    """All that one run measured, and where."""

    machine: str
    rounds: Rounds


def middle(rounds: Sequence[Mapping[str, float]], figure: str) -> float | None:
    """The median of one figure; None if no round has it."""
    values = [one[figure] for one in rounds if figure in one]
    return statistics.median(values) if values else None


def ratio(run: Run, row: str, figure: str, peer: str) -> Ratio | None:
    """Ours divided by a peer's, round by round; None if one of them was not measured."""
    services = run.rounds.get(row, {})
    pairs = zip(services.get("logberg", ()), services.get(peer, ()), strict=False)
    found = [a[figure] / b[figure] for a, b in pairs if figure in a and b.get(figure)]
    return Ratio(statistics.median(found), min(found), max(found)) if found else None


def judge(run: Run, bounds: Sequence[Bound]) -> list[Judged]:
    """Return a verdict on each bound whose figures were measured."""
    return [judged for bound in bounds if (judged := _judge(run, bound)) is not None]


def _judge(run: Run, bound: Bound) -> Judged | None:
    services = run.rounds.get(bound.row, {})
    ours = middle(services.get("logberg", ()), bound.figure)
    if ours is None:
        return None
    limit = bound.limit
    if bound.against is not None:
        others = [name for name in services if name != "logberg"]
        chosen = others if bound.against == "best" else [bound.against]
        found = [middle(services.get(name, ()), bound.figure) for name in chosen]
        known = [value for value in found if value is not None]
        if not known:
            return None
        limit *= max(known) if bound.at_least else min(known)
    return Judged(bound, ours, limit, ours >= limit if bound.at_least else ours <= limit)
