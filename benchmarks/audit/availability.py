"""Measures `logberg audit run availability` at size: `python -m benchmarks.audit.availability`.

The command runs as a process of its own on one core, and writes its rows to a CSV. Prints its
seconds, its largest memory and its rows. Exit code 1: a bound was missed.

--records N      how long the generated history is (10,000,000). Making it takes several minutes.
--history PATH   a history that is there already
--keep PATH      make the history here, and keep it for the next run
--slower F       this machine runs Python so many times slower than usual (1.0)
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

RECORDS: Final = 10_000_000
BOUND_S: Final = 300.0
BOUND_MB: Final = 1_000.0


def counted(history: Path, out: Path) -> tuple[float, float]:
    """Run the command on one core; return its seconds and its largest memory in MB."""
    command = ["audit", "run", "availability", str(history), "--out", str(out)]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # the command inherits it
    begun = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "logberg", *command])
    _, status, used = os.wait4(child.pid, 0)
    took = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return took, used.ru_maxrss * 1_024 / 1e6


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit.availability")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--history", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--slower", type=float, default=1.0)
    said = parser.parse_args()
    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="logberg-availability-") as temporary:
        folder = said.history or said.keep or Path(temporary, "history")
        if said.history is None:
            begun = time.perf_counter()
            made = write_history(folder, records=said.records, seed=1)
            print(
                f"made a history of {made.log_end:,} records, {made.partitions:,} partitions, "
                f"in {time.perf_counter() - begun:.0f} s",
                flush=True,
            )
        end = one_replica(str(folder)).reader().log_end
        out = Path(temporary, "availability.csv")
        took, memory = counted(folder, out)
        with out.open("rb") as file:
            rows = sum(1 for _ in file) - 1
    print(f"{end:,} records: {rows:,} rows in {took:.1f} s, {end / took:,.0f} records a second")
    bounds.at_most("seconds on one core", took / said.slower, BOUND_S, " s")
    bounds.at_most("memory", memory, BOUND_MB, " MB")
    sys.exit(bounds.missed)


if __name__ == "__main__":
    main()
