"""Finds out whether a mutant dies, and of what.

Rule: a mutant is dead when a seed or a test fails with it that passes with the sound build. The
recorded killers are tried first, unless a search is asked for. Then seeds run until one kills it,
up to a limit.
"""

import contextlib
import re
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.mutants.directed import Run, run_forked
from tests.mutants.kept import Killer
from tests.mutants.mutant import DirectedTest, Mutant, Seed
from tests.mutants.seed_searches import said, search_seeds
from tests.mutants.table import MUTANTS

_FIRST_WORDS = re.compile(r"(?:I\d+(?:/I\d+)?: )?[^\d([{'\"]*")
_WORDS_MAX = 70
_FAULTS_S = (2.0, 4.0, 8.0)
_USUAL_S = 20.0


class Judged(NamedTuple):
    """What became of a mutant."""

    name: str
    promise: str
    killer: Killer | None
    """None: it survived."""
    says: str
    took_s: float


class OverdueError(BaseException):
    """A mutant takes longer than it may; no Exception, which a run would take for its own."""


class Search(NamedTuple):
    """How far to look for a seed."""

    first: bool
    """Before what is kept is asked."""
    count: int
    """Of seeds for each hunt."""
    faults_s: float | None
    """Of each; None: as long as usual."""
    limit_s: float
    """For one mutant."""


def judge_by_name(task: tuple[str, Sequence[Killer], Search]) -> Judged:
    """Judge a mutant of the table; what a process can be sent."""
    name, kept, wanted = task
    return judge(MUTANTS[name], kept, wanted)


def judge(mutant: Mutant, kept: Sequence[Killer], wanted: Search) -> Judged:
    """Kill a mutant, or say that it survived."""
    began = time.monotonic()
    found: list[tuple[Killer, str]] = []
    seeds = 0

    def ask_kept() -> None:
        for killer in kept:
            if says := killed(mutant, killer):
                found.append((killer, says))
                return

    def look() -> None:
        nonlocal seeds
        for seed, says in search_seeds(mutant, wanted.count, wanted.faults_s):
            seeds += 1
            if says and not said(seed):
                found.append((seed._replace(says=gist(says)), says))
                return

    for step in (look, ask_kept) if wanted.first else (ask_kept, look):
        with contextlib.suppress(OverdueError), _at_most(wanted.limit_s):
            step()
        if found:
            break
    killer, says = found[0] if found else (None, f"SURVIVED {seeds} seeds")
    took_s = round(time.monotonic() - began, 1)
    return Judged(mutant.name, mutant.promise, killer, says, took_s)


def killed(mutant: Mutant, killer: Killer) -> str:
    """Return what a kept killer says of a mutant; empty: not what it is kept for."""
    if isinstance(killer, DirectedTest):
        broken, sound = (run_forked(Run(name, killer.node)) for name in (mutant.name, ""))
        dies = broken.outcome == "failed" and killer.says in broken.says
        return broken.says if dies and sound.outcome == "passed" else ""
    text = said(killer, mutant.patches)
    return text if text and killer.says in text else ""


def gist(says: str) -> str:
    """Return the first words of what is said, up to what differs from run to run."""
    return _FIRST_WORDS.match(says)[0].strip()[:_WORDS_MAX]


def shortened(mutant: Mutant, seed: Seed) -> Seed:
    """Return the same seed with the shortest fault schedule that kills with the same words."""
    if seed.search.simulator == "reference":
        return seed._replace(faults_s=None)
    longest = seed.faults_s or _USUAL_S
    for faults_s in (shorter for shorter in _FAULTS_S if shorter < longest):
        shorter = seed._replace(faults_s=faults_s)
        if killed(mutant, shorter) and not said(shorter):
            return shorter
    return seed


@contextlib.contextmanager
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
