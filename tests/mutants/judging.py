"""Does a mutant die, and of what?

Rule: it is dead when something is said of it that is not said of the sound build. What is kept is
asked first, unless a search is wanted; then seeds are run until one kills, as many as are allowed.
"""

import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.mutants.directed import Run, run_apart
from tests.mutants.hunting import said, search
from tests.mutants.kept import Killer
from tests.mutants.mutant import Mutant, Seed, Test

_FIRST_WORDS = re.compile(r"(?:I\d+(?:/I\d+)?: )?[^\d([{'\"]*")
_WORDS_MAX = 70
_TORMENTS_S = (2.0, 4.0, 8.0)


class Judged(NamedTuple):
    """What became of a mutant."""

    name: str
    promise: str
    killer: Killer | None
    """None: it survived."""
    says: str
    took_s: float
    seeds: int = 0
    """Run in a search."""


class OverdueError(Exception):
    """A mutant takes longer than it may."""


def judge(
    mutant: Mutant, kept: Sequence[Killer], count: int, limit_s: float, *, search_first: bool
) -> Judged:
    """Kill a mutant, or say that it survived."""
    began = time.monotonic()
    seeds = 0

    def judged(killer: Killer | None, says: str) -> Judged:
        took_s = round(time.monotonic() - began, 1)
        return Judged(mutant.name, mutant.promise, killer, says, took_s, seeds)

    try:
        with _at_most(limit_s):
            if not search_first:
                for killer in kept:
                    if says := killed(mutant, killer):
                        return judged(killer, says)
            for seed, says in search(mutant, 1, count):
                seeds += 1
                if says and not said(seed):
                    return judged(seed._replace(says=gist(says)), says)
            if search_first:
                for killer in sorted(kept, key=lambda killer: isinstance(killer, Seed)):
                    if says := killed(mutant, killer):
                        return judged(killer, says)
    except OverdueError:
        return judged(None, f"SURVIVED for {limit_s:.0f} s")
    return judged(None, "SURVIVED")


def killed(mutant: Mutant, killer: Killer) -> str:
    """Return what a kept killer says of a mutant; empty: not what it is kept for."""
    if isinstance(killer, Test):
        broken, sound = run_apart([Run(mutant.name, killer.node), Run("", killer.node)])
        dies = broken.outcome == "failed" and killer.says in broken.says
        return broken.says if dies and sound.outcome == "passed" else ""
    text = said(killer, mutant.patches)
    return text if text and killer.says in text else ""


def gist(says: str) -> str:
    """Return the first words of what is said, up to what differs from run to run."""
    return _FIRST_WORDS.match(says)[0].strip()[:_WORDS_MAX]  # type: ignore[index]


def shortened(mutant: Mutant, seed: Seed) -> Seed:
    """Return the same seed with the shortest torment that kills with the same words."""
    for torment_s in _TORMENTS_S:
        shorter = seed._replace(torment_s=torment_s)
        if killed(mutant, shorter) and not said(shorter):
            return shorter
    return seed


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    """Raise OverdueError in what takes longer; an endless loop of a broken build ends, too."""

    def overdue(*_args: Any) -> None:
        raise OverdueError

    before = signal.signal(signal.SIGALRM, overdue)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
