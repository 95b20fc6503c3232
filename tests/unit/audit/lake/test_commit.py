"""Commits: once each, whole, and never into tables of somebody else."""

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

import deltalake
import pyarrow as pa
import pyarrow.compute as pc

from audit.lake.commit import commit, committed_batch
from audit.lake.files import write_file
from audit.lake.place import LakeError, LakePlace
from audit.lake.reading import dataset, kept_datasets
from audit.lake.schemas import arrow_schema, rows_to_kept
from audit.tables import AVAILABILITY, CHANGES
from tests.unit.audit.lake.lakes import (
    GOLD,
    INTERVALS,
    gold_row,
    interval_row,
    keys,
    parquet_files,
    put,
)

ROOT = Path(__file__).parents[4]
FIRST = dt.date(2026, 1, 1)


@pytest.fixture
def place(tmp_path: Path) -> LakePlace:
    return LakePlace(str(tmp_path / "kept"), "cluster-1")


def test_a_micro_batch_that_runs_again_adds_nothing_twice(place: LakePlace) -> None:
    assert committed_batch(place, GOLD) is None
    for batch in (0, 1):
        rows = [gold_row(f"{batch}", "2026-01-01")]
        assert put(place, GOLD, rows, batch)
        assert not put(place, GOLD, rows, batch)
        assert not put(place, GOLD, rows, 0)
        assert committed_batch(place, GOLD) == batch
    assert sorted(keys(place)) == ["0", "1"]


def test_nobody_sees_a_file_before_its_commit(place: LakePlace) -> None:
    put(place, GOLD, [gold_row("a", "2026-01-01")], 0)
    rows = rows_to_kept([gold_row("b", "2026-01-01")], AVAILABILITY)
    file = write_file(place, GOLD, rows, "batch-1")
    assert keys(place) == ["a"]
    commit(place, GOLD, arrow_schema(AVAILABILITY), [file, None], batch=1)
    assert sorted(keys(place)) == ["a", "b"]


def test_a_task_that_runs_again_leaves_the_first_file_as_it_is(place: LakePlace) -> None:
    rows = rows_to_kept([gold_row("a", "2026-01-01")], AVAILABILITY)
    one, two = (write_file(place, GOLD, rows, "batch-0") for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.path != two.path


def test_rows_are_replaced_with_the_commit_that_brings_the_new_ones(place: LakePlace) -> None:
    days = [f"2026-01-0{day}" for day in (1, 2, 3)]
    put(place, GOLD, [gold_row(f"old-{day}", day) for day in days], 0)
    before = dataset(place, GOLD)
    put(place, GOLD, [gold_row("old-4", "2026-01-04")], 1)
    put(place, GOLD, [gold_row("new", days[1])], 2, pc.field("day") > pc.scalar(FIRST))
    assert sorted(keys(place)) == ["new", "old-2026-01-01"]
    assert before.count_rows() == 3, "a version that is open stays as it is"


def test_replacing_is_done_once_and_needs_no_new_rows(place: LakePlace) -> None:
    put(place, INTERVALS, [interval_row(n, until=None if n % 2 else 9) for n in range(6)], 0)
    still_open = pc.field("until_offset").is_null()
    assert put(place, INTERVALS, [], 1, still_open)
    found = dataset(place, INTERVALS).to_table().column("partition").to_pylist()
    assert found == [0, 2, 4]
    assert put(place, INTERVALS, [interval_row(7, until=None)], 2, still_open)
    assert not put(place, INTERVALS, [], 2, still_open)
    found = dataset(place, INTERVALS).to_table().column("partition").to_pylist()
    assert sorted(found) == [0, 2, 4, 7]


def test_a_table_can_be_empty(place: LakePlace) -> None:
    assert put(place, GOLD, [], 0)
    assert dataset(place, GOLD).to_table().schema == arrow_schema(AVAILABILITY)
    assert keys(place) == []
    assert parquet_files(place, GOLD) == []


def test_tables_of_another_cluster_are_refused_by_name(place: LakePlace) -> None:
    put(place, GOLD, [gold_row("a", "2026-01-01")], 0)
    other = place._replace(cluster_id="cluster-2")
    for act in (
        lambda: put(other, GOLD, [], 1),
        lambda: committed_batch(other, GOLD),
        lambda: dataset(other, GOLD),
        lambda: kept_datasets(other),
    ):
        with pytest.raises(LakeError, match="gold/availability is of the cluster cluster-1, and"):
            act()
    assert keys(place._replace(cluster_id="")) == ["a"]


def test_other_columns_are_refused_by_name(place: LakePlace) -> None:
    put(place, GOLD, [gold_row("a", "2026-01-01")], 0)
    with pytest.raises(LakeError, match=r"other columns \(count, fenced_ms, first_at"):
        commit(place, GOLD, arrow_schema(CHANGES), [], batch=1)


@pytest.mark.parametrize(
    ("description", "said"),
    [
        (None, "did not write"),
        ("ours", "did not write"),
        (
            '{"cluster": "cluster-1", "layout": 99}',
            "has layout 99, and this release knows layout 1",
        ),
    ],
)
def test_tables_of_somebody_else_are_refused(
    place: LakePlace, description: str | None, said: str
) -> None:
    folder = Path(place.where) / GOLD
    deltalake.write_deltalake(str(folder), pa.table({"a": [1]}), description=description)
    for act in (lambda: put(place, GOLD, [], 0), lambda: dataset(place, GOLD)):
        with pytest.raises(LakeError, match=said):
            act()
    assert deltalake.DeltaTable(str(folder)).version() == 0


def test_a_folder_without_tables_says_how_to_make_some(place: LakePlace) -> None:
    for act in (lambda: dataset(place, GOLD), lambda: kept_datasets(place)):
        with pytest.raises(LakeError, match="Keep tables first: logberg audit run pipeline"):
            act()
    assert not Path(place.where).exists()


def test_a_place_that_is_no_folder_and_one_of_an_unknown_kind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LakeError, match=r"file/gold/availability can't be"):
        put(LakePlace(str(tmp_path / "file")), GOLD, [gold_row("a", "2026-01-01")], 0)
    with pytest.raises(LakeError, match="gs://bucket/kept: tables are kept in a folder or"):
        dataset(LakePlace("gs://bucket/kept"), GOLD)


FULL_DISK = """
import resource, sys
from audit.lake.place import LakeError, LakePlace
from tests.unit.audit.lake.lakes import GOLD, gold_row, put
place = LakePlace(sys.argv[1], "cluster-1")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    put(place, GOLD, [gold_row(f"{n * n * 7919:032x}", "2026-01-01", n) for n in range(9_000)], 1)
except LakeError as error:
    print(error)
"""


def test_a_disk_that_is_full_in_the_middle_shows_nothing_and_leaves_nothing(
    place: LakePlace,
) -> None:
    """A limit on the size of files fails a write in the middle, as a full disk does."""
    put(place, GOLD, [gold_row("a", "2026-01-01")], 0)
    before = parquet_files(place, GOLD)
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, place.where],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{place.where}/{GOLD} can't be written: " in done.stdout
    assert "File too large" in done.stdout
    assert keys(place) == ["a"]
    assert committed_batch(place, GOLD) == 0
    assert parquet_files(place, GOLD) == before
    assert put(place, GOLD, [gold_row("b", "2026-01-01")], 1)
