"""Measures the pipeline from nothing to all tables: `make bench-audit`.

`python -m benchmarks.audit.pipeline`. Each run is a process of its own, so that each pays for Java
and for Python's workers. Steps come from Spark's event log. Beside it stands the same work without
Spark: the embedded jobs of the same tables in one process, and DuckDB over the Parquet files of
bronze. Exit code 1: a bound was missed.

--records N      how long the log is (1,000,000)
--new N          how many records the second run finds (20,000)
--folder FOLDER  where logs and tables go; a log that is there is used again (a temporary folder)
--old            also run the old pipeline, from a clone of this repository at commit 6904b0cb
--cores N        how many cores all of it may use (2), Java and Python together
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from audit.embedded import run_job
from audit.lake.place import LakePlace
from audit.lake.reading import dataset
from audit.places.replicas import one_replica, open_replicas
from audit.tables import BRONZE, BY_NAME, KEPT
from benchmarks.audit import event_log
from benchmarks.audit.bounds import Bounds
from benchmarks.audit.spark import history
from tests.audit_sql.calculation import COMPARED, SqlCalculation

RECORDS: Final = 1_000_000
NEW: Final = 20_000
OLD_COMMIT: Final = "6904b0cb"
FIRST_S: Final = 48.0
NEW_S: Final = 6.0
RATIO: Final = 5.0
JOBS: Final = 10
FILE_BYTES: Final = 1_000_000
_ROOT: Final = Path(__file__).parents[2]
_WORDS: Final = 70
"""Characters of a job's description."""
_STAGES: Final = 8
"""With more stages, only their sums are printed."""

CHILD: Final = """
import json, sys, time
begun = time.perf_counter()
from pathlib import Path
from logberg.spark import audit_session, run_pipeline
try:
    from benchmarks.audit.spark import processor_s
except ImportError:  # where the old pipeline had it
    from benchmarks.audit_spark import processor_s
log, out, settings = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
try:
    spark = audit_session(settings=settings, short=True)
except TypeError:  # the old pipeline's
    spark = audit_session(settings=settings)
started = time.perf_counter()
run_pipeline(spark, log, out)
ended = time.perf_counter()
busy = processor_s()
spark.stop()
print(json.dumps({"session_s": started - begun, "run_s": ended - started, "busy_s": busy}))
"""


class Taken(NamedTuple):
    """What a run of the pipeline took."""

    session_s: float
    run_s: float
    busy_s: float
    """Processor time of Java and Python together."""
    jobs: dict[str, event_log.JobCount]

    @property
    def whole_s(self) -> float:
        return self.session_s + self.run_s


def run_pipeline(log: Path, out: Path, scratch: Path, root: Path | None = None) -> Taken:
    """Run the pipeline in a process of its own; `root`: that of another version's source."""
    events = Path(tempfile.mkdtemp(dir=scratch, prefix="events-"))
    settings = json.dumps(event_log.settings(events))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(log), str(out), settings],
        check=True,
        stdout=subprocess.PIPE,
        cwd=root or _ROOT,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return Taken(**told, jobs=event_log.counted(event_log.events(events)))


def show(what: str, taken: Taken, out: Path) -> None:
    """Print a run's steps."""
    print(f"\n{what}: {taken.whole_s:.1f} s, {taken.busy_s:.1f} s of processor time", flush=True)
    print(f"  session {taken.session_s:.1f} s, then {taken.run_s:.1f} s")
    in_jobs = sum(each.seconds for each in taken.jobs.values())
    for words, each in list(taken.jobs.items())[:8]:
        what = " ".join(words.split())[:_WORDS] or "no description"
        print(f"  {what}: {each.jobs} jobs, {each.seconds:.1f} s; {_stages(each)}")
    jobs = sum(each.jobs for each in taken.jobs.values())
    tasks = sum(sum(each.tasks) for each in taken.jobs.values())
    print(f"  {jobs} jobs, {tasks} tasks; the driver without Spark: {taken.run_s - in_jobs:.1f} s")
    files, size = parquet_files(out)
    print(f"  {files} Parquet files, {size / 1e6:.1f} MB", flush=True)


def _stages(job: event_log.JobCount) -> str:
    """Return each stage's tasks and seconds; of many stages, the sums."""
    ran = [
        (number, tasks, took, busy)
        for number, (tasks, took, busy) in enumerate(
            zip(job.tasks, job.stage_seconds, job.task_seconds, strict=True)
        )
        if tasks
    ]
    if len(ran) > _STAGES:
        tasks = sum(each[1] for each in ran)
        return f"{len(ran)} stages, {tasks} tasks, {sum(each[3] for each in ran):.1f} s of tasks"
    return ", ".join(
        f"stage {number}: {tasks} tasks, {took:.1f} s ({busy:.1f} s of tasks)"
        for number, tasks, took, busy in ran
    )


def parquet_files(out: Path) -> tuple[int, int]:
    """Return how many Parquet files lie in a folder, and their bytes."""
    sizes = [path.stat().st_size for path in out.rglob("*.parquet")]
    return len(sizes), sum(sizes)


