"""The memory backend passes the cases of sessions, groups, elections, fencing and locks."""

from collections import Counter

import pytest

from coordination.backends.memory.connection import CAPABILITIES
from coordination.testing.case import Case
from coordination.testing.cases import FAMILIES, all_cases
from coordination.testing.memory_store import FaultyMemoryStore
from tests.coordination.memory_cases import SKIPPED, assert_passes, run_on_memory


@pytest.fixture(scope="module")
def memory() -> FaultyMemoryStore:
    return FaultyMemoryStore()


@pytest.mark.parametrize("case", run_on_memory("SGEFL"), ids=str)
async def test_memory_passes(case: Case, memory: FaultyMemoryStore) -> None:
    await assert_passes(case, memory)


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
