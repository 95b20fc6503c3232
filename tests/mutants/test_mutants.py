"""Mutants die of their recorded killers.

`make mutants` reports on each, and lets the sound build survive it. Here a part of the recorded
seeds and tests runs again: each commit has another sixth of them.
"""

import ast
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from tests.mutants.directed import LIMIT_S, ROOT, Run, Verdict, run_apart
from tests.mutants.judging import killed
from tests.mutants.kept import read_killers
from tests.mutants.mutant import DirectedTest, Seed
from tests.mutants.seed_searches import SIMULATORS, said
from tests.mutants.table import ALL, MUTANTS, broken
from tests.simulation import fault_kinds, quorum_seeds
from tests.simulation.cases.runs import simulated_cases

pytestmark = pytest.mark.simulation

PARTS = 6
"""A commit runs one of so many parts."""


def in_turn(names: Sequence[str]) -> Sequence[str]:
    """Return those that are this commit's turn."""
    return names[int(os.environ.get("LOGBERG_SEED_BASE", "1")[:7], 16) % PARTS :: PARTS]


KEPT = read_killers()
BY_SEED = in_turn([name for name, some in KEPT.items() if isinstance(some[0], Seed)])
TESTS = {
    name: killer.node for name, (killer, *_) in KEPT.items() if isinstance(killer, DirectedTest)
}
BY_TEST = in_turn([*TESTS])
ASKED_FOR = 20
"""Mutants, at least."""


def test_the_table_is_whole():
    assert len(ALL) == len(MUTANTS) >= ASKED_FOR
    assert set(KEPT) == set(MUTANTS)
    assert all(KEPT.values())


@pytest.mark.parametrize("name", MUTANTS)
def test_every_patch_finds_its_target(name):
    with broken(name):
        pass


def test_every_hunt_is_in_a_kind_that_there_is():
    clusters = {"", *fault_kinds.KINDS, *fault_kinds.MORE_KINDS}
    kinds = {
        "quorum": {"", *quorum_seeds.KINDS, *quorum_seeds.MORE_KINDS},
        "cluster": clusters,
        "answers": clusters,
        "reference": {""},
        "case": {case.name for case in simulated_cases()},
    }
    assert set(kinds) == SIMULATORS
    searches = {search for mutant in ALL for search in mutant.searches}
    assert not [search for search in searches if search.kind not in kinds[search.simulator]]


@pytest.mark.parametrize("name", BY_SEED)
def test_a_mutant_dies_of_its_seed(name):
    assert any(killed(MUTANTS[name], killer) for killer in KEPT[name])


def test_every_directed_test_is_there():
    functions: dict[str, set[str]] = {}
    for node in TESTS.values():
        path = node.partition("::")[0]
        if path not in functions:
            tree = ast.parse((ROOT / path).read_text())
            found = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
            functions[path] = {each.name for each in found}
    names = {node: node.partition("[")[0].rpartition("::")[2] for node in TESTS.values()}
    gone = [node for node in names if names[node] not in functions[node.partition("::")[0]]]
    assert not gone


@cache
def _directed() -> dict[str, Verdict]:
    """Directed tests, each in its broken build. In the sound one the suite itself runs them."""
    runs = [Run(name, TESTS[name]) for name in BY_TEST]
    return dict(zip(BY_TEST, run_apart(runs), strict=True))


# The first of them runs all.
@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", BY_TEST)
def test_a_mutant_dies_of_its_test(name):
    verdict = _directed()[name]
    assert verdict.outcome == "failed"
    assert KEPT[name][0].says in verdict.says


def test_no_sound_build_dies_of_a_directed_test():
    """One here, for the way it is run."""
    killer = KEPT["vote counted twice"][-1]
    assert isinstance(killer, DirectedTest)
    [verdict] = run_apart([Run("", killer.node)])
    assert verdict.outcome == "passed"


def _sound_seeds() -> list[Seed]:
    """Each once, with the longest torment that is kept for it: the shorter ones are its begin."""
    longest: dict[Seed, float | None] = {}
    for name in BY_SEED:
        seed: Any = KEPT[name][0]
        one = seed._replace(says="", faults_s=None)
        longest[one] = max(longest.get(one, 0.0), seed.faults_s or 1e9)
    return [
        seed._replace(faults_s=None if faults_s == 1e9 else faults_s)
        for seed, faults_s in longest.items()
    ]


@pytest.mark.parametrize("seed", _sound_seeds(), ids=str)
def test_the_sound_build_does_not(seed):
    assert not said(seed)
