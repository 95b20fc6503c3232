"""Three real controllers pass a part of the conformance suite; `make conformance` runs all of it.

Rule: the part has what only real processes show: kills, cut and lost replies, a failover, a leader
that is cut off from its peers, a wall clock that jumps, a restart of all controllers, a process
that is stopped.
"""

from collections.abc import Iterator

import pytest

from coordination.testing.case import CaseVerdict, capabilities_of, run_case
from coordination.testing.cases import all_cases
from tests.coordination.servers.quorum import QuorumStore, running_store

pytestmark = pytest.mark.process

PART = {
    *("S4", "S6", "S8", "S12", "G12", "E6", "E11", "E13", "F3", "F6", "K7", "K15", "K16"),
    *("W4", "W5", "W18", "L6", "P2", "P3", "P4", "P8", "C2", "C3", "A4", "A8"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumStore]:
    with running_store(tmp_path_factory.mktemp("suite")) as store:
        yield store


@pytest.mark.parametrize("case", [case for case in all_cases() if case.name in PART], ids=str)
async def test_controllers_pass(case, store: QuorumStore) -> None:
    outcome = await run_case(case, store, await capabilities_of(store))
    assert outcome.verdict is CaseVerdict.PASSED, outcome.reason
