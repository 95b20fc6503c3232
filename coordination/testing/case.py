"""A case of the suite: its name, what it needs, and how it runs.

Rule: only the declaration skips a case. `case(needs=...)` names abilities of the tester and
capabilities of the backend; what is missing is the reason that the matrix shows. Within its body a
case can't skip itself: pytest's skip and unittest's SkipTest count as failures, and so does
NotSupported.
"""

import asyncio
import enum
import itertools
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from coordination.testing.harness import Harness
from coordination.testing.store import Ability, Store
from coordination.types import Capabilities

CaseFunction = Callable[[Harness], Coroutine[object, object, None]]
_turns = itertools.count()
LONGEST_CASE_S = 280.0
LONG = 20
"""A busy case's clients have a ttl and a request timeout so many times the store's."""


class Trait(enum.Enum):
    """A capability that a case needs, as `Capabilities` declares it."""

    HISTORY = "history"
    TXN = "txn"
    STORE_TXN = "txn_scope=store"
    ATOMIC_LIST = "atomic_list"
    PUSH_WATCH = "push_watch"
    STORE_FENCING = "fencing_scope=store"
    LINEARIZABLE_READS = "linearizable_reads"
    LEADER_FAILOVER = "leader_failover"
    STEADY_CLOCK = "clock_skew_s=0.0"
    """No server's wall clock decides when a session ends."""
    CLOCK_SKEW = "clock_skew_s"
    """The servers' wall clocks decide, and may be off by so much."""

    def declared(self, capabilities: Capabilities) -> bool:
        """Whether the backend declares this trait."""
        field, _, value = self.value.partition("=")
        told: object = getattr(capabilities, field)
        return str(told) == value if value else bool(told)


class CaseVerdict(enum.Enum):
    """What came of a case."""

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What came of a case, and why."""

    case: str
    verdict: CaseVerdict
    reason: str = ""
    """Why it was skipped, or the traceback of its failure."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `S1` to `A8` of the conformance list."""

    name: str
    text: str
    """What the case shows, in one sentence."""
    function: CaseFunction
    needs: tuple[Ability | Trait, ...]
    busy: bool = False
    """It does much at once, and no session of it is to end; its clients have a long ttl."""

    @property
    def title(self) -> str:
        """The name of the function in words."""
        return self.function.__name__.partition("_")[2].replace("_", " ")

    def __str__(self) -> str:
        return self.name

    def missing(self, store: Store, capabilities: Capabilities) -> str:
        """Return what is missing to run the case; empty: nothing."""
        for need in self.needs:
            if isinstance(need, Ability):
                if need not in store.abilities:
                    why = store.lacks.get(need)
                    return f"the tester can't {need.value}" + (f": {why}" if why else "")
            elif not need.declared(capabilities):
                return f"the backend doesn't declare {need.value}"
        return ""


CASES: dict[str, Case] = {}
"""Every case by its name, in the order of the list. Filled by importing
`coordination.testing.cases`."""


def case(*needs: Ability | Trait, busy: bool = False) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as a case. The first word of its name is the case's: `s1_open_...`."""

    def register(function: CaseFunction) -> CaseFunction:
        name = function.__name__.partition("_")[0].upper()
        assert name not in CASES, f"two cases are called {name}"
        text = (function.__doc__ or "").strip()
        CASES[name] = Case(name, text, function, needs, busy)
        return function

    return register


async def run_case(chosen: Case, store: Store, capabilities: Capabilities) -> CaseOutcome:
    """Run one case against a store; never raises, except when cancelled.

    `capabilities` are those that the backend declared when `capabilities_of` asked.
    """
    assert __debug__, "the cases are assertions; run Python without -O"
    if missing := chosen.missing(store, capabilities):
        return CaseOutcome(chosen.name, CaseVerdict.SKIPPED, missing)
    harness = Harness(store, f"{chosen.name.lower()}-{next(_turns)}-{store.run_id}")
    if chosen.busy:
        harness.client_ttl = LONG * store.ttl
        harness.request_timeout = LONG * store.request_timeout
    begin = harness.now()
    try:
        async with asyncio.timeout(LONGEST_CASE_S):
            await chosen.function(harness)
        await harness.aclose()
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - pytest's Skipped is no Exception
        failed = CaseOutcome(
            chosen.name, CaseVerdict.FAILED, traceback.format_exc(), harness.now() - begin
        )
        await harness.aclose()
        return failed
    return CaseOutcome(chosen.name, CaseVerdict.PASSED, "", harness.now() - begin)


async def capabilities_of(store: Store) -> Capabilities:
    """Open one client and return what its backend declares."""
    harness = Harness(store, f"declared-{next(_turns)}-{store.run_id}")
    try:
        client = await harness.make_client()
        return client.capabilities
    finally:
        await harness.aclose()
