"""The pipeline's tables are those of a whole log, however it was cut, killed and started again."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from audit.embedded import run_job as plain_job
from audit.findings.log_findings import of_log
from audit.generated import write_history
from audit.lake.place import LakePlace
from audit.places.replicas import NoLogError, open_replicas
from audit.reading.feed import Question
from audit.spark.folds.transactions import BEGIN
from audit.spark.pipeline.carried_store import CarriedStore, PipelineFolderError
from audit.spark.pipeline.pipeline import run_pipeline
from audit.spark.session import SparkError, failure_sentence
from audit.spark.source.reading import plan as pieces_of
from audit.tables import BY_NAME, KEPT
from benchmarks.audit import event_log
from runtime.disk.interface import FolderInUseError
from runtime.disk.real import RealDisk
from tests.spark.cut_logs import cut_log
from tests.spark.kept_rows import check, findings
from tests.spark.log_writer import LogWriter
from tests.spark.small_disk import fill, small_disk
from tests.spark.small_session import JAVA, SMALL

PER_TRIGGER = 130
SEED = 44
"""Its first transaction begins in micro-batch 0 and ends in 1, the one that is killed."""
CHILD = f"""
import sys
from pathlib import Path
from audit.spark.pipeline.pipeline import run_pipeline
from audit.spark.session import audit_session
spark = audit_session(driver_memory="1g", settings={{**{SMALL!r}, **SETTINGS}})
run_pipeline(spark, sys.argv[1], Path(sys.argv[2]), records_per_trigger={PER_TRIGGER}, **MORE)
"""
JOBS_A_MICRO_BATCH = 10


def begun(log: Path, out: Path, settings: dict[str, str], more: dict[str, object]):
    """Run the pipeline in a process of its own."""
    code = CHILD.replace("SETTINGS", repr(settings)).replace("MORE", repr(more))
    return subprocess.Popen(
        [sys.executable, "-c", code, str(log), str(out)],
        start_new_session=True,
        env={**os.environ, "JAVA_TOOL_OPTIONS": JAVA},
        cwd=Path(__file__).parents[2],
    )


def kill_when(child, condition) -> None:
    """Kill a process and its JVM as soon as a condition holds."""
    try:
        deadline = time.monotonic() + 400
        while not condition():
            assert child.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@pytest.mark.timeout(900)
def test_killed_while_it_follows_and_started_again(tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=SEED, segment_bytes=16_384).append(70)
    out = tmp_path / "out"
    kill_when(
        begun(log.folder, out, {}, {"follow": True}),
        lambda: list((out / "bronze").glob("batch-1-*.parquet")),
    )
    store = CarriedStore(LakePlace(str(out)))
    planned = store.plan(1)
    assert planned is not None
    assert store.newest().batch == 0
    log.append(30)
    done = run_pipeline(spark, str(log.folder), out)
    assert done.offset == log.end
    check(log.folder, out)
    assert reached_over(log, planned.start), "no transaction reached over a micro-batch's end"


def reached_over(log: LogWriter, offset: int) -> bool:
    """A transaction was settled that began before an offset and ended behind it."""
    columns = [column.name for column in BY_NAME["log"].columns]
    at, kind, base = (columns.index(name) for name in ("offset", "type", "settled_base"))
    return any(
        row[kind] == BEGIN and row[at] < offset <= (row[base] or 0)
        for row in plain_job("log", open_replicas(str(log.folder)))
    )


@pytest.mark.parametrize("per_trigger", [1, 37, 1_000_000])
def test_any_cut_gives_the_same_tables(tmp_path, spark, per_trigger):
    batches = 12 if per_trigger == 1 else 90
    log = LogWriter(tmp_path / "log", seed=7, segment_bytes=16_384).append(batches)
    run_pipeline(spark, str(log.folder), tmp_path / "out", records_per_trigger=per_trigger)
    check(log.folder, tmp_path / "out")


def test_a_micro_batch_runs_again_after_each_of_its_steps(tmp_path, spark):
    """Whatever of a micro-batch was committed, running it again adds nothing twice."""
    log = LogWriter(tmp_path / "log", seed=SEED, segment_bytes=16_384).append(40)
    out = tmp_path / "out"
    run_pipeline(spark, str(log.folder), out, records_per_trigger=PER_TRIGGER)
    log.append(30)
    shutil.copytree(out, tmp_path / "before")
    run_pipeline(spark, str(log.folder), out)
    for committed in range(len(KEPT) + 1):
        again = tmp_path / f"again-{committed}"
        shutil.copytree(tmp_path / "before", again)
        position = f"{CarriedStore(LakePlace(str(again))).newest().batch + 1:010d}"
        shutil.copy(out / "carried" / position / "plan", again / "carried" / position / "plan")
        for path in list(KEPT)[:committed]:
            shutil.rmtree(again / path)
            shutil.copytree(out / path, again / path)
        run_pipeline(spark, str(log.folder), again)
        check(log.folder, again)


def test_a_log_that_was_cut_is_taken_in_from_its_checkpoint(tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=42, segment_bytes=8_192).append(120)
    cut_log(log)
    run_pipeline(spark, str(log.folder), tmp_path / "out", records_per_trigger=150)
    check(log.folder, tmp_path / "out")


@pytest.mark.parametrize("per_trigger", [1_000, 1_000_000])
def test_findings_are_those_of_the_log(tmp_path, spark, per_trigger):
    """The pipeline's findings are the embedded engine's, however the log was cut."""
    write_history(tmp_path / "log", days=2, seed=5, open_transaction=True)
    log, out, given = tmp_path / "log" / "controller-1", tmp_path / "out", []
    run_pipeline(
        spark,
        str(log),
        out,
        records_per_trigger=per_trigger,
        on_findings=lambda found, _: given.extend(found),
    )
    wanted = of_log(Question(open_replicas(str(log))))
    assert findings(out) == sorted((one.offset, one.id, one.sentence, one.open) for one in wanted)
    assert {one.id for one in given} >= {one.id for one in wanted if not one.open}
    assert wanted


def test_a_followed_log_is_taken_in_as_it_grows(tmp_path, spark):
    log = LogWriter(tmp_path / "log", seed=9, segment_bytes=16_384).append(30)
    out, seen = tmp_path / "out", []

    class EnoughError(Exception):
        pass

    def grow(offset: int, end: int) -> None:
        assert offset == end == log.end
        check(log.folder, out)
        seen.append(end)
        if len(seen) == 3:
            raise EnoughError
        log.append(20)

    with pytest.raises(EnoughError):
        run_pipeline(spark, str(log.folder), out, follow=True, on_progress=grow, follow_s=0.01)
    assert len(set(seen)) == 3


def test_few_jobs_and_one_decoding_a_micro_batch(tmp_path):
    """Counted from Spark's own event log."""
    log = LogWriter(tmp_path / "log", seed=3, segment_bytes=16_384).append(60)
    logged = tmp_path / "events"
    logged.mkdir()
    child = begun(log.folder, tmp_path / "out", event_log.settings(logged), {})
    assert child.wait(400) == 0
    check(log.folder, tmp_path / "out")
    counts = event_log.counted(event_log.events(logged))
    micro_batches = [words for words in counts if words.startswith("micro-batch ")]
    assert len(micro_batches) >= 2
    assert set(counts) == set(micro_batches), "Spark does nothing beside micro-batches"
    read = sum(pieces_in(log, offset) for offset in planned_ends(log))
    assert sum(each.decoding_tasks for each in counts.values()) == read
    for words, each in counts.items():
        assert each.jobs <= JOBS_A_MICRO_BATCH, words
        assert len(each.tasks) == 2, "one stage decodes and one folds"


