"""Intervals: the state of each partition and broker from one moment to the next.

Rule: all records that settle in one batch are one moment. Change records are partial, so each value
(leader, ISR, replicas, min ISR) is carried forward by itself. Then moments that change nothing are
dropped, and each remaining one lasts until the next. The lifetime of a topic is joined with the
settings of its name, span to span, so that nothing grows with the square of the log.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.silver import BROKER_RESOURCE, CONFIG, REMOVE_TOPIC, TOPIC_RESOURCE
from audit.spark.silver_words import LITERAL, RESTORED
from audit.spark.tables import conformed
from audit.tables import BROKER_INTERVALS, PARTITION_INTERVALS
from metadata.records import NO_LEADER

MIN_ISR: Final = "min.insync.replicas"
_DEFAULT: Final = 1
_UNSET: Final = -1
_NEVER: Final = (1 << 63) - 1
_KEY: Final = ("topic_id", "partition")
_SAID: Final = ("leader", "isr", "replicas")
_FACTS: Final = (*_SAID, "topic_name", "topic_min", "default_min")
_HOLDS: Final = "base < dies AND until > born"
"""A setting holds during part of a topic's lifetime."""


def partition_intervals(events: DataFrame, facts: DataFrame, names: DataFrame) -> DataFrame:
    """Return audit.tables.PARTITION_INTERVALS.

    `events`: rows of PARTITION_EVENTS, and the checkpoint's partitions as events of its moment.
    `facts`: settled ConfigRecords and RemoveTopicRecords. `names`: from `silver.topic_names`. All
    three are read several times.
    """
    moments = _moments(events.repartition(*_KEY))
    lives = moments.groupBy(*_KEY).agg(
        F.max("topic_name").alias("topic_name"),
        F.min("base").alias("born"),
        F.min("ms").alias("born_ms"),
        F.coalesce(F.min(F.when(F.col("removed"), F.col("base"))), F.lit(_NEVER)).alias("dies"),
    )
    settings = _settings(facts, names)
    of_all = F.broadcast(settings.where("topic_name = ''").drop("topic_name"))
    of_topics = settings.where("topic_name <> ''")
    points = (
        moments.unionByName(
            _config_points(lives.join(of_all, F.expr(_HOLDS)), "default_min"),
            allowMissingColumns=True,
        )
        .unionByName(
            _config_points(lives.join(of_topics, "topic_name").where(_HOLDS), "topic_min"),
            allowMissingColumns=True,
        )
        .repartition(*_KEY)
        .groupBy(*_KEY, "base")
        .agg(
            F.max("ms").alias("ms"),
            F.max("removed").alias("removed"),
            *(F.first(fact, ignorenulls=True).alias(fact) for fact in _FACTS),
        )
    )
    order = Window.partitionBy(*_KEY).orderBy("base")
    carried = points.withColumns({f: F.last(f, ignorenulls=True).over(order) for f in _FACTS})
    shown = carried.withColumns(
        {
            "min_isr": F.coalesce(_if_set("topic_min"), _if_set("default_min"), F.lit(_DEFAULT)),
            "removed": F.coalesce("removed", F.lit(col=False)),
        }
    )
    told = F.struct("leader", "isr", "replicas", "min_isr", "removed")
    kept = _lasting(shown, list(_KEY), told).where(~F.col("removed"))
    return conformed(
        kept.withColumns(
            {
                "offline": F.col("leader") == NO_LEADER,
                "under_min_isr": F.size("isr") < F.col("min_isr"),
            }
        ),
        PARTITION_INTERVALS,
    )


def broker_intervals(events: DataFrame) -> DataFrame:
    """Return audit.tables.BROKER_INTERVALS from `silver.broker_events`."""
    state = F.when(
        F.col("there"),
        F.when(F.col("fenced"), "fenced").when(F.col("stopping"), "stopping").otherwise("online"),
    )
    moments = (
        broker_states(events)
        .where(F.col("broker_id").isNotNull())
        .withColumn("state", state)
        .groupBy("broker_id", F.col("settled_base").alias("base"))
        .agg(F.max("settled_ms").alias("ms"), F.max_by(F.struct("state"), "offset").alias("_last"))
        .withColumn("state", F.col("_last.state"))
    )
    kept = _lasting(moments, ["broker_id"], F.col("state"))
    return conformed(kept.where(F.col("state").isNotNull()), BROKER_INTERVALS)


