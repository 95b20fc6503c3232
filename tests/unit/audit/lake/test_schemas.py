"""Kept tables' columns: made from audit.tables, and the same values in other kinds."""

import datetime as dt

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("deltalake")

from audit.lake.schemas import arrow_schema, rows_to_kept, to_kept  # noqa: E402
from audit.tables import AVAILABILITY, BATCHES, BY_NAME, KEPT, PARTITION_INTERVALS  # noqa: E402

TIME = pa.timestamp("us", tz="UTC")


ALL = {table.name: table for table in (*BY_NAME.values(), *KEPT.values())}


@pytest.mark.parametrize("table", ALL.values(), ids=ALL)
def test_a_schema_has_the_columns_in_their_order(table) -> None:
    schema = arrow_schema(table)
    assert len(schema) == len(table.columns)
    for column, field in zip(table.columns, schema, strict=True):
        assert field.nullable == column.nullable
        assert field.name.removesuffix("_at") == column.name.removesuffix("_ms") or (
            field.name == column.name
        )
        assert (field.type == TIME) == (column.name.endswith("_ms") and field.name != column.name)
        assert (field.type == pa.date32()) == (column.name == "day")


def test_times_are_kept_and_durations_stay_numbers() -> None:
    assert arrow_schema(PARTITION_INTERVALS).field("until_at").type == TIME
    assert arrow_schema(BATCHES).field("timestamp").type == TIME
    assert arrow_schema(AVAILABILITY).field("offline_ms").type == pa.int64()


def test_rows_keep_their_values() -> None:
    row = (
        "id",
        0,
        5,
        "orders",
        None,
        1_700_000_000_123,
        None,
        -1,
        (1, 2),
        (1, 2, 3),
        2,
        True,
        False,
    )
    kept = rows_to_kept([row], PARTITION_INTERVALS).to_pylist()
    assert kept == [
        {
            "topic_id": "id",
            "partition": 0,
            "from_offset": 5,
            "topic_name": "orders",
            "until_offset": None,
            "from_at": dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC),
            "until_at": None,
            "leader": -1,
            "isr": [1, 2],
            "replicas": [1, 2, 3],
            "min_isr": 2,
            "offline": True,
            "under_min_isr": False,
        }
    ]


@pytest.mark.parametrize("time_ms", [253_402_300_800_000, 2**63 - 1])
def test_a_time_that_no_tool_can_show_is_kept_as_the_last_one(time_ms: int) -> None:
    row = ("r", 0, "s", 1, 1, time_ms, "", "", True)
    (kept,) = rows_to_kept([row], BATCHES).to_pylist()
    assert kept["timestamp"] == dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, dt.UTC)


def test_narrow_numbers_days_and_times_that_are_such_already_are_taken() -> None:
    day = dt.date(2026, 1, 2)
    values = {column.name: pa.array([1], pa.int32()) for column in AVAILABILITY.columns}
    values |= {name: pa.array(["x"]) for name in ("kind", "key")} | {"day": pa.array([day])}
    (row,) = to_kept(pa.table(values | {"more": pa.array([1])}), AVAILABILITY).to_pylist()
    assert row == {"kind": "x", "key": "x", "day": day} | dict.fromkeys(
        row.keys() - {"kind", "key", "day"}, 1
    )


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="rows of availability need the column kind"):
        to_kept(pa.table({"key": ["x"]}), AVAILABILITY)
    with pytest.raises(ValueError, match="the column key is null in 1 rows"):
        rows_to_kept([("broker", None, "2026-01-01", 0, 0, 0, 0, 0)], AVAILABILITY)
