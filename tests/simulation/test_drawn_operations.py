"""The administrators' operations that a seed draws: in every kind, and beside everything else."""

from dataclasses import asdict

import pytest

from tests.simulation import drawn_operations
from tests.simulation.coverage import DRAWN_OPERATIONS
from tests.simulation.drawn_operations import CLIENTS, JOINED, MOVES, OPERATIONS, WITHOUT
from tests.simulation.fault_kinds import KINDS, MORE_KINDS
from tests.simulation.seeds import HUNTED, run_seed, shape_of

EVERY_KIND = (*KINDS, *MORE_KINDS)
SEEDS = range(1, 101)
THEIRS = {"replicated", "moved", "clients", "brokers", "topics_max", "joined"}
"""What they change of a cluster's shape."""


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_kind_draws_each_of_them_in_some_seeds_and_mostly_none(kind: str) -> None:
    drawn = [drawn_operations.draw(seed, kind) for seed in SEEDS]
    for operation in OPERATIONS:
        count = sum(operation in each for each in drawn)
        assert (count == 0) if kind in WITHOUT else (5 <= count <= 30)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_cluster_and_faults_are_drawn_the_same_with_them_and_without(kind: str) -> None:
    """So a recorded seed, run without them, is the run that was recorded."""
    for seed in SEEDS[:20]:
        bare, with_all = (shape_of(seed, kind, 20.0, these) for these in ((), OPERATIONS))
        assert bare[1] == with_all[1]
        before, after = (asdict(shape) for shape, _ in (bare, with_all))
        assert {name for name in before if before[name] != after[name]} <= THEIRS


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["drawn", "damage", "hunt", "combined", "full", "errors"])
def test_they_run_and_are_judged_under_the_faults_of_the_kind(kind: str) -> None:
    outcome = run_seed(3, kind=kind, operations=(MOVES, CLIENTS))
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    of_moves = ("moves: done", "directories reported", "done: /v1/partitions/elect")
    of_clients = (
        "names judged",
        "tokens made",
        "tokens judged",
        "producer ids",
        "scrams opened by agents",
    )
    assert not [name for name in (*of_moves, *of_clients) if not outcome.facts[name]]


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("kind", "operations"),
    [
        ("drawn", (JOINED,)),
        ("rivals", (JOINED,)),
        ("conditions", (JOINED,)),
        ("configs", (JOINED,)),
        ("drawn", (CLIENTS, JOINED)),
        ("full", (MOVES, JOINED)),
    ],
)
def test_changes_that_go_in_one_request_are_judged_as_those_that_go_alone(
    kind: str, operations: tuple[str, ...]
) -> None:
    outcome = run_seed(3, kind=kind, operations=operations)
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    assert outcome.facts["joined: several"] > 1


@pytest.mark.simulation
def test_a_hunt_strikes_while_they_are_in_progress() -> None:
    """Seed 9 hunts with a fault that can always strike, and its cluster soon has topics to move."""
    outcome = run_seed(9, kind="hunt", operations=(MOVES, CLIENTS))
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    hunted = {line.partition("hunt: ")[2] for line in outcome.history}
    assert {f"{HUNTED[9]} at {operation}" for operation in DRAWN_OPERATIONS} <= hunted


@pytest.mark.parametrize(("text", "names"), [("none", ()), ("moves,clients,joined", OPERATIONS)])
def test_the_command_line_names_them(text: str, names: tuple[str, ...]) -> None:
    assert drawn_operations.parse(text) == names


def test_the_command_line_names_no_others() -> None:
    with pytest.raises(ValueError, match="none, or some of moves, clients, joined"):
        drawn_operations.parse("moves,others")
