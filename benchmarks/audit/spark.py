"""Measures how fast Spark reads a log and makes tables of it: `python -m benchmarks.audit.spark`.

Prints records per second of wall-clock time. In one process: decoding alone, which is the floor,
and building the columns of bronze. In Spark with two cores: a count; bronze without writing it;
bronze as Parquet by day; silver's table of partition events, which is nearly the whole log, as
Parquet by day. `busy` is processor time of Java and Python together. The log is a generated
history, made once and kept in the folder. `benchmarks.audit.pipeline` measures the pipeline.

--records N      how long the log is (5,000,000)
--folder FOLDER  where logs and tables go (a temporary folder)
--cores N        how many cores all of it may use (2), Java and Python together
--only NAME      one of floor, scan, bronze, silver
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from audit.generated import write_history
from audit.spark.session import audit_session
from audit.spark.source.bronze import ALL_COLUMNS, BRONZE_COLUMNS, bronze_rows
from audit.spark.source.log_source import read_log
from audit.spark.source.reading import Piece, open_longest, plan, read_piece
from audit.spark.submit import submit
from ledger.segments import SEGMENT_BYTES
from metadata.codec import decode_records

RECORDS = 5_000_000
SEED = 1
TARGET_S = 60.0
_BYTES_A_RECORD = 46
PARTS = ("floor", "scan", "bronze", "silver")


class Table:
    """Prints a line as soon as it is measured."""

    def __init__(self, records: int) -> None:
        self._records = records
        print(f"{'':46}{'seconds':>9}{'records/s':>12}{'busy':>9}{'load':>7}", flush=True)

    def time(self, what: str, work: Callable[[], object], records: int | None = None) -> float:
        """Measure some work; returns its seconds."""
        begun, busy = time.perf_counter(), processor_s()
        work()
        took, busy = time.perf_counter() - begun, processor_s() - busy
        rate = (self._records if records is None else records) / took
        load = os.getloadavg()[0]
        print(f"{what:46}{took:9.1f}{rate:12,.0f}{busy:9.1f}{load:7.1f}", flush=True)
        return took


def processor_s() -> float:
    """Seconds of processor time of this process and all below it, Java and its Pythons too."""
    ticks = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile; whoever waited for it has its time
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


def history(folder: Path, records: int) -> Path:
    """Return the node's folder of a generated history; made if it isn't there."""
    target = folder / f"history-{records}"
    if not target.exists():
        unfinished = folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        # Eight segments or so, however long: some are to come later (`increment`).
        segment_bytes = min(max(records * _BYTES_A_RECORD // 8, 1 << 20), SEGMENT_BYTES)
        write_history(unfinished, records=records, seed=SEED, segment_bytes=segment_bytes)
        unfinished.rename(target)
    return target / "controller-1"


def pieces(log: Path) -> tuple[int, list[Piece]]:
    """Return the log's end and the pieces that two cores would read."""
    replica, reader = open_longest([str(log)])
    return reader.log_end, plan([str(log)], replica, reader, 0, reader.log_end, 8)


def floor(table: Table, log: Path) -> None:
    """What one process does without Spark."""
    _, found = pieces(log)

    def decode() -> None:
        for piece in found:
            for batch in read_piece(piece):
                decode_records(batch.records)

    def build(columns: list[str]) -> None:
        for piece in found:
            for _ in bronze_rows(read_piece(piece), columns):
                pass

    table.time("one process: read, check, decode (the floor)", decode)
    table.time("one process: to Arrow, bronze's columns", lambda: build(list(BRONZE_COLUMNS)))
    table.time("one process: to Arrow, with record and fields", lambda: build(list(ALL_COLUMNS)))


def scan(table: Table, spark: SparkSession, log: Path) -> None:
    """Reading without writing."""
    places = [str(log)]
    table.time("Spark: count", lambda: read_log(spark, places, columns=["offset"]).count())
    whole = read_log(spark, places)
    table.time(
        "Spark: bronze's columns", lambda: whole.write.format("noop").mode("overwrite").save()
    )


def bronze(table: Table, spark: SparkSession, log: Path, out: Path) -> None:
    """Bronze as Parquet."""
    frame = read_log(spark, [str(log)])
    table.time(
        "Spark: bronze as Parquet by day",
        lambda: frame.write.mode("overwrite").partitionBy("day").parquet(str(out / "bronze")),
    )
    print(f"{'':46}{size_mb(log / 'log'):9.0f} MB of log, {size_mb(out / 'bronze'):.0f} MB")


def silver(table: Table, spark: SparkSession, log: Path, out: Path) -> None:
    """The largest table of silver as Parquet, straight from the log."""
    took = table.time(
        "Spark: silver (partitions) as Parquet by day",
        lambda: submit(spark, "partition_events", [str(log)], str(out), None),
    )
    print(f"{'':46}target: {TARGET_S:.0f} s; {'met' if took <= TARGET_S else 'missed'}")


def size_mb(folder: Path) -> float:
    """How much lies in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def chosen(arguments: argparse.Namespace) -> Iterator[str]:
    """What to measure."""
    return (part for part in PARTS if arguments.only in (None, part))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit.spark")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="logberg-audit-spark-"))
    folder.mkdir(parents=True, exist_ok=True)
    log = history(folder, arguments.records)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    out = Path(tempfile.mkdtemp(dir=folder, prefix="out-"))
    parts = list(chosen(arguments))
    table = Table(pieces(log)[0])
    try:
        if "floor" in parts:
            floor(table, log)
        if parts != ["floor"]:
            with_spark(table, parts, log, out, arguments.cores)
    finally:
        shutil.rmtree(out if arguments.folder else folder)


def with_spark(table: Table, parts: list[str], log: Path, out: Path, cores: int) -> None:
    sessions = []
    table.time("Spark: start", lambda: sessions.append(audit_session(master=f"local[{cores}]")), 0)
    (spark,) = sessions
    if "scan" in parts:
        scan(table, spark, log)
    if "bronze" in parts:
        bronze(table, spark, log, out)
    if "silver" in parts:
        silver(table, spark, log, out)
    spark.stop()


if __name__ == "__main__":
    main()
