"""The memory backend passes the suite, and skips what the tester can't do to it.

Rule: the list of skips stands here too. A case that begins to be skipped fails a test.
"""

from collections import Counter

import pytest

from coordination.backends.memory.connection import CAPABILITIES
from coordination.testing.case import Case, CaseVerdict, run_case
from coordination.testing.cases import FAMILIES, all_cases
from coordination.testing.memory_store import FaultyMemoryStore

SKIPPED = {
    "C2": "the tester can't step the servers' wall clock",
    "C3": "the tester can't reach the store from another process",
    "C5": "the tester can't step the clock of one replica",
    "F5": "the tester can't import the store into a quorum",
    "A4": "the tester can't refuse wrong credentials",
    "P2": "the tester can't cut one server off from the others",
    "P3": "the tester can't kill the leading server of several",
    "P4": "the tester can't kill the leading server of several",
    "P5": "the tester can't kill the leading server of several",
    "P7": "the tester can't reach the store by several addresses",
    "P8": "the tester can't restart the servers and keep their data",
    "W5": "the tester can't restart the servers and keep their data",
}
RUN = [case for case in all_cases() if case.name not in SKIPPED]


@pytest.fixture(scope="module")
def memory() -> FaultyMemoryStore:
    return FaultyMemoryStore()


@pytest.mark.parametrize("case", RUN, ids=str)
async def test_memory_passes(case: Case, memory: FaultyMemoryStore) -> None:
    outcome = await run_case(case, memory, CAPABILITIES)
    assert outcome.verdict is CaseVerdict.PASSED, outcome.reason


def test_memory_skips_what_it_declares(memory: FaultyMemoryStore) -> None:
    missing = {case.name: case.missing(memory, CAPABILITIES) for case in all_cases()}
    assert {name: reason for name, reason in missing.items() if reason} == SKIPPED


def test_every_case_of_the_list_is_there() -> None:
    names = [case.name for case in all_cases()]
    assert len(names) == 123
    assert Counter(name[0] for name in names) == FAMILIES
    for family, count in FAMILIES.items():
        assert [name for name in names if name[0] == family] == [
            f"{family}{number}" for number in range(1, count + 1)
        ]
    assert all(case.text.endswith(".") for case in all_cases())
