"""The third calculation: intervals, availability, privileged changes and states, by SQL alone.

Rule: it reads one table, the kept `bronze`, and shares no code with the embedded engine or with
Spark's fold. What it returns has the form of `audit.embedded.run_job`. `check` is the entry point:
it compares the rows of any engine with these, and says by name what differs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb

Row = tuple[Any, ...]
HERE = Path(__file__).parent
SCRIPTS = (
    "settled",
    "partitions",
    "partition_intervals",
    "broker_intervals",
    "availability",
    "privileged",
)
COMPARED = ("partition_intervals", "broker_intervals", "availability", "privileged")
"""Jobs that the calculation answers; of `privileged` without `subject` and `fields`."""
_UNSEEN = {"privileged": (4, 13)}


class SqlCalculation:
    """The answers for the log in a table `bronze`: an Arrow table or dataset in its kept form."""

    def __init__(self, bronze: Any, up_to: int | None = None, *, threads: int = 1) -> None:
        """`up_to`: use the batches that begin before this offset; None means all."""
        self._duckdb = duckdb.connect()
        self._duckdb.execute(f"SET threads = {int(threads)}; SET TimeZone = 'UTC'")
        self._duckdb.register("bronze", bronze)
        only = "" if up_to is None else f"WHERE base_offset < {int(up_to)}"
        self._duckdb.execute(f"CREATE TEMP TABLE log AS SELECT * FROM bronze {only}")
        for name in SCRIPTS:
            self._duckdb.execute((HERE / f"{name}.sql").read_text())

    def __enter__(self) -> "SqlCalculation":
        return self

    def __exit__(self, *_: object) -> None:
        self._duckdb.close()

    def rows(self, job: str) -> list[Row]:
        """Return the rows of one of `COMPARED`, ordered as the job's are."""
        return list(map(_plain, self._duckdb.execute(f"FROM {job}").fetchall()))

    def count(self, job: str) -> int:
        """Return how many rows one of `COMPARED` has."""
        (found,) = self._duckdb.execute(f"SELECT count(*) FROM {job}").fetchone() or (0,)
        return int(found)

    def partitions_at(self, end: int) -> list[Row]:
        """Return (topic id, number, leader, ISR, replicas) of each partition at an offset."""
        said = (HERE / "state.sql").read_text()
        return list(map(_plain, self._duckdb.execute(said, {"end": end}).fetchall()))


def check(bronze: Any, answers: Callable[[str], Sequence[Row]], up_to: int | None = None) -> None:
    """Compare `answers(job)` of an engine with the SQL for each job of `COMPARED`.

    Raises AssertionError, which names the job and the first row that differs.
    """
    compare_rows(answers, sql_answers(bronze, up_to))


def sql_answers(bronze: Any, up_to: int | None = None) -> dict[str, list[Row]]:
    """Return what the SQL answers, by job."""
    with SqlCalculation(bronze, up_to) as calculation:
        return {job: calculation.rows(job) for job in COMPARED}


def compare_rows(answers: Callable[[str], Sequence[Row]], wanted: dict[str, list[Row]]) -> None:
    """Compare `answers(job)` with `sql_answers`. Raises AssertionError."""
    for job, rows in wanted.items():
        unseen = _UNSEEN.get(job, ())
        found = [
            tuple(value for place, value in enumerate(row) if place not in unseen)
            for row in map(_plain, answers(job))
        ]
        odd = next(
            ((a, b) for a, b in zip(found, rows, strict=False) if a != b),
            (f"{len(found)} rows", f"{len(rows)} rows"),
        )
        if found != rows:
            raise AssertionError(f"{job}: the engine says {odd[0]}, the SQL says {odd[1]}")


def _plain(row: Sequence[Any]) -> Row:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
