"""The audit's jobs on Spark. Each has the name and the rows of a job of `audit.embedded`.

Rule: a job comes from the folds (`folded_jobs`) or is a plain function over bronze. Of the latter,
this module only says which columns and types of records each reads. What a job gives has exactly
its table's columns. Rows leave Spark as plain tuples ordered by the table's key, with lists of
numbers as tuples; text is ordered by code points, since Spark's order of UTF-8 bytes is the same.

Rows to object storage need no jar of Hadoop's, because each task writes its own file through
pyarrow. Files of a run have the run's mark in their names. When all are there, those that lay there
before are removed. If a task fails, those of this run are. A task that runs again writes the same
file again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from audit.places.remote_writing import RemotePlace
from audit.places.replicas import open_all
from audit.spark.folds.slices import CALLER
from audit.spark.folds.transactions import settle
from audit.spark.jobs.audited_log import AuditedLog
from audit.spark.jobs.folded_jobs import FOLDED, folded_job
from audit.spark.jobs.frame_jobs import ATTEMPTS as ATTEMPTS_TYPE
from audit.spark.jobs.frame_jobs import (
    GRANT_TYPES,
    attempts,
    divergence,
    grants,
    integrity,
    log_table,
)
from audit.spark.jobs.state import NEEDS, StateRow, states
from audit.spark.source import log_source
from audit.spark.source.bronze import BRONZE_COLUMNS
from audit.tables import BOOL, BY_NAME, INT, INTS, STATE_COUNTS, TEXT, AuditTable
from ledger.chain import first_hash
from ledger.errors import LedgerError
from ledger.reader import cluster_id_of

Row = tuple[Any, ...]

_WHO_AND_WHERE: Final = (*CALLER, "offset", "base_offset", "timestamp_ms", "type")


_TYPES: Final[dict[str, DataType]] = {
    TEXT: StringType(),
    INT: LongType(),
    INTS: ArrayType(LongType()),
    BOOL: BooleanType(),
}


def run_job(
    name: str,
    locations: Sequence[str],
    spark: SparkSession,
    *,
    up_to: int | None = None,
) -> list[Row]:
    """Return the ordered rows of a job, one of `audit.tables.BY_NAME`.

    `up_to`: use the batches that begin before this offset. Raises KeyError for an unknown job,
    NoLogError, LedgerError, CheckpointError, and Spark's errors for failures in a task.
    """
    with job_frame(name, locations, spark, up_to=up_to) as frame:
        return rows_of(frame, BY_NAME[name])


@contextmanager
def job_frame(
    name: str, locations: Sequence[str], spark: SparkSession, *, up_to: int | None = None
) -> Iterator[DataFrame]:
    """Give a job's table as an unordered DataFrame, as long as the context lasts."""
    table = BY_NAME[name]
    if name in _OF_FRAMES:
        yield conformed(_OF_FRAMES[name](spark, locations, up_to), table)
        return
    with AuditedLog(spark, locations, up_to) as log:
        if name in FOLDED:
            yield folded_job(log, table, schema_of(table))
        else:
            yield conformed(_OF_LOG[name](log), table)


def states_at(log: AuditedLog, offsets: Sequence[int]) -> dict[int, list[StateRow]]:
    """Return the rows of the table `state` at each of these offsets, in one pass."""
    return states(log.raw(NEEDS, start=log.counted_from), log.spans, offsets, checkpoint=log.facts)


def _state(log: AuditedLog) -> DataFrame:
    rows = states_at(log, [log.end])[log.end]
    return log.spark.createDataFrame(rows, schema_of(STATE_COUNTS))


def _log(log: AuditedLog) -> DataFrame:
    bronze = log.raw((*BRONZE_COLUMNS, "record", "fields"))
    return log_table(settle(bronze, log.spans), log.names)


def _grants(log: AuditedLog) -> DataFrame:
    settled = log.settled((*_WHO_AND_WHERE, "name", "record"), GRANT_TYPES)
    return grants(log.kept(log.with_facts(settled, GRANT_TYPES)))


def _attempts(log: AuditedLog) -> DataFrame:
    return attempts(log.settled(("day", "offset", "timestamp_ms", "record"), (ATTEMPTS_TYPE,)))


def _integrity(spark: SparkSession, locations: Sequence[str], up_to: int | None) -> DataFrame:
    firsts = []
    for replica in open_all(locations):
        try:
            genesis = first_hash(cluster_id_of(replica.disk)).hex()
        except LedgerError:
            genesis = None
        firsts.append((replica.name, genesis))
    known = spark.createDataFrame(firsts, "replica string, first_hash string")
    return integrity(log_source.batches(spark, locations, up_to=up_to), known)


def _divergence(spark: SparkSession, locations: Sequence[str], up_to: int | None) -> DataFrame:
    frames = log_source.batches(spark, locations, up_to=up_to)
    return divergence(frames, len(open_all(locations)))


def _batches(spark: SparkSession, locations: Sequence[str], up_to: int | None) -> DataFrame:
    return log_source.batches(spark, locations, up_to=up_to)


_OF_LOG: Final[dict[str, Callable[[AuditedLog], DataFrame]]] = {
    "log": _log,
    "grants": _grants,
    "attempts": _attempts,
    "state": _state,
}
_OF_FRAMES: Final[dict[str, Callable[[SparkSession, Sequence[str], int | None], DataFrame]]] = {
    "batches": _batches,
    "integrity": _integrity,
    "divergence": _divergence,
}


def schema_of(table: AuditTable) -> StructType:
    """Return the table's columns as a Spark schema."""
    return StructType(
        [StructField(column.name, _TYPES[column.kind], nullable=True) for column in table.columns]
    )


def conformed(frame: DataFrame, table: AuditTable) -> DataFrame:
    """Return the table's columns in their order and types; drop all others."""
    return frame.select(
        *(
            F.col(column.name).cast(_TYPES[column.kind]).alias(column.name)
            for column in table.columns
        )
    )


def rows_of(frame: DataFrame, table: AuditTable) -> list[tuple[Any, ...]]:
    """Collect the rows of `job_frame` in the form of `audit.embedded.run_job`."""
    return sorted(map(_plain, frame.collect()), key=lambda row: row[: table.key])


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


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
