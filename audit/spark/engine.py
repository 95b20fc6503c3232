"""The audit's jobs on Spark. Each has the name and the rows of a job of `audit.embedded`.

Rule: a job comes from the pipeline's folds (`folded_jobs`) or is a plain function over bronze. Of
the latter, this module only says which columns and types of records each reads.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from audit.places.replicas import open_all
from audit.spark import source
from audit.spark.bronze import BRONZE_COLUMNS
from audit.spark.divergence import divergence
from audit.spark.engine_log import AuditedLog
from audit.spark.folded_jobs import FOLDED, folded_job
from audit.spark.grants import GRANT_TYPES, grants
from audit.spark.integrity import integrity
from audit.spark.log_table import log_table
from audit.spark.settle import settle
from audit.spark.slices import CALLER
from audit.spark.state import NEEDS, StateRow, states
from audit.spark.tables import rows_of, schema_of
from audit.tables import BY_NAME, STATE_COUNTS
from ledger.chain import first_hash
from ledger.errors import LedgerError
from ledger.reader import cluster_id_of

Row = tuple[Any, ...]

_WHO_AND_WHERE: Final = (*CALLER, "offset", "base_offset", "timestamp_ms", "type")


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
    if name in _OF_FRAMES:
        yield _OF_FRAMES[name](spark, locations, up_to)
        return
    with AuditedLog(spark, locations, up_to) as log:
        yield folded_job(log, BY_NAME[name]) if name in FOLDED else _OF_LOG[name](log)


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


def _integrity(spark: SparkSession, locations: Sequence[str], up_to: int | None) -> DataFrame:
    firsts = []
    for replica in open_all(locations):
        try:
            genesis = first_hash(cluster_id_of(replica.disk)).hex()
        except LedgerError:
            genesis = None
        firsts.append((replica.name, genesis))
    known = spark.createDataFrame(firsts, "replica string, first_hash string")
    return integrity(source.batches(spark, locations, up_to=up_to), known)


def _divergence(spark: SparkSession, locations: Sequence[str], up_to: int | None) -> DataFrame:
    frames = source.batches(spark, locations, up_to=up_to)
    return divergence(frames, len(open_all(locations)))


def _batches(spark: SparkSession, locations: Sequence[str], up_to: int | None) -> DataFrame:
    return source.batches(spark, locations, up_to=up_to)


_OF_LOG: Final[dict[str, Callable[[AuditedLog], DataFrame]]] = {
    "log": _log,
    "grants": _grants,
    "state": _state,
}
_OF_FRAMES: Final[dict[str, Callable[[SparkSession, Sequence[str], int | None], DataFrame]]] = {
    "batches": _batches,
    "integrity": _integrity,
    "divergence": _divergence,
}
