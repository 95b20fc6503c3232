"""Reading: files are skipped, rows never."""

import datetime as dt
import itertools
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, create_table_with_add_actions

from audit.lake.place import LakePlace
from audit.lake.reading import dataset
from audit.lake.schemas import rows_to_kept
from audit.tables import PARTITION_INTERVALS
from tests.unit.audit.lake.lakes import INTERVALS, interval_row, put

ROWS = [
    interval_row(n, until=None if n % 3 == 0 else 10 * n, offline=n % 4 == 1) for n in range(24)
]
FILES = [ROWS[at : at + 4] for at in range(0, 24, 4)]
LONG = "a-topic-" * 6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> LakePlace:
    place = LakePlace(str(tmp_path_factory.mktemp("lake")))
    for batch, rows in enumerate(FILES):
        put(place, INTERVALS, rows, batch)
    return place


def _filters() -> list[pc.Expression]:
    at = dt.datetime(1970, 1, 1, 0, 1, 40, tzinfo=dt.UTC)
    values: dict[str, list[object]] = {
        "partition": [0, 7, 8, 23, 99],
        "until_offset": [0, 10, 100, 230, 999],
        "topic_name": [LONG, LONG + "007", LONG + "023", LONG[:32], "z"],
        "until_at": [at, at.replace(year=2030)],
        "offline": [True, False],
    }
    compared = [
        compare(pc.field(name), pa.scalar(value, _type(name)))
        for name, many in values.items()
        for value in many
        for compare in (pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater)
    ]
    nulls = [pc.field(name).is_null() for name in values]
    return [*compared, *nulls, *(~each for each in nulls), pc.field("offline")]


def _type(name: str) -> pa.DataType:
    return rows_to_kept(ROWS, PARTITION_INTERVALS).schema.field(name).type


@pytest.mark.parametrize("number", range(len(_filters())))
def test_no_filter_loses_a_row(place: LakePlace, number: int) -> None:
    wanted = _filters()[number]
    whole = rows_to_kept(ROWS, PARTITION_INTERVALS)
    for source in (dataset(place, INTERVALS), _by_delta_rs(place)):
        found = source.to_table(filter=wanted).column("partition").to_pylist()
        assert sorted(found) == whole.filter(wanted).column("partition").to_pylist()


def _by_delta_rs(place: LakePlace):
    """The dataset of somebody who doesn't know Logberg."""
    return DeltaTable(place.table_url(INTERVALS)).to_pyarrow_dataset()


VERY_LONG = "t" * 5_000
"""Parquet's footer has no range for a column with such a text."""


@pytest.mark.parametrize(
    "wanted",
    [
        pc.field("topic_name").is_valid(),
        pc.field("topic_name") == VERY_LONG,
        pc.field("topic_name") >= "a",
        pc.field("topic_name") < "z",
    ],
    ids=str,
)
def test_a_row_with_a_very_long_text_is_found(tmp_path: Path, wanted: pc.Expression) -> None:
    place = LakePlace(str(tmp_path))
    row = interval_row(1, until=None)
    put(place, INTERVALS, [(*row[:3], VERY_LONG, *row[4:])], 0)
    for source in (dataset(place, INTERVALS), _by_delta_rs(place)):
        assert source.to_table(filter=wanted).num_rows == 1


@pytest.mark.parametrize(
    ("wanted", "files"),
    [
        (pc.field("partition") == 9, 1),
        (pc.field("partition") < 8, 2),
        (pc.field("until_offset") > 195, 1),
        (pc.field("topic_name") > LONG, 6),
        (pc.field("topic_name") > "b", 0),
        (pc.field("offline"), 6),
        (pc.field("from_at") > dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 0),
    ],
)
def test_files_that_can_t_hold_a_row_are_skipped(
    place: LakePlace, wanted: pc.Expression, files: int
) -> None:
    source = dataset(place, INTERVALS)
    assert len(list(source.get_fragments(filter=wanted))) == files


def test_duckdb_reads_the_same_rows(place: LakePlace) -> None:
    intervals = dataset(place, INTERVALS)
    found = duckdb.sql(
        "SELECT partition, until_at, isr FROM intervals "
        "WHERE NOT offline AND from_at < '2026-01-01' ORDER BY partition"
    ).fetchall()
    wanted = [(row[1], row[6], list(row[8])) for row in ROWS if not row[11]]
    assert [(n, None if at is None else int(at.timestamp() * 1000), i) for n, at, i in found] == (
        wanted
    )
    assert intervals.schema.field("until_at").type == pa.timestamp("us", tz="UTC")


def test_delta_rs_still_loses_rows_without_a_range(tmp_path: Path) -> None:
    """Why our files have a range for each column. If this fails, `as_dataset` may go."""
    from deltalake import Schema  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415

    rows = pa.table({"a": [1, 2], "b": [True, False]})
    parquet.write_table(rows, tmp_path / "part.parquet")
    size = (tmp_path / "part.parquet").stat().st_size
    known = '{"numRecords":2,"minValues":{"a":1},"maxValues":{"a":2},"nullCount":{"a":0,"b":0}}'
    create_table_with_add_actions(
        str(tmp_path),
        Schema.from_arrow(rows.schema),
        [AddAction("part.parquet", size, {}, 0, True, known)],
    )
    source = DeltaTable(str(tmp_path)).to_pyarrow_dataset()
    assert source.count_rows(filter=pc.field("b") == pa.scalar(value=True)) == 0


def test_statistics_are_those_of_the_rows(place: LakePlace) -> None:
    known = pa.table(DeltaTable(place.table_url(INTERVALS)).get_add_actions(flatten=True))
    actions = sorted(known.to_pylist(), key=lambda action: action["min.partition"])
    for rows, action in zip(FILES, actions, strict=True):
        ends = [row[4] for row in rows]
        present = [until for until in ends if until is not None]
        assert action["num_records"] == len(rows)
        assert action["null_count.until_offset"] == len(ends) - len(present)
        assert action["min.until_offset"] == min(present)
        assert action["max.until_offset"] == max(present)
        assert action["max.topic_name"] == LONG[:32] + "\U0010ffff"
    assert list(itertools.chain(*FILES)) == ROWS
