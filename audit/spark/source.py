"""The log as a Spark data source, `quorate_log`: in batches and in streams.

Rule: only committed, whole, checked batches become rows; damage stops the job and names file and
offset. Ranges are options, fixed before the query is planned; no filter is ever pushed down.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession


def read_log(
    spark: SparkSession,
    replica_locations: Sequence[str],
    *,
    up_to: int | None = None,
    start: int | None = None,
    columns: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
) -> DataFrame:
    """Return the log as rows of bronze (audit/spark/bronze.py), in no particular order.

    Of several replicas the one with the longest log is read. The end is fixed now: batches that
    begin before `up_to`, else before the log's end. `columns`: those of bronze that are built, also
    `record` and `fields`, which are left out otherwise. `types`: record types (`TOPIC_RECORD`).
    Raises NoLogError, LedgerError.
    """
    raise NotImplementedError


def stream_log(
    spark: SparkSession,
    location: str,
    *,
    start: int | None = None,
    columns: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    records_per_trigger: int | None = None,
) -> DataFrame:
    """Return the log as a stream of the same rows, from `start` on (else the log's start).

    A micro-batch is whole batches; a transaction may be open at its end. Also with `availableNow`.
    """
    raise NotImplementedError


def batches(
    spark: SparkSession, locations: Sequence[str], *, up_to: int | None = None
) -> DataFrame:
    """Return every frame of every replica: audit.tables.BATCHES, in no particular order.

    Also frames whose checksum is wrong (`crc_ok` false); what can't be walked any further ends a
    segment's rows. Up to each replica's own end, or those that begin before `up_to`.
    """
    raise NotImplementedError
