"""The line that a seed prints for running it again gives the same run, for every kind."""

import shlex

import pytest

from tests.simulation import quorum_seeds

pytestmark = pytest.mark.simulation

SEED = 3


def _again(outcome: quorum_seeds.Outcome) -> quorum_seeds.Outcome:
    """Run what the line of an outcome says, with the parser of the command that it names."""
    command, words = quorum_seeds.COMMAND.split(), shlex.split(outcome.rerun)
    assert words[: len(command)] == command
    given = quorum_seeds.arguments().parse_args(words[len(command) :])
    [found] = quorum_seeds.run_many(given.first, given.count, given.nodes, given.kind)
    return found


@pytest.mark.parametrize("kind", [None, *quorum_seeds.KINDS, *quorum_seeds.MORE_KINDS])
def test_the_line_of_a_quorums_seed_gives_the_same_run(kind: str | None) -> None:
    first = quorum_seeds.run_seed(SEED, kind=kind)
    assert _again(first).digest == first.digest


@pytest.mark.parametrize("kind", quorum_seeds.MORE_KINDS)
def test_it_does_so_when_the_number_of_nodes_was_asked_for(kind: str) -> None:
    first = quorum_seeds.run_seed(SEED, 3, kind)
    assert _again(first).digest == first.digest
