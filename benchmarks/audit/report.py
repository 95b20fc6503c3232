"""Measures `logberg audit report`: `python -m benchmarks.audit.report`.

The command runs as a process of its own on a generated history, some times. Prints its seconds on
the clock and of the processor. Exit code 1: the best time on the clock is above the bound.

--records N     how long the history is (100,000)
--rounds N      how often the report is made (3)
--slower F      this machine runs Python so many times slower than usual (1.0)
--history PATH  a history that is there already
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from audit.generated import write_history
from audit.places.replicas import one_replica
from benchmarks.audit.bounds import Bounds

RECORDS: Final = 100_000
ROUNDS: Final = 3
BOUND_S: Final = 2.0


def made(history: Path, out: Path) -> tuple[float, float]:
    """Make the report; return its seconds on the clock and of the processor."""
    command = [sys.executable, "-m", "logberg", "audit", "report", str(history), "--out", str(out)]
    before, begun = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - begun, os.times()
    busy = after.children_user - before.children_user
    return took, busy + after.children_system - before.children_system


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit.report")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--slower", type=float, default=1.0)
    parser.add_argument("--history", type=Path)
    said = parser.parse_args()
    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="logberg-report-") as temporary:
        folder = said.history or Path(temporary, "history")
        if said.history is None:
            write_history(folder, records=said.records, seed=1)
        end = one_replica(str(folder)).reader().log_end
        best = float("inf")
        for _ in range(said.rounds):
            took, busy = made(folder, Path(temporary))
            print(f"{end:,} records: {took:.2f} s, {busy:.2f} s of the processor", flush=True)
            best = min(best, took)
        size = Path(temporary, "audit-report.html").stat().st_size
        print(f"the page has {size / 1e6:.2f} MB")
    bounds.at_most("the report's seconds", best / said.slower, BOUND_S, " s")
    sys.exit(bounds.missed)


if __name__ == "__main__":
    main()
