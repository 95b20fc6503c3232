"""The suite's cases in the simulator: a case and a seed are one run.

    python -m tests.simulation.cases.runs [--first 1] [--count 20] [--only S1,E3] [--calm]

Rule: a run ends only when the faults have ended and all controllers have the same state. Then their
logs are judged as in every run of the simulator: I4, I13 and I21 of docs/simulation.md.
"""

import argparse
import asyncio
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from structlog.testing import capture_logs

from controller.http.coordination import feed, watches
from coordination.errors import OutcomeUnknown, Unavailable
from coordination.testing.case import LONG, LONGEST_CASE_S, Case, capabilities_of
from coordination.testing.cases import all_cases
from coordination.testing.store import Ability
from runtime.simulated.world import SimulationFailedError
from tests.simulation.cases.case_faults import CaseFaults
from tests.simulation.cases.guest_loop import guest_loop, run_in_world
from tests.simulation.cases.simulated_harness import SimulatedHarness
from tests.simulation.cases.simulated_store import HISTORY_BYTES, SimulatedStore
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape
from tests.simulation.patches import Patch, patched

BEGIN_S = 20.0
REST_S = 60.0
LATE_S = 12.0
"""How much longer than the suite's patience faults may delay what happens "eventually"."""
FEED_CHANGES = 50
"""So many changes a controller keeps in memory: the ledger is read in short runs too."""


ELSEWHERE: dict[str, str] = {
    "A4": "the HTTP server refuses credentials, and no request gets so far as here",
    "F5": "an import, which the command makes",
    "A7": "two event loops in two threads",
    "C3": "a second process, and SIGSTOP",
    "C5": "replicas that expire sessions by clocks of their own: Cassandra",
}
"""Cases that can't run here, and what they need. They run on real processes."""


def simulated_cases() -> list[Case]:
    """Return the cases that run here, in the order of the list."""
    return [each for each in all_cases() if each.name not in ELSEWHERE]


CALM: dict[str, str] = {
    "W11": "it measures the store's pace first, and has a reader that is five times as slow",
}
"""Cases that run here without faults, and why."""
HONEST = (OutcomeUnknown, Unavailable)
"""What a client may say when faults lost its replies. A case that asked for no fault knows nothing
of it and ends; that is neither a pass nor a failure."""
WHOLE = {"W11"}
"""A buffer overflows only after so many changes."""


@dataclass
class CaseRun:
    """What a run came to."""

    case: str
    seed: int
    failure: str = ""
    cut_short: str = ""
    """The honest error of a client whose request the faults spoilt. The case didn't get further."""
    history: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    simulated_s: float = 0.0
    digest: str = ""

    @property
    def rerun(self) -> str:
        """The command that runs it again."""
        return f"python -m tests.simulation.cases.runs --first {self.seed} --only {self.case}"


def run_case_seed(chosen: Case, seed: int, *, calm: bool = False) -> CaseRun:
    """Run a case under the faults of a seed. `calm`: without faults."""
    run = CaseRun(chosen.name, seed)
    cluster = Cluster(seed, Shape(brokers=0, checkpoint_bytes=200_000, segment_bytes=100_000))
    loop = guest_loop(cluster.world)
    faults = CaseFaults(cluster, rest_s=3 * SimulatedStore.ttl)
    store = SimulatedStore(cluster, loop, faults.on_request)
    cluster.session_clients = store.sessions
    try:
        with patched(list(_constants(chosen))), capture_logs():
            _begin(cluster)
            declared = run_in_world(cluster.world, loop, capabilities_of(store), BEGIN_S)
            if missing := chosen.missing(store, declared):
                cluster.world.fail(f"{missing}; list {chosen.name} in ELSEWHERE", None)
            if not calm and chosen.name not in CALM:
                faults.begin()
            work = _run_case(chosen, store)
            error = run_in_world(cluster.world, loop, work, 2 * LONGEST_CASE_S)
            told = "" if error is None else "".join(traceback.format_exception(error))
            if isinstance(error, HONEST) and not calm:
                run.cut_short = told
            else:
                run.failure = told
            faults.end()
            run.facts = _judge(cluster)
    except SimulationFailedError as error:
        run.failure = run.failure or str(error)
    run.failure = run.failure or "\n".join(loop.failures)
    run.history = faults.nemesis.history
    run.faults = faults.nemesis.counts
    run.simulated_s = cluster.world.now
    run.digest = cluster.world.digest()
    return run


def _constants(chosen: Case) -> Iterator[Patch]:
    """Yield what must be smaller than in production, so that it matters in a short run."""
    yield feed, "CHANGES_KEPT", FEED_CHANGES
    if Ability.COMPACT in chosen.needs:
        yield watches, "HISTORY_BYTES_MAX", HISTORY_BYTES


def _begin(cluster: Cluster) -> None:
    for node_id in cluster.hosts:
        cluster.start(node_id)
    if not cluster.world.run_for(BEGIN_S, lambda: cluster.leader() is not None):
        cluster.world.fail("nobody leads", None)


async def _run_case(chosen: Case, store: SimulatedStore) -> Exception | None:
    """Run the case and undo what it did; return how it failed."""
    harness = SimulatedHarness(
        store, f"{chosen.name.lower()}-{store.run_id}", LATE_S, whole=chosen.name in WHOLE
    )
    if chosen.busy:
        harness.client_ttl = LONG * store.ttl
        harness.request_timeout = LONG * store.request_timeout
    try:
        async with asyncio.timeout(LONGEST_CASE_S):
            await chosen.function(harness)
    except SimulationFailedError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a case raises, it failed
        return error
    finally:
        await harness.aclose()
    return None


def _judge(cluster: Cluster) -> Counter[str]:
    """Let the controllers come to rest, and judge their logs."""
    cluster.busy, cluster.healed = False, True
    if not cluster.world.run_for(REST_S, cluster.at_rest):
        cluster.world.fail(f"I12: no rest after the faults ended: {cluster.unrest()}", None)
    if cluster.stopped:
        cluster.world.fail(f"a node stopped itself: {cluster.stopped}", None)
    return cluster.invariants.at_the_end() + cluster.session_clients.counts


def run_many(cases: Sequence[Case], seeds: Sequence[int], *, calm: bool) -> Iterator[CaseRun]:
    """Run each case with each seed."""
    for seed in seeds:
        for chosen in cases:
            yield run_case_seed(chosen, seed, calm=calm)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the suite's cases in the simulator.")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--only", default="", help="names of cases with commas between them")
    parser.add_argument("--calm", action="store_true", help="without faults")
    given = parser.parse_args()
    only = [name for name in given.only.upper().split(",") if name]
    cases = [each for each in simulated_cases() if not only or each.name in only]
    began = time.monotonic()
    runs, failed, struck, simulated_s = 0, 0, Counter[str](), 0.0
    cut_short: Counter[str] = Counter()
    for run in run_many(cases, range(given.first, given.first + given.count), calm=given.calm):
        runs += 1
        struck += run.faults
        cut_short[run.case] += bool(run.cut_short)
        simulated_s += run.simulated_s
        if run.failure:
            failed += 1
            print(f"FAILED {run.failure}\n  again: {run.rerun}\n" + "\n".join(run.history))
    took = time.monotonic() - began
    faults = ", ".join(f"{kind} {times}" for kind, times in sorted(struck.items()))
    print(f"cut short: {+cut_short}")
    print(f"{runs} runs, {failed} failed, {took:.1f} s, {simulated_s:.0f} simulated s; {faults}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