def broker_states(events: DataFrame) -> DataFrame:
    """Return `silver.broker_events` with all flags as they were after each event.

    `there` is false once a broker is unregistered. Below `logberg.version` 1 a repeated
    registration of the same incarnation changes no flag (ADR 0015).
    """
    levels = events.where(F.col("kind").isin(LITERAL, RESTORED)).agg(
        F.sort_array(F.collect_list(F.struct("offset", "kind"))).alias("_levels")
    )
    level = F.try_element_at(
        F.filter("_levels", lambda level: level["offset"] < F.col("offset")), F.lit(-1)
    )
    events = (
        events.crossJoin(F.broadcast(levels))
        .withColumn("literal", F.coalesce(level["kind"] == LITERAL, F.lit(col=False)))
        .drop("_levels")
    )
    order = Window.partitionBy("broker_id").orderBy("offset")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    registers, leaves = F.col("kind") == "registered", F.col("kind") == "unregistered"
    mark = F.when(registers, F.col("incarnation")).when(leaves, "")
    known = F.coalesce(F.last(mark, ignorenulls=True).over(before), F.lit(""))
    keeps = registers & (F.col("incarnation") == F.col("_known")) & ~F.col("literal")
    there = F.when(registers, F.lit(col=True)).when(leaves, F.lit(col=False))
    return (
        events.withColumn("_known", known)
        .withColumns({flag: F.when(~keeps, F.col(flag)) for flag in ("fenced", "stopping")})
        .withColumns(
            {
                "fenced": F.last("fenced", ignorenulls=True).over(order),
                "stopping": F.last("stopping", ignorenulls=True).over(order),
                "there": F.last(there, ignorenulls=True).over(order),
                "incarnation": F.last("incarnation", ignorenulls=True).over(order),
            }
        )
        .drop("_known", "literal")
    )


def _moments(events: DataFrame) -> DataFrame:
    """Return the last value of each fact in each moment of each partition."""
    facts = (F.max_by(c, F.when(F.col(c).isNotNull(), F.col("offset"))).alias(c) for c in _SAID)
    return events.groupBy(*_KEY, F.col("settled_base").alias("base")).agg(
        F.max("settled_ms").alias("ms"),
        F.max("topic_name").alias("topic_name"),
        F.max(F.col("kind") == "removed").alias("removed"),
        *facts,
    )


def _settings(facts: DataFrame, names: DataFrame) -> DataFrame:
    """Return the min ISR of each topic name; the name "" holds the cluster's default.

    One row for each moment, with the next moment: `base`, `until`, `ms`, `value`. The value is
    `_UNSET` if a record removed the config or its topic.
    """
    of_topic = F.col("resource_type") == TOPIC_RESOURCE
    of_all = (F.col("resource_type") == BROKER_RESOURCE) & (F.col("name") == "")
    number = F.when(
        F.col("config_value").rlike(r"\A[0-9]{1,9}\z"), F.col("config_value").cast("bigint")
    )
    said = facts.where(
        (F.col("type") == CONFIG) & (F.col("config_key") == MIN_ISR) & (of_topic | of_all)
    ).select(
        "offset",
        "settled_base",
        "settled_ms",
        F.when(of_topic, F.col("name")).otherwise("").alias("topic_name"),
        F.when(number >= 1, number).otherwise(_UNSET).alias("value"),
    )
    gone = (
        facts.where(F.col("type") == REMOVE_TOPIC)
        .select("topic_id", "offset", "settled_base", "settled_ms")
        .join(names.withColumnRenamed("name", "topic_name"), "topic_id")
        .drop("topic_id")
        .withColumn("value", F.lit(_UNSET).cast("bigint"))
    )
    order = Window.partitionBy("topic_name").orderBy("base")
    return (
        said.unionByName(gone)
        .groupBy("topic_name", F.col("settled_base").alias("base"))
        .agg(F.max("settled_ms").alias("ms"), F.max_by("value", "offset").alias("value"))
        .withColumn("until", F.coalesce(F.lead("base").over(order), F.lit(_NEVER)))
    )


def _config_points(meetings: DataFrame, fact: str) -> DataFrame:
    """Return the moments in each topic's lifetime at which a setting holds for the first time."""
    later = F.col("base") > F.col("born")
    return meetings.select(
        *_KEY,
        F.greatest("base", "born").alias("base"),
        F.when(later, F.col("ms")).otherwise(F.col("born_ms")).alias("ms"),
        F.col("value").alias(fact),
    )


def _lasting(moments: DataFrame, key: list[str], told: Column) -> DataFrame:
    """Keep the moments at which `told` changes, each with the next one."""
    order = Window.partitionBy(*key).orderBy("base")
    changes = (
        moments.withColumn("_told", told)
        .withColumn("_before", F.lag("_told").over(order))
        .where(~F.col("_told").eqNullSafe(F.col("_before")))
    )
    return changes.withColumns(
        {
            "from_offset": F.col("base"),
            "from_ms": F.col("ms"),
            "until_offset": F.lead("base").over(order),
            "until_ms": F.lead("ms").over(order),
        }
    )


def _if_set(column: str) -> Column:
    return F.when(F.col(column) != _UNSET, F.col(column))