def live_files(out: Path) -> tuple[int, int]:
    """Return how many files the tables consist of now, and their bytes."""
    import pyarrow as pa  # noqa: PLC0415
    from deltalake import DeltaTable  # noqa: PLC0415 - needs the extra

    sizes = [
        size
        for path in KEPT
        for size in pa.table(DeltaTable(out / path).get_add_actions())["size_bytes"].to_pylist()
    ]
    return len(sizes), sum(sizes)


def shortened(log: Path, target: Path, records: int) -> None:
    """Copy a node's log up to about so many records, whole batches."""
    (target / "log").mkdir(parents=True)
    reader = one_replica(str(log)).reader()
    segment, head = reader.catalogue.head_at(records)
    for path in sorted((log / "log").iterdir()):
        if int(path.stem) < segment.base_offset:
            os.link(path, target / "log" / path.name)
        elif int(path.stem) == segment.base_offset:
            (target / "log" / path.name).write_bytes(path.read_bytes()[: head.position])


def lengthen(log: Path, target: Path) -> None:
    """Give a shortened copy the rest of the log."""
    for path in (log / "log").iterdir():
        copy = target / "log" / path.name
        if not copy.exists() or copy.stat().st_size < path.stat().st_size:
            copy.unlink(missing_ok=True)
            os.link(path, copy)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that some work takes, and what it returns."""
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def plainly(log: Path) -> None:
    """The same tables by the embedded engine, one after the other in one process."""
    print("\nplain Python, one process:")
    whole = 0.0
    for path, table in KEPT.items():
        if table.name in BY_NAME:
            took, rows = timed(partial(run_job, table.name, open_replicas(str(log))))
            whole += took
            print(f"  {path}: {took:.1f} s, {len(rows):,} rows", flush=True)
    print(f"  together: {whole:.1f} s", flush=True)


def by_duckdb(out: Path, cores: int) -> None:
    """The same tables by SQL over the kept bronze: the calculation that tests compare with."""
    begun = time.perf_counter()
    bronze = dataset(LakePlace(str(out)), BRONZE.name)
    with SqlCalculation(bronze, threads=cores) as calculation:
        took = time.perf_counter() - begun
        print(f"\nDuckDB over bronze, {cores} threads: {took:.1f} s")
        for job in COMPARED:
            print(f"  {job}: {calculation.count(job):,} rows", flush=True)


def old_source(scratch: Path) -> Path:
    """Take the source from before the pipeline folded out of this repository; else exit with 1."""
    clone = scratch / "old"
    for words in (
        ["clone", "-q", "--shared", str(_ROOT), str(clone)],
        ["-C", str(clone), "checkout", "-q", OLD_COMMIT],
    ):
        done = subprocess.run(["git", *words], check=False, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"--old needs commit {OLD_COMMIT} of this repository: {done.stderr.strip()}")
    return clone


def measure(arguments: argparse.Namespace, scratch: Path, folder: Path) -> bool:
    """Measure all of it; return whether every bound was met."""
    bounds = Bounds()
    old = old_source(scratch) if arguments.old else None
    log = history(folder, arguments.records + arguments.new)
    node, out = scratch / "node", scratch / "out"
    shortened(log, node, arguments.records)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    first = run_pipeline(node, out, scratch)
    show(f"{one_replica(str(node)).reader().log_end:,} records from nothing", first, out)
    files, size = live_files(out)
    print(f"  the tables consist of {files} files of {size / files / 1e6:.2f} MB")
    before = None if old is None else run_pipeline(node, scratch / "old-out", scratch, old)
    if before is not None:
        show("the old pipeline, from nothing", before, scratch / "old-out")
    plainly(node)
    by_duckdb(out, arguments.cores)
    lengthen(log, node)
    second = run_pipeline(node, out, scratch)
    show(f"{arguments.new:,} new records", second, out)
    print()
    bounds.at_most("from nothing to all tables", first.whole_s, FIRST_S, " s")
    bounds.at_most("new records, beyond the session's start", second.run_s, NEW_S, " s")
    most = max(each.jobs for each in [*first.jobs.values(), *second.jobs.values()])
    bounds.at_most("Spark jobs a micro-batch", most, JOBS, "")
    bounds.at_least("an average file", size / files / 1e6, FILE_BYTES / 1e6, " MB")
    if before is None:
        print(f"not measured: the pipeline of commit {OLD_COMMIT}; --old measures it too")
    else:
        ratio = before.whole_s / first.whole_s
        bounds.at_least("the old pipeline's time to this one's", ratio, RATIO, "")
    return not bounds.missed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit.pipeline")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--new", type=int, default=NEW)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(dir=arguments.folder, prefix="logberg-audit-pipeline-"))
    try:
        met = measure(arguments, scratch, arguments.folder or scratch)
    finally:
        shutil.rmtree(scratch)
    sys.exit(not met)


if __name__ == "__main__":
    main()
