"""A small part of the model, whole within its bounds; `make model` explores all of it."""

import os

import pytest

from tests.evidence.kinds import KINDS
from tests.model.__main__ import figures
from tests.model.checker import MODEL, NoCheckerError, Outcome, check, find_checker
from tests.model.explorations import (
    CONFIGURATIONS,
    GUARD_CONFIGURATIONS,
    GUARD_MUTANTS,
    LEASES_CONFIGURATIONS,
    LEASES_MUTANTS,
    MUTANTS,
    STRETCHED,
    VOTERS_CONFIGURATIONS,
    VOTERS_MUTANTS,
    bounded,
    bounds_of,
    configuration,
    invariants_of,
    module_of,
    mutated,
    rules_of,
    stretched,
)

MOST_S = 300.0


@pytest.fixture(scope="module")
def tlc() -> list[str]:
    """TLC; where tests must not be skipped, its absence is a failure."""
    try:
        return find_checker()
    except NoCheckerError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


SPECIFICATIONS = {
    "Guard": (GUARD_CONFIGURATIONS, GUARD_MUTANTS),
    "Leases": (LEASES_CONFIGURATIONS, LEASES_MUTANTS),
    "Voters": (VOTERS_CONFIGURATIONS, VOTERS_MUTANTS),
}


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_every_rule_of_a_specification_has_a_mutant(specification) -> None:
    """A rule that nobody drops is a rule that nobody knows to matter."""
    configurations, mutants = SPECIFICATIONS[specification]
    assert {mutant.rule for mutant in mutants} == rules_of(specification)
    assert {mutant.configuration for mutant in mutants} <= set(configurations)


def test_a_violation_and_a_mutant_that_passes_are_recorded() -> None:
    name = MUTANTS[0].configuration
    mutants = [mutant for mutant in MUTANTS if mutant.configuration == name]
    outcome = Outcome(10, 5, 3, 1.0, "OneLeaderATerm", ["Stands(n1)"])
    found = figures(name, configuration(name), outcome, mutants, [(mutants[0], outcome)])
    assert set(KINDS["model"].needed) <= set(found)
    assert found["violated"] == ["OneLeaderATerm"]
    assert found["mutants_not_rejected"] == [mutant.rule for mutant in mutants[1:]]


def test_every_configuration_is_explored_with_every_invariant() -> None:
    """No file lies about unused, and none checks less than the others."""
    assert {path.stem for path in MODEL.glob("*.cfg")} == set(CONFIGURATIONS)
    named = {name: invariants_of(configuration(name)) for name in CONFIGURATIONS}
    for configurations, _ in SPECIFICATIONS.values():
        for name in configurations:
            assert named[name] == named[configurations[0]], name
    for mutant in MUTANTS:
        assert mutant.breaks in named[mutant.configuration]


@pytest.mark.slow
def test_replays_hold_within_small_bounds(tlc) -> None:
    """Every order of late and repeated frames, kills and elections: two terms, one entry."""
    text = bounded(configuration("replays"), terms=2, entries=1)
    outcome = check(tlc, module_of("replays"), text, most_s=MOST_S)
    assert outcome.violated == "", "\n".join(outcome.trace)
    assert bounds_of(text).terms == 2
    assert outcome.distinct > 1000, "it explored next to nothing"


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["append normalisation", "one vote a voter"])
def test_a_mutant_is_refused(tlc, rule) -> None:
    """The checker finds what it is there for; the trace says how."""
    mutant = next(mutant for mutant in MUTANTS if mutant.rule == rule)
    outcome = check(tlc, module_of(mutant.configuration), mutated(mutant), most_s=MOST_S)
    assert outcome.violated == mutant.breaks
    assert any(step.startswith("Wins(") for step in outcome.trace)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["fenced once decided", "epoch of a confirmation"])
def test_a_mutant_of_the_leases_is_refused(tlc, rule) -> None:
    """A broker serves although it is fenced, once with a leader alone and once with a standby."""
    mutant = next(mutant for mutant in LEASES_MUTANTS if mutant.rule == rule)
    outcome = check(tlc, module_of(mutant.configuration), mutated(mutant), most_s=MOST_S)
    assert outcome.violated == "FencedNeverServes"
    assert "Fence" in outcome.trace
    assert {"Commit", "Begins"} & set(outcome.trace), "nobody has committed the fencing"


@pytest.mark.slow
def test_clocks_that_differ_by_more_than_the_lease_allows_for_are_refused(tlc) -> None:
    beyond = next(one for one in STRETCHED if one.configuration == "clocks")
    outcome = check(tlc, module_of("clocks"), stretched(beyond), most_s=MOST_S)
    assert outcome.violated == beyond.breaks
