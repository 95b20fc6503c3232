"""Runs one seed with a mutant, and returns how it fails.

Rule: only the message of an invariant, a judge or an assertion of the product counts. An exception
of a kind that a badly made patch raises is raised further, and does not count as a kill.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from coordination.testing.case import CASES
from runtime.simulated.world import World
from tests.histories import History
from tests.mutants.differing import differs, to_the_millisecond
from tests.mutants.mutant import Mutant, Seed
from tests.mutants.patches import Patch, around, patched
from tests.simulation import quorum_seeds, seeds
from tests.simulation.answers import Judgement
from tests.simulation.cases.runs import run_case_seed

BATCHES = 200
"""Of a history for the reference."""
_WHERE = re.compile(r"seed \d+ at [\d.]+ s(?: node \d+)?: ")
_RAISED = re.compile(r"^(?:\w+\.)*([A-Z]\w*)(?:: (.*))?$", re.MULTILINE)
_BADLY_MADE = ("TypeError(", "NameError(", "AttributeError(", "UnboundLocalError(", "ImportError(")


class BadPatchError(Exception):
    """A mutant crashed in its own patch."""


def said(seed: Seed, patches: Sequence[Patch] = ()) -> str:
    """Return what is said of a seed's run in a build with these patches; empty: nothing."""
    with patched(patches):
        text = _SIMULATORS[seed.search.simulator](seed)
    first = _WHERE.sub("", text.partition("\n    ")[0].partition("\n")[0], count=1)
    if first.startswith(_BADLY_MADE):
        raise BadPatchError(f"{seed}: {text}")
    return first


def search_seeds(mutant: Mutant, count: int, faults_s: float | None) -> Iterator[tuple[Seed, str]]:
    """Run seed after seed of a mutant's hunts; yields each with what was said of it."""
    for number in range(1, 1 + count):
        for search in mutant.searches:
            # The reference's histories begin with the one that was written by hand.
            seed = Seed(search, number - (search.simulator == "reference"), "", faults_s)
            yield seed, said(seed, mutant.patches)


def _quorum(seed: Seed) -> str:
    logging.getLogger("pysyncobj").setLevel(logging.CRITICAL + 1)
    with patched(_shorter(seed)):
        return quorum_seeds.run_seed(
            seed.number, seed.search.nodes, seed.search.kind or None
        ).failure


def _shorter(seed: Seed) -> tuple[Patch, ...]:
    """Let a quorum's seed draw all as it does, and be healed sooner."""

    def shape_of(original: Callable[..., Any], *args: Any) -> Any:
        shape, *rest = original(*args)
        shape.faults_s = seed.faults_s
        return shape, *rest

    if seed.faults_s is None:
        return ()
    return (Patch("tests.simulation.quorum_seeds.shape_of", around(shape_of)),)


def _cluster(seed: Seed) -> str:
    return _run_cluster(seed).failure


def _answers(seed: Seed) -> str:
    with judges_alone() as found:
        try:
            _run_cluster(seed)
        except Exception as error:  # noqa: BLE001 - a broken build breaks in many ways
            found.append(f"{type(error).__name__}({error})")
    return found[0] if found else ""


def _run_cluster(seed: Seed) -> seeds.Outcome:
    """Run a seed with the operations of its kind alone, so that what was kept stays the run."""
    faults_s = seeds.FAULTS_S if seed.faults_s is None else seed.faults_s
    return seeds.run_seed(seed.number, faults_s, seed.search.kind, operations=())


def _reference(seed: Seed) -> str:
    """Seed 0 is the history that is cut to the millisecond; the others are drawn."""
    batches = History(seed.number).batches(BATCHES) if seed.number else to_the_millisecond()
    return differs(batches)


def _case(seed: Seed) -> str:
    """A case of coordination's suite. The line that names the error says why it failed."""
    failure = run_case_seed(CASES[seed.search.kind], seed.number).failure.strip()
    if not failure.startswith("Traceback"):
        return failure
    # pytest explains an assertion in further lines, if it was imported before the suite.
    kind, text = _RAISED.findall(failure)[-1]
    return f"{kind}({text})" if text else kind


_SIMULATORS: dict[str, Callable[[Seed], str]] = {
    "quorum": _quorum,
    "cluster": _cluster,
    "answers": _answers,
    "reference": _reference,
    "case": _case,
}
SIMULATORS = frozenset(_SIMULATORS)


@contextmanager
def judges_alone() -> Iterator[list[str]]:
    """Collect what the judgement of answers says; nobody else is heard, and nothing ends the run.

    So a judge that sees nothing can't hide behind an invariant that would end the run first.
    """
    found: list[str] = []
    judge, fail = Judgement.judge, World.fail
    judging = False

    def alone(self: Judgement) -> Any:
        nonlocal judging
        judging = True
        return judge(self)

    def collect(_world: World, message: str, _node_id: int | None, *_cause: object) -> None:
        if judging:
            found.append(message)

    Judgement.judge, World.fail = alone, collect
    try:
        yield found
    finally:
        Judgement.judge, World.fail = judge, fail
