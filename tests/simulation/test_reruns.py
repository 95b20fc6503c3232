"""The line that a seed prints for running it again gives the same run, for every kind."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.simulation import fault_kinds, quorum_seeds, seeds
from tests.simulation.drawn_operations import CLIENTS

pytestmark = pytest.mark.simulation

SEED = 4
FAULTS_S = 0.2
ROOT = Path(__file__).parents[2]


def _quorum_again(outcome: quorum_seeds.Outcome) -> quorum_seeds.Outcome:
    """Run what the line of an outcome says, with the parser of the command that it names."""
    command, words = quorum_seeds.COMMAND.split(), shlex.split(outcome.rerun)
    assert words[: len(command)] == command
    given = quorum_seeds.arguments().parse_args(words[len(command) :])
    [found] = quorum_seeds.run_many(given.first, given.count, given.nodes, given.kind)
    return found


@pytest.mark.parametrize("kind", [None, *quorum_seeds.KINDS, *quorum_seeds.MORE_KINDS])
def test_the_line_of_a_quorums_seed_gives_the_same_run(kind: str | None) -> None:
    first = quorum_seeds.run_seed(SEED, kind=kind)
    assert _quorum_again(first).digest == first.digest


@pytest.mark.parametrize("kind", quorum_seeds.MORE_KINDS)
def test_it_does_so_when_the_number_of_nodes_was_asked_for(kind: str) -> None:
    first = quorum_seeds.run_seed(SEED, 3, kind)
    assert _quorum_again(first).digest == first.digest


def _cluster_again(outcome: seeds.Outcome) -> seeds.Outcome:
    """Run what make would start for the line of an outcome."""
    make, *words = shlex.split(outcome.rerun)
    # The tests may have been started by make, which leaves its own flags for this one.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    said = subprocess.run(
        [make, "--dry-run", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    _, _, module, *options = shlex.split(said.splitlines()[-1])
    assert module == seeds.__name__
    [found] = seeds.run_many(seeds.arguments().parse_args(options))
    return found


@pytest.mark.parametrize("kind", ["", *fault_kinds.MORE_KINDS])
def test_the_line_of_a_clusters_seed_gives_the_same_run(kind: str) -> None:
    first = seeds.run_seed(SEED, FAULTS_S, kind)
    assert _cluster_again(first).digest == first.digest


@pytest.mark.parametrize("operations", [None, (), (CLIENTS,)])
def test_it_does_so_when_operations_were_asked_for(operations: tuple[str, ...] | None) -> None:
    first = seeds.run_seed(SEED, kind="drawn", operations=operations)
    assert _cluster_again(first).digest == first.digest
