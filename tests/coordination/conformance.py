"""`make conformance`: the suite on every backend, and the page with the matrix.

Each store's results are kept as JSON in `--results`, and the page is made from all files there. So
one store can be run again alone: `python -m tests.coordination.conformance --stores etcd`.

A store whose servers can't be started is "not run", with the reason. That is never a pass.
"""

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec

from coordination.testing.case import CaseOutcome, CaseVerdict
from coordination.testing.matrix import StoreReport, markdown, run_suite
from coordination.testing.memory_store import FaultyMemoryStore
from coordination.testing.store import CannotStartError, Store
from tests.coordination.servers.transplant import importable

STORES = {
    "memory": "",
    "quorum": "quorum",
    "etcd": "etcd",
    "zookeeper": "zookeeper_store",
    "cassandra": "cassandra_store",
    "consul": "consul",
}
"""Which module of `servers/` has `open_store`."""
PAGE = Path("docs/coordination/matrix.md")
RESULTS = Path(".conformance")
OpenStore = Callable[[], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def open_memory() -> AsyncIterator[Store]:
    yield FaultyMemoryStore()


def opener(name: str) -> OpenStore:
    """Return what starts a store's servers. Raises CannotStartError."""
    if name == "memory":
        return open_memory
    module = f"{__package__}.servers.{STORES[name]}"
    try:
        return cast("OpenStore", importlib.import_module(module).open_store)
    except (ImportError, AttributeError) as error:
        raise CannotStartError(f"nothing starts its servers for the suite: {error}") from error


async def report_of(name: str, only: list[str], results: Path) -> StoreReport:
    """Run the suite on one store. Each outcome is kept at once: a run may be ended half way."""

    def tell(outcome: CaseOutcome) -> None:
        print_outcome(outcome)
        keep(StoreReport(name, (outcome,)), results)

    try:
        async with opener(name)() as opened, importable(opened) as store:
            return await run_suite(store, only=only, on_outcome=tell)
    except CannotStartError as error:
        return StoreReport(name, not_run=str(error))


def print_outcome(outcome: CaseOutcome) -> None:
    print(f"  {outcome.case:4} {outcome.verdict.value:8} {outcome.seconds:6.1f} s", flush=True)
    if outcome.reason:
        print(f"       {outcome.reason}", flush=True)


def keep(report: StoreReport, results: Path) -> None:
    """Keep a report; cases that weren't run again keep their earlier outcomes."""
    file = results / f"{report.store}.json"
    if file.exists() and report.outcomes:
        earlier = msgspec.json.decode(file.read_bytes(), type=StoreReport)
        again = {outcome.case for outcome in report.outcomes}
        others = tuple(outcome for outcome in earlier.outcomes if outcome.case not in again)
        report = StoreReport(report.store, others + report.outcomes)
    file.write_bytes(msgspec.json.encode(report))


def kept(results: Path) -> list[StoreReport]:
    """Return the kept reports; a store without one wasn't run."""
    reports = []
    for name in STORES:
        file = results / f"{name}.json"
        if file.exists():
            reports.append(msgspec.json.decode(file.read_bytes(), type=StoreReport))
        else:
            reports.append(StoreReport(name, not_run="the suite wasn't run on it"))
    return reports


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the conformance suite and write its matrix.")
    parser.add_argument("--stores", default=",".join(STORES), help="with commas between them")
    parser.add_argument(
        "--only", default="", help="names of cases to run again; the others keep their results"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    chosen = parser.parse_args()
    os.environ["LOGBERG_SERVERS"] = "1"
    only = [name for name in chosen.only.upper().split(",") if name]
    chosen.results.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in chosen.stores.split(","):
        print(f"{name}:", flush=True)
        report = asyncio.run(report_of(name, only, chosen.results))
        print(f"  {report.not_run or report.count(CaseVerdict.PASSED)}", flush=True)
        failed += report.count(CaseVerdict.FAILED)
        keep(report, chosen.results)
    PAGE.write_text(markdown(kept(chosen.results)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
