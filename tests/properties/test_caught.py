"""The stateful tests of the managers fail once a rule of the product is broken.

Each row breaks the product by a mutant of `tests/mutants`. The drawn requests, the same in each
run, must show the difference to the reference machine. So none of its rules is there for nothing.
"""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.mutants.table import broken
from tests.properties.test_access_and_quotas import AccessAndQuotas

pytestmark = pytest.mark.slow

CAUGHT = {
    AccessAndQuotas: (
        "a denying entry is not looked for",
        "a denied READ denies DESCRIBE",
        "prefixes are not looked for",
        "entries for a resource don't close it",
        "reading does not allow describing",
        "a super user can be denied",
        "the widest entry is named",
        "a range of addresses matches nobody",
        "a range of addresses below its feature level",
        "a range of addresses is not checked",
        "the default user's quota goes first",
        "the client id's quota goes before the user's",
        "one entity's quotas hide those of all others",
    ),
}
ROWS = [
    pytest.param(machine, mutant, id=mutant)
    for machine, mutants in CAUGHT.items()
    for mutant in mutants
]


@pytest.mark.parametrize(("machine", "mutant"), ROWS)
def test_a_broken_rule_is_seen(machine, mutant):
    drawn = settings(
        max_examples=100,
        stateful_step_count=30,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )
    with broken(mutant), pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=drawn)
