"""Every case of the suite runs in the simulator under faults, or says what it needs instead."""

import pytest

from coordination.testing.cases import FAMILIES, all_cases
from tests.simulation.cases.runs import CALM, ELSEWHERE, WHOLE, run_case_seed, simulated_cases

SEEDS = (1, 2)
REPEATED = ("S4", "E3", "L6", "W3", "C4")
CASES = {each.name: each for each in all_cases()}


def test_the_lists_name_cases():
    assert {*ELSEWHERE, *CALM, *WHOLE} <= set(CASES)
    assert len(simulated_cases()) + len(ELSEWHERE) == sum(FAMILIES.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_cases_pass_under_faults(family):
    for chosen in simulated_cases():
        if not chosen.name.startswith(family):
            continue
        runs = [run_case_seed(chosen, seed) for seed in SEEDS[: 1 if chosen.name in CALM else None]]
        if all(run.cut_short for run in runs):
            runs.append(run_case_seed(chosen, SEEDS[0], calm=True))
        for run in runs:
            assert not run.failure, "\n".join((run.failure, run.rerun, *run.history))


@pytest.mark.parametrize("name", REPEATED)
def test_a_seed_repeats_a_case(name):
    one, other = (run_case_seed(CASES[name], 5) for _ in range(2))
    assert one.faults
    assert (one.digest, one.history) == (other.digest, other.history)


def test_a_case_that_fails_says_so():
    """The tester isn't blind: a case that needs what this store lacks fails, and says why."""
    run = run_case_seed(CASES["C3"], 1)
    assert "reach the store from another process" in run.failure
