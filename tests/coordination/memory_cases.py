"""What the tests of the memory backend share: the store, and which cases it must skip.

Rule: the list of skips stands here too. A case that begins to be skipped fails a test. The cases
are in two files, so that two workers share them.
"""

from coordination.backends.memory.connection import CAPABILITIES
from coordination.testing.case import Case, CaseVerdict, run_case
from coordination.testing.cases import all_cases
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


def run_on_memory(families: str) -> list[Case]:
    """Return the cases of these families that the memory backend runs."""
    return [case for case in all_cases() if case.name not in SKIPPED and case.name[0] in families]


async def assert_passes(case: Case, memory: FaultyMemoryStore) -> None:
    """Run one case. Raises AssertionError with its traceback."""
    outcome = await run_case(case, memory, CAPABILITIES)
    assert outcome.verdict is CaseVerdict.PASSED, outcome.reason
