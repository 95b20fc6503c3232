"""Gold by day, computed from the state at the beginning of the day and the events since.

Rule: time never falls in the log, so only the newest day and later ones can still change. The state
of partitions, brokers and min ISR at the beginning of a day is kept as rows in the shape of events.
So the functions for a whole log also work for a day, and nothing before that day is read again.
"""

from contextlib import ExitStack
from typing import NamedTuple

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from audit.spark import gold, silver
from audit.spark.intervals import MIN_ISR, broker_intervals, broker_states, partition_intervals
from audit.spark.pipeline_store import (
    GOLD_AVAILABILITY,
    OPENING_BROKERS,
    OPENING_CONFIGS,
    OPENING_PARTITIONS,
    SILVER_BROKERS,
    SILVER_CONFIGS,
    SILVER_PARTITIONS,
    Carried,
    PipelineStore,
    kept,
)
from audit.spark.tables import DAY_MS, day_of


class AvailabilityEvents(NamedTuple):
    """What availability is made of: rows of events, those of an opening among them."""

    partitions: DataFrame
    brokers: DataFrame
    configs: DataFrame


def write_availability(store: PipelineStore, names: DataFrame, carried: Carried) -> Carried:
    """Compute the days again that may have changed, and open a new day if one has begun.

    The events and the opening of `carried.opening_day` must be written already.
    """
    opened = carried.opening_day
    assert opened is not None
    with ExitStack() as stack:
        events = AvailabilityEvents(*(kept(stack, frame) for frame in _events(store, opened)))
        intervals = partition_intervals(events.partitions, events.configs, names)
        days = gold.availability(intervals, broker_intervals(events.brokers), carried.horizon_ms)
        store.write_days(days, GOLD_AVAILABILITY)
        newest = carried.horizon_ms // DAY_MS
        if newest > opened:
            open_day(store, _before(events, newest * DAY_MS), names, newest)
    return msgspec.structs.replace(carried, opening_day=max(newest, opened))


def open_day(store: PipelineStore, events: AvailabilityEvents, names: DataFrame, day: int) -> None:
    """Write the state as events in the first millisecond of a day."""
    at = {
        "settled_ms": F.greatest("settled_ms", F.lit(day * DAY_MS)),
        "day": day_of(F.lit(day * DAY_MS)),
    }
    for table, frame in (
        (OPENING_PARTITIONS, _partitions_now(events.partitions)),
        (OPENING_BROKERS, _brokers_now(events.brokers)),
        (OPENING_CONFIGS, _configs_now(events.configs, names)),
    ):
        store.write_days(frame.withColumns(at), table)


def _events(store: PipelineStore, day: int) -> AvailabilityEvents:
    begins = day_of(F.lit(day * DAY_MS))
    pairs = (
        (OPENING_PARTITIONS, SILVER_PARTITIONS),
        (OPENING_BROKERS, SILVER_BROKERS),
        (OPENING_CONFIGS, SILVER_CONFIGS),
    )
    frames = []
    for opening, silver_table in pairs:
        opened = store.read(opening).where(F.col("day") == begins)
        since = store.read(silver_table).drop("batch").where(F.col("day") >= begins)
        frames.append(opened.unionByName(since))
    return AvailabilityEvents(*frames)


def _before(events: AvailabilityEvents, ms: int) -> AvailabilityEvents:
    return AvailabilityEvents(*(frame.where(F.col("settled_ms") < ms) for frame in events))


def _partitions_now(events: DataFrame) -> DataFrame:
    """Return the existing partitions, each as one creation."""
    facts = ("leader", "isr", "replicas")
    latest = events.groupBy("topic_id", "partition").agg(
        *(_latest(fact).alias(fact) for fact in facts),
        *(F.max(c).alias(c) for c in ("offset", "settled_base", "settled_ms", "topic_name")),
        F.max(F.col("kind") == "removed").alias("_removed"),
    )
    there = latest.where(~F.col("_removed")).withColumn("kind", F.lit("created"))
    return there.withColumns({column: F.lit("") for column in silver.WHO})


def _brokers_now(events: DataFrame) -> DataFrame:
    """Return the registered brokers, each as one registration, and the feature level."""
    order = Window.partitionBy("broker_id").orderBy(F.col("offset").desc())
    latest = broker_states(events).withColumn("_place", F.row_number().over(order))
    level = F.col("broker_id").isNull()
    kind = F.when(level, F.col("kind")).otherwise("registered")
    return latest.where((F.col("_place") == 1) & (F.col("there") | level)).withColumns(
        {"kind": kind, **{column: F.lit("") for column in silver.WHO}}
    )


def _configs_now(events: DataFrame, names: DataFrame) -> DataFrame:
    """Return the current configs of min ISR, each as one record. A removed topic has none."""
    said = events.where((F.col("type") == silver.CONFIG) & (F.col("config_key") == MIN_ISR))
    removed = (
        events.where(F.col("type") == silver.REMOVE_TOPIC)
        .drop("name")
        .join(names, "topic_id")
        .withColumns(
            {
                "resource_type": F.lit(silver.TOPIC_RESOURCE),
                "config_value": F.lit(None).cast("string"),
            }
        )
    )
    order = Window.partitionBy("resource_type", "name").orderBy(F.col("offset").desc())
    latest = said.unionByName(removed).withColumn("_place", F.row_number().over(order))
    return latest.where((F.col("_place") == 1) & F.col("config_value").isNotNull())


def _latest(fact: str) -> Column:
    return F.max_by(fact, F.when(F.col(fact).isNotNull(), F.col("offset")))
