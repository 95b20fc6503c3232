"""A name that gives no log to compare is an error that says why, and no traceback."""

import pytest

from tests.mutants.table import broken
from tests.oracles.replay.logs import NoLogError, log_of


@pytest.mark.parametrize("name", ["hunt", "hunt one", "nothing 1", ""])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(NoLogError, match=r"is no name of a log: a kind \(generated, .*hunt"):
        log_of(name)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("the body says who asks", "power 1"),
        # This run leaves nodes that have no ledger yet.
        ("ledger not synced before the journal forgets", "lag 3"),
    ],
)
def test_a_seed_that_fails_is_named_and_its_log_is_not_compared(mutant, name):
    with (
        broken(mutant),
        pytest.raises(NoLogError, match=r"the seed itself fails: .*; again: make seed SEED="),
    ):
        log_of(name)
