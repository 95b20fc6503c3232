"""The pipeline names what is wrong with a log, a disk or its folder, and loses and doubles nothing.

Rule: the pipeline runs in one process here, so that many cases cost little. What Spark makes of an
error of a task is in `test_pipeline`.
"""

import re
import shutil
from pathlib import Path

import pytest

from audit.generated import write_history
from audit.lake.commit import committed_batch
from audit.lake.compaction import compact, vacuum
from audit.lake.place import LakeError, LakePlace
from audit.places.replicas import NoLogError, one_replica
from audit.spark.pipeline.carried_store import CarriedStore, PipelineFolderError, PlannedRange
from audit.tables import KEPT
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError
from tests.damaged_logs import (
    HARMS,
    append_a_newer_record,
    segments,
    stop_in_the_last_batch,
)
from tests.spark.cut_logs import cut_log
from tests.spark.kept_rows import JOBS, check, kept_rows
from tests.spark.log_writer import LogWriter
from tests.spark.one_process import take_in
from tests.spark.small_disk import fill, small_disk

PER_TRIGGER = 150
REFUSED = (NoLogError, LedgerError, LakeError, RecordDecodeError, PipelineFolderError)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's folder with a log of some segments."""
    folder = tmp_path_factory.mktemp("written")
    write_history(folder, records=1_200, seed=4, segment_bytes=16_000)
    return folder / "controller-1"


def begun(written: Path, folder: Path) -> tuple[Path, Path]:
    """Take in a log's first segment; return the node's folder with all of it, and the tables."""
    log, out = folder / "node", folder / "out"
    shutil.copytree(written, log)
    (log / "manifest").unlink(missing_ok=True)
    for later in segments(log)[1:]:
        later.rename(folder / later.name)
    take_in(log, out)
    for later in folder.glob("*.log"):
        later.rename(log / "log" / later.name)
    assert len(segments(log)) > 2
    return log, out


def restore(written: Path, log: Path) -> None:
    shutil.rmtree(log / "log")
    shutil.copytree(written / "log", log / "log")


# -- the log --------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_harmed_log_is_told_by_name_and_the_right_one_taken_in(harm, written, tmp_path):
    log, out = begun(written, tmp_path)
    harm(log)
    for _ in range(2):
        with pytest.raises(REFUSED) as caught:
            take_in(log, out, records_per_trigger=PER_TRIGGER)
        assert re.search(HARMS[harm], str(caught.value)), caught.value
    if harm is append_a_newer_record:
        return  # nobody takes back a record that was written
    restore(written, log)
    take_in(log, out, records_per_trigger=PER_TRIGGER)
    check(log, out)


def test_a_log_that_is_being_written_is_taken_in_up_to_its_last_whole_batch(written, tmp_path):
    log, out = begun(written, tmp_path)
    stop_in_the_last_batch(log)
    (log / "journal").mkdir()
    half = take_in(log, out).offset
    check(log, out)
    restore(written, log)
    assert take_in(log, out).offset > half
    check(log, out)


def test_a_log_that_is_shorter_than_what_was_planned_is_told(written, tmp_path):
    """A run was killed behind its plan, and then the log lost its end."""
    log, out = begun(written, tmp_path)
    end = one_replica(str(log)).reader().log_end
    store = CarriedStore(LakePlace(str(out)))
    carried = store.newest()
    store.write_plan(carried.batch + 1, PlannedRange(carried.offset, end))
    stop_in_the_last_batch(log)
    (log / "journal").mkdir()
    with pytest.raises(NoLogError, match=f"up to offset {end} was to be read, and it ends at"):
        take_in(log, out)
    restore(written, log)
    assert take_in(log, out).offset == end
    check(log, out)


def test_the_log_of_another_cluster_is_refused(written, tmp_path):
    _, out = begun(written, tmp_path)
    write_history(tmp_path / "other", records=1_200, seed=4, cluster_id="T3RoZXJDbHVzdGVy")
    for _ in range(2):
        with pytest.raises(LakeError, match="is of the cluster R2VuZXJhdGVkSGlzdG9yeQ, and this"):
            take_in(tmp_path / "other" / "controller-1", out)
        shutil.rmtree(out / "carried", ignore_errors=True)


