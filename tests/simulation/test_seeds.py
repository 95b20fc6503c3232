"""Whole clusters under faults: seeds of this commit, and every seed that ever found a bug."""

import os
import subprocess
import sys

import pytest

from tests.simulation.calm import run_calm
from tests.simulation.drawn_operations import OPERATIONS
from tests.simulation.fault_kinds import MORE_KINDS
from tests.simulation.seeds import RAISING, run_seed

SEEDS = 16
"""Each takes several seconds on an idle core. `make seeds` runs as many as one likes."""
SEEDS_OF_MORE_KINDS = 1
FOUND_BUGS = {
    3: "a jump's mark vouched for own segments that were never synced",
    6: "the lease's timer asked again for the same instant, for ever",
    1040: "after a leader's clock had leapt a day, every request id was refused as too old",
    163422: "a simulated machine did not answer who sent into a connection that was over",
    15: "a catch-up left segments of an earlier incarnation behind the accepted history",
}
FOUND_BUGS_OF_MORE_KINDS = {
    (124, "drawn"): "the register search gave up over a few unknown outcomes",
    (1650, "drawn"): "the clock leapt a day, and a transaction let go what its own end rested on",
    (48, "damage"): "nobody started a node again that was on its way out when the faults ended",
    (476, "damage"): "a segment of another time passed for the line, and an assertion failed",
    (702, "damage"): "two of three nodes did not run in the end",
    (810, "damage"): "the judge read the ledger of a node that had none yet",
    (6489, "damage"): "a node that could not read another's folder was said to run on it",
    (100, "moves"): "a replica that an overlapping reassignment dropped was still being added",
    (969653, "damage"): "a voter lost its folder before the first batch, and the log never began",
    (4822, "damage"): "the judge read the ledger of a node that had lost every segment",
    (80045, "damage"): "the judge of fencings read a damaged file, which its node had not read",
    (820015, "crowd"): "the harness killed a broker in a seed in which none should end",
}
FOUND_WITH_OPERATIONS = {
    (424200, "twins"): "the harness waited for the reports of a second process that had ended",
    (820017, "crowd"): "a process that ended to get new disks was judged as if it still ran",
}
"""Seeds that failed with the operations of moves and clients beside those of their kind."""
FOUND_AS_DRAWN = {
    (40821, "configs"): "replicas without a leader's newest writes stayed eligible beside it",
    (940007, "crowd"): "an agent's reports were judged before it was told of the last image",
    (812577, "hunt"): "brokers that left in rounds elected each other, uncleanly, for ever",
}
"""Seeds that failed with the operations that they draw themselves."""
FOUND_WITH = ()
"""These seeds found their bugs before seeds drew operations beside those of their kind."""


def of_this_commit() -> list[int]:
    """Every commit tries others; the same commit tries the same."""
    base = int(os.environ.get("LOGBERG_SEED_BASE", "1")[:7], 16)
    return [1000 + base % 1_000_000 + n for n in range(SEEDS)]


@pytest.mark.simulation
@pytest.mark.parametrize("seed", FOUND_BUGS, ids=lambda seed: f"{seed}")
def test_a_seed_that_once_found_a_bug_finds_none(seed: int) -> None:
    outcome = run_seed(seed, operations=FOUND_WITH)
    assert not outcome.failure, f"{FOUND_BUGS[seed]}: {outcome.rerun}\n{outcome.failure}"


@pytest.mark.simulation
@pytest.mark.parametrize(("seed", "kind"), FOUND_BUGS_OF_MORE_KINDS)
def test_a_seed_of_another_kind_that_once_found_a_bug_finds_none(seed: int, kind: str) -> None:
    outcome = run_seed(seed, kind=kind, operations=FOUND_WITH)
    why = FOUND_BUGS_OF_MORE_KINDS[seed, kind]
    assert not outcome.failure, f"{why}: {outcome.rerun}\n{outcome.failure}"


@pytest.mark.simulation
@pytest.mark.parametrize(("seed", "kind"), FOUND_WITH_OPERATIONS)
def test_a_seed_that_once_found_a_bug_with_operations_finds_none(seed: int, kind: str) -> None:
    outcome = run_seed(seed, kind=kind, operations=OPERATIONS)
    why = FOUND_WITH_OPERATIONS[seed, kind]
    assert not outcome.failure, f"{why}: {outcome.rerun}\n{outcome.failure}"


@pytest.mark.simulation
@pytest.mark.parametrize(("seed", "kind"), FOUND_AS_DRAWN)
def test_a_seed_that_once_found_a_bug_as_it_was_drawn_finds_none(seed: int, kind: str) -> None:
    outcome = run_seed(seed, kind=kind)
    assert not outcome.failure, f"{FOUND_AS_DRAWN[seed, kind]}: {outcome.rerun}\n{outcome.failure}"


@pytest.mark.simulation
@pytest.mark.parametrize("seed", of_this_commit())
def test_a_cluster_keeps_its_promises_under_faults(seed: int) -> None:
    outcome = run_seed(seed)
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    assert outcome.facts["acknowledged"] > 0


@pytest.mark.simulation
@pytest.mark.parametrize("kind", MORE_KINDS)
@pytest.mark.parametrize("seed", of_this_commit()[:SEEDS_OF_MORE_KINDS])
def test_a_cluster_keeps_its_promises_under_the_rarer_faults(seed: int, kind: str) -> None:
    outcome = run_seed(seed, kind=kind)
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    assert outcome.facts["acknowledged"] > 0


@pytest.mark.simulation
@pytest.mark.parametrize("kind", RAISING)
def test_levels_rise_in_the_middle_of_some_seeds(kind: str) -> None:
    outcome = run_seed(300, kind=kind)
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    assert outcome.facts["levels_raised"]


@pytest.mark.simulation
def test_a_level_that_nobody_raised_during_the_faults_is_raised_after_them() -> None:
    """In this seed the elector does not draw it before: one such seed in eight failed the test."""
    outcome = run_seed(3018, kind="replicas")
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    assert outcome.facts["levels_raised"]


@pytest.mark.simulation
def test_a_seed_is_the_same_run_under_another_hash_seed() -> None:
    code = (
        "from tests.simulation.seeds import run_seed;"
        "print(run_seed(15, faults_s=6.0).digest, run_seed(2, faults_s=6.0).digest,"
        "*(run_seed(5, kind=kind).digest for kind in ('drawn', 'damage')))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.simulation
def test_peace_under_load_sees_no_election_and_no_fencing() -> None:
    """A minute here; an hour by `python -m tests.simulation.calm`."""
    found = run_calm(seed=1, seconds=60.0, changes_per_s=20.0)
    assert (found["elections"], found["fenced"], found["registrations"]) == (0, 0, 0)
    assert found["acknowledged"] > 1_000
