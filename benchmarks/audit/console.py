"""Measures the audit's index and the console's answers on a generated history.

    python -m benchmarks.audit.console --records 1000000

It prints the records a second of building the index, and the slowest of some answers of each view,
in seconds. It exits with 1 if building takes more than 20 microseconds of processor time a record,
or an answer takes longer than a second. `logberg audit who` runs as a process of its own, once by a
pass over the log, and by the index, which must be quicker. `--slower 1.9` says that this machine
runs Python so many times slower than usual: only the bound of building is multiplied by it.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from audit.console.console import Console
from audit.console.log_source import FileSource
from audit.generated import write_history
from audit.index.log_index import LogIndex
from audit.index.opening import IndexKeeper
from audit.places.replicas import one_replica
from runtime.http.requests import Request
from runtime.loop.collection import resting

BUILD_BOUND = 50_000
ANSWER_BOUND_S = 1.0
MOMENTS = 12
ROUNDS = 3
"""Each question is asked so often. The best time counts, since other programs run too."""


def built(folder: Path, index: Path) -> tuple[int, float, Path]:
    """Build the index; return the records, the processor seconds and the file."""
    replica = one_replica(str(folder))
    reader = replica.reader()
    keeper = IndexKeeper(index, replica, reader)
    begun = time.process_time()
    with resting():
        keeper.bring_up(reader)
    spent = time.process_time() - begun
    keeper.close()
    return reader.log_end, spent, keeper.path


def questions(end: int) -> dict[str, list[dict[str, str]]]:
    """Return the questions of each view, by name."""
    dice = Random(1)
    moments = [str(dice.randrange(end)) for _ in range(MOMENTS)] + [str(end)]
    tables = ("topics", "partitions", "acls", "configs", "brokers")
    return {
        "search": [
            *({"q": text} for text in ("mallory", "alice retention", "zzz", "broker", "partition")),
            {"principal": "User:*", "operation": "Alter*"},
            {"address": "10.0.*", "type": "partition-change"},
            {"resource": "partition:*-1", "principal": "Controller:*"},
            {"q": "user", "resource": "topic:*"},
            {"principal": "Controller:*", "broker": "1"},
            {"outcome": "aborted"},
            {"from": moments[0], "to": moments[1], "q": "topic"},
        ],
        "counts": [{"at": at} for at in moments],
        "state": [{"at": at, "table": table, "limit": "100"} for at in moments for table in tables],
        "different": [{"from": one, "to": other} for one, other in itertools.pairwise(moments)]
        + [{"from": "0", "to": str(end)}],
        "diff": [{"from": one, "to": other} for one, other in itertools.pairwise(moments)]
        + [{"from": "0", "to": str(end)}],
        "thing": [{"table": "brokers", "name": "1", "at": at} for at in moments[:3]],
        "activity": [{"parts": "240"}],
        "findings": [{}],
    }


def slowest(console: Console, view: str, asked: list[dict[str, str]]) -> tuple[float, str]:
    """Return the slowest answer's seconds and its question."""
    found = (0.0, "")
    for query in asked:
        best = float("inf")
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            reply = console.answer(Request("GET", f"/api/{view}", query=query))
            best = min(best, time.perf_counter() - begun)
            if reply.status != 200:
                sys.exit(f"{view} {query}: {reply.body.decode()}")
        found = max(found, (best, json.dumps(query)))
    return found


def who(folder: Path, name: str, *options: str) -> tuple[float, bytes]:
    """Ask who changed a topic; return the seconds and what was printed."""
    command = [sys.executable, "-m", "logberg", "audit", "who", str(folder), f"topic:{name}"]
    begun = time.perf_counter()
    done = subprocess.run([*command, *options], check=True, capture_output=True)
    return time.perf_counter() - begun, done.stdout


def who_is_quicker(folder: Path, index: Path, path: Path) -> bool:
    """Ask `who` both ways; print the seconds."""
    log_index = LogIndex(path)
    (topic,) = log_index.entries(log_index.mark.log_end, "topics", limit=1).items
    log_index.close()
    scanned, wanted = who(folder, topic.name)
    indexed, found = min(who(folder, topic.name, "--index", str(index)) for _ in range(ROUNDS))
    print(f"who        {scanned:.2f} s by a pass over the log, {indexed:.2f} s by the index")
    if found != wanted:
        sys.exit(f"who topic:{topic.name}: the index gives another answer")
    return indexed < scanned


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--history", type=Path, help="a history that is there already")
    parser.add_argument("--slower", type=float, default=1.0)
    said = parser.parse_args()
    is_right = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = said.history
        if folder is None:
            written = write_history(
                Path(temporary) / "history", records=said.records, replicas=1, seed=5
            )
            folder = written.folder
        records, spent, path = built(folder, Path(temporary) / "index")
        speed = records / spent
        print(f"index  {records} records in {spent:.1f} s of the processor: {speed:.0f} a second")
        print(f"       {path.stat().st_size / records:.0f} bytes a record")
        is_right &= speed * said.slower >= BUILD_BOUND
        is_right &= who_is_quicker(folder, Path(temporary) / "index", path)
        begun = time.perf_counter()
        LogIndex(path).close()
        source = FileSource(lambda: one_replica(str(folder)))
        console = Console(source, Path(temporary) / "index", now=time.monotonic)
        console.keep_up(lambda: False)
        print(f"opened again, verified and judged in {time.perf_counter() - begun:.1f} s")
        for view, asked in questions(records).items():
            took, query = slowest(console, view, asked)
            print(f"{view:10} {took:.3f} s  {query}")
            is_right &= took <= ANSWER_BOUND_S
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
