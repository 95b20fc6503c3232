"""Compaction: fewer files, the same rows, and numbers of micro-batches that are still known."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake")

from audit.lake.commit import commit, committed_batch
from audit.lake.compaction import compact, vacuum
from audit.lake.delta import opened
from audit.lake.files import write_file
from audit.lake.place import LakePlace
from audit.lake.reading import dataset
from audit.lake.schemas import arrow_schema, rows_to_kept
from audit.tables import AVAILABILITY
from tests.unit.audit.lake.lakes import GOLD, gold_row, keys, parquet_files, put


@pytest.fixture
def place(tmp_path: Path) -> LakePlace:
    place = LakePlace(str(tmp_path), "cluster-1")
    for batch in range(6):
        rows = [gold_row(f"{batch}-{n}", f"2026-01-0{batch + 1}") for n in range(3)]
        put(place, GOLD, rows, batch)
    return place


def test_files_become_one_and_rows_keep_their_order(place: LakePlace) -> None:
    early = dataset(place, GOLD)
    assert compact(place, GOLD, few_files=5)
    table = opened(place, GOLD)
    assert table is not None
    assert len(table.file_uris()) == 1
    assert keys(place) == [f"{batch}-{n}" for batch in range(6) for n in range(3)]
    assert early.count_rows() == 18, "readers of the old version keep their files"
    assert not compact(place, GOLD, few_files=5)
    assert not put(place, GOLD, [gold_row("again", "2026-01-01")], 5)
    assert committed_batch(place, GOLD) == 5


def test_large_files_stay_as_they_are(place: LakePlace) -> None:
    assert compact(place, GOLD, few_files=0, target=6_000)
    table = opened(place, GOLD)
    assert table is not None
    assert len(table.file_uris()) == 2
    assert len(keys(place)) == 18


def test_few_small_files_wait(place: LakePlace) -> None:
    assert not compact(place, GOLD, few_files=6)
    assert not compact(place, "silver/none")


def test_old_files_go_and_so_does_what_no_commit_named(place: LakePlace) -> None:
    rows = rows_to_kept([gold_row("lost", "2026-01-01")], AVAILABILITY)
    write_file(place, GOLD, rows, "killed")
    compact(place, GOLD, few_files=0)
    assert vacuum(place, GOLD) == 0, "readers may still have them open"
    assert len(parquet_files(place, GOLD)) == 8
    assert vacuum(place, GOLD, retention_hours=0) == 7
    assert len(parquet_files(place, GOLD)) == 1
    assert len(keys(place)) == 18
    assert vacuum(place, "silver/none") == 0


def test_a_merged_file_is_skipped_by_its_ranges(place: LakePlace) -> None:
    compact(place, GOLD, few_files=0)
    file = write_file(
        place, GOLD, rows_to_kept([gold_row("z", "2026-02-01")], AVAILABILITY), "batch-9"
    )
    commit(place, GOLD, arrow_schema(AVAILABILITY), [file], batch=9)
    source = dataset(place, GOLD)
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra

    assert len(list(source.get_fragments(filter=pc.field("key") > "y"))) == 1
    assert len(list(source.get_fragments(filter=pc.field("key") > "1"))) == 2
