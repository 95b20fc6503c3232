"""A targeted fault meets its operation, and the seeds divide all pairs among themselves."""

from collections import Counter

import pytest

from tests.simulation import drawn, quorum_seeds, seeds

EVERY = {"cluster": seeds.PAIRS, "quorum": quorum_seeds.PAIRS}


@pytest.mark.parametrize("simulator", EVERY)
def test_all_pairs_have_had_their_turn_after_a_fourth_as_many_seeds(simulator: str) -> None:
    every = EVERY[simulator]
    runs = range(100, 100 + -(-len(every) // drawn.PAIRS_PER_RUN))
    assert {pair for seed in runs for pair in drawn.pairs_of(seed, every)} == set(every)


@pytest.mark.simulation
def test_a_hunt_strikes_in_the_midst_of_what_it_waits_for() -> None:
    """One that struck without waiting would meet half of them by chance."""
    struck = met = 0
    for seed in range(1, 9):
        outcome = quorum_seeds.run_seed(seed, kind="hunt")
        assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
        for fault, operation in drawn.pairs_of(seed, quorum_seeds.PAIRS):
            if any(line.endswith(f"hunt: {fault} at {operation}") for line in outcome.history):
                struck += 1
                met += bool(outcome.coverage.get(fault, Counter())[operation])
    assert met > 8, "less than a fourth of what was hunted"
    assert met > 0.9 * struck


@pytest.mark.simulation
def test_long_work_is_seen_under_way_when_it_takes_time() -> None:
    """Faults strike leaders in the middle of a transaction and of a decision: kill, pause, power.

    Without slices that take time, decisions begin and end within one event.
    """
    met = Counter[str]()
    for seed in range(60, 70):
        outcome = seeds.run_seed(seed, kind="hunt")
        assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
        for operations in outcome.coverage.values():
            met += operations
        if min(met["decision"], met["transaction"]) > 2:
            return
    raise AssertionError(f"after ten seeds faults had met only {met}")
