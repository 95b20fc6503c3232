"""Measures how fast a history is made up: `python -m benchmarks.audit.generating`.

Prints records a second of processor time on one core: sealed batches in memory, and the whole of
`logberg audit generate` with one folder. A second history is asked for many topics, and must have
them. Exit code 1: a bound was missed.

--records N   how long the first history is (200,000)
--topics N    how many topics the second history is asked for (10,000)
--slower F    this machine runs Python so many times slower than usual (1.0)
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from audit.generated import Life, write_history
from audit.generated.topics import RECORDS_PER_TOPIC
from benchmarks.audit.bounds import Bounds

RECORDS: Final = 200_000
TOPICS: Final = 10_000
BOUND: Final = 20_000.0
"""Records a second."""
MORE_TOPICS: Final = 1.05
"""Load tests come and go beside the topics that stay."""
SEED: Final = 1


def in_memory(life: Life) -> tuple[int, float]:
    """Let a life be lived; return its records and the processor seconds."""
    begun = time.process_time()
    for _ in life.sealed():
        pass
    return life.mark.log_end, time.process_time() - begun


def on_disk(records: int) -> tuple[int, float]:
    """Write a history; return its records and the processor seconds."""
    with tempfile.TemporaryDirectory(prefix="logberg-generating-") as folder:
        begun = time.process_time()
        written = write_history(Path(folder, "history"), records=records, seed=SEED)
        return written.log_end, time.process_time() - begun


def show(what: str, records: int, spent: float) -> float:
    """Print a rate and return it."""
    rate = records / spent
    print(f"{what}: {records:,} records in {spent:.1f} s of the processor, {rate:,.0f} a second")
    return rate


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit.generating")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--slower", type=float, default=1.0)
    said = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    bounds = Bounds()
    rate = show("in memory", *in_memory(Life(SEED, records=said.records)))
    written = show("in a folder", *on_disk(said.records))
    life = Life(SEED, records=said.topics * RECORDS_PER_TOPIC, topics=said.topics)
    many = show(f"with {said.topics:,} topics", *in_memory(life))
    topics = life.size[1]
    print(f"  it has {topics:,} topics and {life.size[2]:,} partitions at its end")
    for what, found in (("in memory", rate), ("in a folder", written), ("many topics", many)):
        bounds.at_least(f"records a second, {what}", found * said.slower, BOUND, "")
    bounds.at_least("topics", topics, said.topics, "")
    bounds.at_most("topics", topics, said.topics * MORE_TOPICS, "")
    sys.exit(bounds.missed)


if __name__ == "__main__":
    main()
