"""What the tests of the memory backend share: the store, and which cases it must skip.

Rule: the list of skips stands here too. A case that begins to be skipped fails a test. The cases
are in two files, so that two workers share them.
"""

from coordination.backends.memory.connection import CAPABILITIES
from coordination.testing.case import Case, CaseVerdict, run_case
from coordination.testing.cases import all_cases
from coordination.testing.memory_store import FaultyMemoryStore

_NO_SERVER = "it lives in this process and has no server"
SKIPPED = {
    "C5": "the backend doesn't declare clock_skew_s",
} | {
    name: f"the tester can't {what}: {_NO_SERVER}"
    for name, what in (
        ("C2", "step the servers' wall clock"),
        ("C3", "reach the store from another process"),
        ("F5", "import the store into a quorum"),
        ("A4", "refuse wrong credentials"),
        ("P2", "cut one server off from the others"),
        ("P3", "kill the leading server of several"),
        ("P4", "kill the leading server of several"),
        ("P5", "kill the leading server of several"),
        ("P7", "reach the store by several addresses"),
        ("P8", "restart the servers and keep their data"),
        ("W5", "restart the servers and keep their data"),
    )
}


def run_on_memory(families: str) -> list[Case]:
    """Return the cases of these families that the memory backend runs."""
    return [case for case in all_cases() if case.name not in SKIPPED and case.name[0] in families]


async def assert_passes(case: Case, memory: FaultyMemoryStore) -> None:
    """Run one case. Raises AssertionError with its traceback."""
    outcome = await run_case(case, memory, CAPABILITIES)
    assert outcome.verdict is CaseVerdict.PASSED, outcome.reason
