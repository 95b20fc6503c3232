"""The memory backend passes the cases of storage, watches, partitions, clocks and hygiene."""

import pytest

from coordination.testing.case import Case
from coordination.testing.memory_store import FaultyMemoryStore
from tests.coordination.memory_cases import assert_passes, run_on_memory


@pytest.fixture(scope="module")
def memory() -> FaultyMemoryStore:
    return FaultyMemoryStore()


@pytest.mark.parametrize("case", run_on_memory("KWPCA"), ids=str)
async def test_memory_passes(case: Case, memory: FaultyMemoryStore) -> None:
    await assert_passes(case, memory)