def planned_ends(log: LogWriter) -> list[tuple[int, int]]:
    """The ranges of micro-batches of PER_TRIGGER records."""
    found, start = [], 0
    while start < log.end:
        end = start
        for batch in log.batches:
            header = batch.header
            if header.base_offset >= start and (
                header.end_offset <= start + PER_TRIGGER or end == start
            ):
                end = max(end, header.end_offset)
        found.append((start, end))
        start = end
    return found


def pieces_in(log: LogWriter, planned: tuple[int, int]) -> int:
    (replica,) = open_replicas(str(log.folder))
    return len(pieces_of([str(log.folder)], replica, replica.reader(), *planned, 4))


# -- bad input ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory, spark):
    """A log and its tables, which tests copy."""
    folder = tmp_path_factory.mktemp("taken-in")
    log = LogWriter(folder / "log", seed=5, segment_bytes=16_384).append(30)
    run_pipeline(spark, str(log.folder), folder / "out")
    return folder


def copied(taken_in: Path, tmp_path: Path) -> tuple[Path, Path]:
    shutil.copytree(taken_in, tmp_path / "copy")
    return tmp_path / "copy" / "log", tmp_path / "copy" / "out"


def test_tables_without_what_was_carried_are_refused(taken_in, tmp_path, spark):
    log, out = copied(taken_in, tmp_path)
    shutil.rmtree(out / "carried")
    with pytest.raises(PipelineFolderError, match="Give it an empty folder"):
        run_pipeline(spark, str(log), out)


