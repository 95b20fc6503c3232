"""The pipeline's tables are those of a whole log, however it was cut, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from audit.embedded import run_job as plain_job
from audit.places.replicas import open_replicas
from audit.spark.pipeline import run_pipeline
from audit.spark.pipeline_store import (
    ALERTS,
    BRONZE,
    GOLD_AVAILABILITY,
    GOLD_CHANGES,
    SILVER_PARTITIONS,
    SILVER_PRIVILEGED,
    PipelineFolderError,
    PipelineStore,
)
from audit.spark.settle import BEGIN
from audit.spark.tables import rows_of
from audit.tables import BY_NAME
from tests.spark.cut_logs import cut_log
from tests.spark.log_writer import LogWriter
from tests.spark.small_session import JAVA, SMALL

TABLES = {
    "partition_events": SILVER_PARTITIONS,
    "privileged": SILVER_PRIVILEGED,
    "changes": GOLD_CHANGES,
    "availability": GOLD_AVAILABILITY,
}
PER_TRIGGER = 130
SEED = 44
"""Its first transaction begins in micro-batch 0 and ends in 1, the one that is killed."""
CHILD = f"""
import sys
from pathlib import Path
from audit.spark.pipeline import run_pipeline
from audit.spark.session import audit_session
spark = audit_session(driver_memory="1g", settings={SMALL!r})
run_pipeline(spark, sys.argv[1], Path(sys.argv[2]), records_per_trigger={PER_TRIGGER})
"""


def check(spark, log: LogWriter, out: Path):
    """Each table equals the plain answer for the whole log; nothing is there twice."""
    store = PipelineStore(spark, out)
    try:
        for name, table in TABLES.items():
            wanted = plain_job(name, open_replicas(str(log.folder)))
            assert rows_of(store.read(table), BY_NAME[name]) == wanted, name
            assert wanted
        rows = store.read(BRONZE).select("offset", "batch", "type").collect()
    finally:
        store.close()
    start = open_replicas(str(log.folder))[0].reader().log_start
    assert sorted(row.offset for row in rows) == list(range(start, log.end))
    alerts = told(out)
    assert len({(a["kind"], a["subject"], a["offset"]) for a in alerts}) == len(alerts)
    privileged = [a["offset"] for a in alerts if a["kind"] == "privileged"]
    assert sorted(privileged) == [
        r[0] for r in plain_job("privileged", open_replicas(str(log.folder)))
    ]
    return rows


def told(out: Path):
    lines = [
        line for path in sorted((out / ALERTS).iterdir()) for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


@pytest.mark.timeout(900)
def test_killed_in_a_micro_batch_and_started_again(tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=SEED, segment_bytes=16_384).append(70)
    out = tmp_path / "out"
    kill_amid(log.folder, out, batch=1)
    assert (out / "carried" / f"{0:010d}.json").exists()
    assert not (out / "carried" / f"{1:010d}.json").exists()
    assert list((out / SILVER_PARTITIONS).glob("day=*/batch=1")), "killed before it had written"
    log.append(30)
    run_pipeline(spark, str(log.folder), out)
    rows = check(spark, log, out)
    assert waited_for_its_end(rows, log), "no transaction reached over a micro-batch's end"


def waited_for_its_end(rows, log):
    """A transaction was settled whose records came in more than one micro-batch."""
    batch_of = {row.offset: row.batch for row in rows}
    settled = plain_job("log", open_replicas(str(log.folder)))
    columns = [column.name for column in BY_NAME["log"].columns]
    at = {name: columns.index(name) for name in ("offset", "type", "settled_base")}
    return [
        row
        for row in settled
        if row[at["type"]] == BEGIN
        and row[at["settled_base"]] is not None
        and batch_of[row[at["settled_base"]]] > batch_of[row[at["offset"]]]
    ]


def kill_amid(log: Path, out: Path, batch: int):
    """Run the pipeline in a process of its own, and kill it while it writes a micro-batch."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(log), str(out)],
        start_new_session=True,
        env={**os.environ, "JAVA_TOOL_OPTIONS": JAVA},
        cwd=Path(__file__).parents[2],
    )
    try:
        deadline = time.monotonic() + 400
        while not list((out / SILVER_PARTITIONS).glob(f"day=*/batch={batch}/*.parquet")):
            assert child.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.killpg(child.pid, signal.SIGKILL)  # Python and its JVM
        child.wait()


def test_a_log_that_was_cut_is_taken_in_from_its_checkpoint(tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=42, segment_bytes=8_192).append(120)
    cut_log(log)
    run_pipeline(spark, str(log.folder), tmp_path / "out")
    check(spark, log, tmp_path / "out")


def test_a_folder_without_its_checkpoint_is_refused(tmp_path, spark):
    out = tmp_path / "out"
    (out / "carried").mkdir(parents=True)
    (out / "carried" / f"{0:010d}.json").write_text("{}")
    with pytest.raises(PipelineFolderError, match="empty folder"):
        PipelineStore(spark, out)
