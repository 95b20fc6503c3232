"""Gold: answers for people, day by day.

Rule: an interval counts on each day from that of its first millisecond to that of its last. So a
day's rows need only the intervals that touch it, and a day can be computed again by itself.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.tables import DAY_MS, conformed, day_of
from audit.tables import AVAILABILITY, CHANGES

_COUNTS: Final = ("present_ms", "offline_ms", "under_min_isr_ms", "fenced_ms", "leader_changes")


def changes(settled: DataFrame) -> DataFrame:
    """Return audit.tables.CHANGES from settled records."""
    return conformed(
        settled.groupBy(
            day_of(F.col("timestamp_ms")).alias("day"), "principal", "operation", "type"
        ).agg(
            F.count(F.lit(1)).alias("count"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.min("timestamp_ms").alias("first_ms"),
            F.max("timestamp_ms").alias("last_ms"),
        ),
        CHANGES,
    )


def availability(partitions: DataFrame, brokers: DataFrame, horizon_ms: int) -> DataFrame:
    """Return audit.tables.AVAILABILITY from the tables of intervals.

    `horizon_ms`: intervals without an end are counted up to this time.
    """
    order = Window.partitionBy("topic_id", "partition").orderBy("from_offset")
    before = F.lag("leader").over(order)
    key = F.concat("topic_name", F.lit("-"), F.col("partition"), F.lit("@"), F.col("topic_id"))
    of_partitions = partitions.withColumn("_changed", before != F.col("leader")).select(
        F.lit("partition").alias("kind"),
        key.alias("key"),
        "from_ms",
        "until_ms",
        "offline",
        "under_min_isr",
        F.lit(col=False).alias("fenced"),
        F.coalesce("_changed", F.lit(col=False)).alias("changed"),
    )
    of_brokers = brokers.select(
        F.lit("broker").alias("kind"),
        F.col("broker_id").cast("string").alias("key"),
        "from_ms",
        "until_ms",
        F.lit(col=False).alias("offline"),
        F.lit(col=False).alias("under_min_isr"),
        (F.col("state") == "fenced").alias("fenced"),
        F.lit(col=False).alias("changed"),
    )
    days = _by_day(of_partitions.unionByName(of_brokers), horizon_ms)
    return conformed(
        days.groupBy("kind", "key", day_of(F.col("_day") * DAY_MS).alias("day")).agg(
            *(F.sum(column).alias(column) for column in _COUNTS)
        ),
        AVAILABILITY,
    )


def _by_day(intervals: DataFrame, horizon_ms: int) -> DataFrame:
    """Cut intervals at midnight UTC."""
    until = F.coalesce("until_ms", F.lit(horizon_ms))
    last = F.greatest(F.col("_until") - 1, F.col("from_ms"))
    begins = F.col("_day") * DAY_MS
    cut = (
        intervals.withColumn("_until", until)
        .withColumn("_day", F.explode(F.sequence(_day_number(F.col("from_ms")), _day_number(last))))
        .withColumn(
            "_ms",
            F.least(F.col("_until"), begins + DAY_MS) - F.greatest(F.col("from_ms"), begins),
        )
    )
    counted = {flag: F.when(F.col(flag), F.col("_ms")).otherwise(0) for flag in _FLAGS}
    on_first = F.col("changed") & (F.col("_day") == _day_number(F.col("from_ms")))
    return cut.select(
        "kind",
        "key",
        "_day",
        F.col("_ms").alias("present_ms"),
        *(column.alias(f"{flag}_ms") for flag, column in counted.items()),
        on_first.cast("bigint").alias("leader_changes"),
    )


_FLAGS: Final = ("offline", "under_min_isr", "fenced")


def _day_number(ms: Column) -> Column:
    return F.floor(ms / DAY_MS)