def test_a_missing_part_is_named(taken_in, tmp_path, spark):
    log, out = copied(taken_in, tmp_path)
    grow(log)
    (out / "carried" / f"{1:010d}" / "part-0002").unlink()
    with pytest.raises(SparkError) as caught:
        run_pipeline(spark, str(log), out)
    assert "part-0002 is missing" in failure_sentence(caught.value)


def grow(folder: Path, seed: int = 5, batches: int = 60) -> LogWriter:
    """Write the log anew, longer."""
    shutil.rmtree(folder)
    return LogWriter(folder, seed=seed, segment_bytes=16_384).append(batches)


def test_what_a_newer_release_carried_is_refused(taken_in, tmp_path, spark):
    log, out = copied(taken_in, tmp_path)
    state = out / "carried" / f"{1:010d}" / "state"
    known = msgspec.msgpack.decode(state.read_bytes())
    state.write_bytes(msgspec.msgpack.encode(known | {"format": 7}))
    with pytest.raises(PipelineFolderError, match="has format 7, and this release knows 1"):
        run_pipeline(spark, str(log), out)
    state.write_bytes(b"\xc1")
    with pytest.raises(PipelineFolderError, match="can't be read"):
        run_pipeline(spark, str(log), out)


@pytest.mark.parametrize(
    ("batches", "why"), [(5, "it ends at offset"), (60, "its chain hash there differs")]
)
def test_another_log_is_refused(taken_in, tmp_path, spark, batches, why):
    log, out = copied(taken_in, tmp_path)
    grow(log, seed=6, batches=batches)
    with pytest.raises(NoLogError, match=why):
        run_pipeline(spark, str(log), out)


def test_a_folder_in_use_is_refused(taken_in, tmp_path, spark):
    log, out = copied(taken_in, tmp_path)
    disk = RealDisk(out)
    disk.lock()
    try:
        with pytest.raises(FolderInUseError):
            run_pipeline(spark, str(log), out)
    finally:
        disk.close()


def test_damage_is_named_and_the_repaired_log_is_taken_in(taken_in, tmp_path, spark):
    log, out = copied(taken_in, tmp_path)
    grown = grow(log)
    victim = grown.segments[-1]
    whole = victim.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(grown.batches[-3].encoded) + 90] ^= 1
    victim.write_bytes(damaged)
    with pytest.raises(SparkError) as caught:
        run_pipeline(spark, str(log), out)
    assert "the checksum (CRC-32C) does not fit" in failure_sentence(caught.value)
    victim.write_bytes(whole)
    run_pipeline(spark, str(log), out)
    check(log, out)


def test_a_full_disk_is_named_and_nothing_is_lost(taken_in, tmp_path, spark):
    """A task of Spark meets it; `test_pipeline_harms` has the other steps."""
    with small_disk(tmp_path / "disk") as disk:
        log, out = copied(taken_in, disk)
        grow(log)
        ballast = fill(disk, leave_kib=4)
        with pytest.raises(SparkError) as caught:
            run_pipeline(spark, str(log), out)
        said = failure_sentence(caught.value)
        assert f"{out}/bronze can't be written" in said
        assert "No space left on device" in said
        ballast.unlink()
        run_pipeline(spark, str(log), out)
        check(log, out)
