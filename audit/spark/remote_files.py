"""Writes a DataFrame as Parquet to object storage from Spark's tasks.

Rule: no jar of Hadoop's is needed, because each task writes its own file through pyarrow. Files of
a run have the run's mark in their names. When all are there, those that lay there before are
removed. If a task fails, those of this run are. A task that runs again writes the same file again.
"""

from collections.abc import Iterator
from contextlib import suppress
from secrets import token_hex
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from audit.places.remote_writing import RemotePlace


def write_to_url(frame: DataFrame, url: str) -> int:
    """Write a table's rows below a URL, in place of what is there; return their number.

    Raises OSError if the place can't be used, and Spark's errors for failures in a task.
    """
    place, mark = RemotePlace(url), token_hex(4)
    before = place.names()

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        return _written(batches, url, mark)

    try:
        found = frame.mapInArrow(write, "rows bigint").collect()
        if not found:
            place.write_table(f"part-{mark}-00000.parquet", to_arrow_schema(frame.schema), ())
    except BaseException:
        with suppress(OSError):
            place.remove([name for name in place.names() if f"part-{mark}-" in name])
        raise
    place.remove(before)
    return sum(row.rows for row in found)


def _written(batches: Iterator[Any], url: str, mark: str) -> Iterator[Any]:
    """Write one task's rows to a file; yield their number unless there are none."""
    import pyarrow as pa  # noqa: PLC0415 - on executors

    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return
    context = TaskContext.get()
    assert context is not None
    name = f"part-{mark}-{context.partitionId():05d}.parquet"
    rows = RemotePlace(url).write_table(name, first.schema, _chained(first, batches))
    yield pa.record_batch([pa.array([rows], pa.int64())], names=["rows"])


def _chained(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others