def test_what_was_taken_in_may_be_cut_off_the_log(tmp_path):
    """The tables are those of the whole log, though its first half is gone when they are made."""
    whole = LogWriter(tmp_path / "whole", seed=42, segment_bytes=8_192).append(150)
    cut = LogWriter(tmp_path / "cut", seed=42, segment_bytes=8_192).append(120)
    out = tmp_path / "out"
    take_in(cut.folder, out, records_per_trigger=PER_TRIGGER)
    assert 0 < cut_log(cut) < cut.end
    cut.append(30)
    take_in(cut.folder, out, records_per_trigger=PER_TRIGGER)
    check(whole.folder, out)


def test_a_followed_log_may_move_to_its_archive_and_the_tables_may_be_compacted(tmp_path):
    log = LogWriter(tmp_path / "log", seed=9, segment_bytes=8_192).append(90)
    out, place, seen = tmp_path / "out", LakePlace(str(tmp_path / "out")), []
    (log.folder / "archive").mkdir()

    class EnoughError(Exception):
        pass

    def grow(_offset: int, _end: int) -> None:
        check(log.folder, out)
        for path in KEPT:
            if compact(place, path, few_files=0):
                seen.append(path)
                vacuum(place, path, retention_hours=0)
        check(log.folder, out)
        if len(list((log.folder / "archive").iterdir())) == 3:
            raise EnoughError
        oldest, *_, newest = log.segments
        assert oldest != newest
        oldest.rename(log.folder / "archive" / oldest.name)
        log.append(15)

    with pytest.raises(EnoughError):
        take_in(log.folder, out, follow=True, on_progress=grow, follow_s=0.01)
    take_in(log.folder, out)
    check(log.folder, out)
    assert {"bronze", "silver/partition_events"} <= set(seen)


# -- tables of another run ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["bronze", "gold/availability"])
@pytest.mark.parametrize("which", ["a newer table", "an older table", "no table"])
def test_a_table_of_another_run_is_refused(which, path, written, tmp_path):
    """Its micro-batches have other numbers, so rows would be left out or be there twice."""
    log, out = begun(written, tmp_path)
    early = shutil.copytree(out, tmp_path / "early")
    take_in(log, out, records_per_trigger=PER_TRIGGER)
    if which == "a newer table":
        (early / path).rename(tmp_path / "aside")
        shutil.copytree(out / path, early / path)
        mixed = early
    else:
        shutil.move(out / path, tmp_path / "aside")
        if which == "an older table":
            shutil.copytree(early / path, out / path)
        mixed = out
    before = {each: committed_batch(LakePlace(str(mixed)), each) for each in KEPT}
    with pytest.raises(PipelineFolderError, match=rf"{mixed}/{path} .* another run"):
        take_in(log, mixed)
    assert {each: committed_batch(LakePlace(str(mixed)), each) for each in KEPT} == before


def test_carried_state_that_was_put_back_from_a_copy_is_refused(written, tmp_path):
    log, out = begun(written, tmp_path)
    shutil.copytree(out / "carried", tmp_path / "carried")
    take_in(log, out, records_per_trigger=PER_TRIGGER)
    rows = {path: kept_rows(out, path) for path in JOBS}
    shutil.rmtree(out / "carried")
    shutil.copytree(tmp_path / "carried", out / "carried")
    with pytest.raises(PipelineFolderError, match="another run"):
        take_in(log, out)
    assert {path: kept_rows(out, path) for path in JOBS} == rows


# -- a disk without room --------------------------------------------------------------------------

LEFT_KIB = (0, 4, 16, 64, 128)
"""How much room there is. Each ends the run at another step."""


def test_a_full_disk_is_told_at_every_step_and_nothing_is_lost(written, tmp_path):
    log, base = begun(written, tmp_path)
    ended: list[str] = []
    with small_disk(tmp_path / "disk") as disk:
        for leave_kib in LEFT_KIB:
            out = disk / "out"
            shutil.copytree(base, out)
            ballast = fill(disk, leave_kib)
            said = refusal(log, out)
            ballast.unlink()
            if said is None:
                break
            assert "No space left on device" in said, said
            assert str(out) in said, said
            ended.append(said.partition(" can't be")[0].removeprefix(str(out)))
            take_in(log, out)
            check(log, out)
            shutil.rmtree(out)
    assert len(set(ended)) > 2, ended


def refusal(log: Path, out: Path) -> str | None:
    try:
        take_in(log, out)
    except (LakeError, OSError) as error:
        return str(error)
    return None
