"""Small kept tables for the tests of audit.lake."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from audit.lake.commit import commit
from audit.lake.files import write_file
from audit.lake.place import LakePlace
from audit.lake.reading import dataset
from audit.lake.schemas import arrow_schema, rows_to_kept
from audit.tables import AVAILABILITY, PARTITION_INTERVALS

GOLD = "gold/availability"
INTERVALS = "silver/partition_intervals"
TABLES = {GOLD: AVAILABILITY, INTERVALS: PARTITION_INTERVALS}


def gold_row(key: str, day: str, offline_ms: int = 0) -> tuple[Any, ...]:
    """One row of `availability`."""
    return ("partition", key, day, 1_000, offline_ms, 0, 0, 0)


def interval_row(number: int, *, until: int | None, offline: bool = False) -> tuple[Any, ...]:
    """One row of `partition_intervals`."""
    until_ms = None if until is None else until * 1_000
    state = (-1 if offline else 1, (1, 2), (1, 2, 3), 1, offline, False)
    return ("id", number, 1, "a-topic-" * 6 + f"{number:03}", until, 1_000, until_ms, *state)


def put(
    place: LakePlace, path: str, rows: Iterable[tuple[Any, ...]], batch: int, replace: Any = None
) -> bool:
    """Commit rows to a table as one file."""
    table = TABLES[path]
    file = write_file(place, path, rows_to_kept(rows, table), f"batch-{batch}")
    return commit(place, path, arrow_schema(table), [file], batch=batch, replace=replace)


def keys(place: LakePlace) -> list[str]:
    """The column `key` of the gold table, in the order in which it is read."""
    return list(dataset(place, GOLD).to_table(columns=["key"]).column("key").to_pylist())


def parquet_files(place: LakePlace, path: str) -> list[str]:
    """The names of a local table's files, also of those that are in no commit."""
    return sorted(file.name for file in (Path(place.where) / path).glob("*.parquet"))
