"""The stateful tests of the managers fail once a rule of the product is broken.

Each row breaks the product by a mutant of `tests/mutants`. The drawn requests, the same in each
run, must show the difference to the reference machine. So none of its rules is there for nothing.
"""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from runtime.simulated.world import SimulationFailedError
from tests.mutants.table import broken
from tests.properties.test_access_and_quotas import AccessAndQuotas
from tests.properties.test_own_elections import OwnElections
from tests.properties.test_placed_topics import PlacedTopics
from tests.properties.test_replica_managers import PartitionsAndBrokers

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
    PlacedTopics: (
        "a cordoned broker gets replicas",
        "a stopping broker gets replicas",
        "a reassignment to a cordoned broker",
        "a fenced broker is placed like a live one",
        "racks are not looked at",
        "every partition begins in the same rack",
        "one broker of a rack leads all its partitions",
    ),
    OwnElections: (
        "leaders never return",
        "nobody looks for unclean elections",
        "a pass without an end",
        "passes end with the first one",
        "leaders are balanced by unclean elections",
        "unclean elections where nobody allowed them",
    ),
    PartitionsAndBrokers: ("a replica comes back to a failed directory",),
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
    with broken(mutant), pytest.raises((AssertionError, SimulationFailedError)):
        run_state_machine_as_test(machine, settings=drawn)
