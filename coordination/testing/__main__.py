"""Run the suite against a store that is running: `python -m logberg.coordination.testing URL`.

It prints a line for each case, and at the end the matrix as Markdown. The exit code is 1 when a
case failed. `memory://` tests the memory backend, with faults. `--only S1,E3` runs some cases;
`--ttl 5` sets T.
"""

import argparse
import asyncio
import sys

from coordination.testing.case import CaseOutcome, CaseVerdict
from coordination.testing.matrix import markdown, run_suite
from coordination.testing.memory_store import FaultyMemoryStore
from coordination.testing.running_store import RunningStore
from coordination.testing.store import Store


def _print_outcome(outcome: CaseOutcome) -> None:
    sys.stdout.write(f"{outcome.case:4} {outcome.verdict.value} {outcome.seconds:6.1f} s\n")
    if outcome.reason:
        sys.stdout.write(f"     {outcome.reason}\n")
    sys.stdout.flush()


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}",
        description="Test a store of coordination by its URL.",
    )
    parser.add_argument("url", help="as connect() takes it; each host with its port")
    parser.add_argument("--ttl", type=float, default=2.0, help="the cases' ttl in seconds")
    parser.add_argument("--only", default="", help="names of cases with commas between them")
    chosen = parser.parse_args()
    store: Store = (
        FaultyMemoryStore()
        if chosen.url.startswith("memory:")
        else RunningStore(chosen.url, chosen.ttl)
    )
    only = [name.upper() for name in chosen.only.split(",") if name]
    report = asyncio.run(run_suite(store, only=only, on_outcome=_print_outcome))
    sys.stdout.write("\n" + markdown([report]))
    return 1 if report.count(CaseVerdict.FAILED) else 0


if __name__ == "__main__":
    sys.exit(main())
