"""Silver: what happened, one row for each event, from settled records.

Rule: these are plain functions from DataFrames to DataFrames, for a whole log and for a micro-batch
alike. The caller passes what an event needs of the past: names of topics, existing partitions. No
function reads less than it is given, and no filter is pushed into the data source.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.silver_words import amendments, fields, incarnation, resource
from audit.spark.tables import conformed, day_of
from audit.tables import LOG, PARTITION_EVENTS, PRIVILEGED
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES, ConfigResourceType
from metadata.records.declaring import Privileged

TOPIC: Final = "TOPIC_RECORD"
REMOVE_TOPIC: Final = "REMOVE_TOPIC_RECORD"
PARTITION: Final = "PARTITION_RECORD"
PARTITION_CHANGE: Final = "PARTITION_CHANGE_RECORD"
CONFIG: Final = "CONFIG_RECORD"
REGISTER_BROKER: Final = "REGISTER_BROKER_RECORD"
UNREGISTER_BROKER: Final = "UNREGISTER_BROKER_RECORD"
FENCE: Final = "FENCE_BROKER_RECORD"
UNFENCE: Final = "UNFENCE_BROKER_RECORD"
CHANGE_BROKER: Final = "BROKER_REGISTRATION_CHANGE_RECORD"

TOPIC_TYPES: Final = tuple(
    record_type_name(kind) for kind in RECORD_CLASSES if "topic_id" in kind.COLUMNS
)
"""The types that name a topic by its id."""
FEATURE_LEVEL: Final = "FEATURE_LEVEL_RECORD"
BROKER_TYPES: Final = (
    REGISTER_BROKER,
    UNREGISTER_BROKER,
    FENCE,
    UNFENCE,
    CHANGE_BROKER,
    FEATURE_LEVEL,
)
PRIVILEGED_TYPES: Final = {
    record_type_name(kind): kind.PRIVILEGED for kind in RECORD_CLASSES if kind.PRIVILEGED
}
"""By type: the kind of privileged change, and its conditions."""
PRIVILEGED_COLUMNS: Final = tuple(
    {condition.column: None for rule in PRIVILEGED_TYPES.values() for condition in rule.when}
)
"""The columns that the conditions read."""
TOPIC_RESOURCE: Final = int(ConfigResourceType.TOPIC)
BROKER_RESOURCE: Final = int(ConfigResourceType.BROKER)

WHO: Final = ("principal", "on_behalf_of", "request_id", "operation", "reason")
SETTLING: Final = ("settled_base", "settled_ms")
_EVENT_COLUMNS: Final = (
    "topic_id",
    "partition",
    "offset",
    *SETTLING,
    "kind",
    "leader",
    "isr",
    "replicas",
    *WHO,
)


def topic_names(log: DataFrame) -> DataFrame:
    """Return `topic_id` and `name` of every topic with a TopicRecord, settled or not."""
    return (
        log.where(F.col("type") == TOPIC)
        .groupBy("topic_id")
        .agg(F.max_by("topic_name", "offset").alias("name"))
    )


def log_table(log: DataFrame, names: DataFrame) -> DataFrame:
    """Return audit.tables.LOG from a settled bronze with `record` and `fields`."""
    of_topic = F.col("type").isin(*TOPIC_TYPES)
    of_config = (F.col("type") == CONFIG) & (F.col("resource_type") == TOPIC_RESOURCE)
    topic_name = (
        F.when(of_topic, F.col("name_of_id"))
        .when(of_config, F.col("name"))
        .otherwise(F.nullif("topic_name", F.lit("")))
    )
    return conformed(
        _with_name_of_id(log, names).withColumns({"resource": _word(), "topic_name": topic_name}),
        LOG,
    )


def privileged(settled: DataFrame, names: DataFrame) -> DataFrame:
    """Return audit.tables.PRIVILEGED from settled records with `record`."""
    always = [
        F.lit(word)
        for name, rule in PRIVILEGED_TYPES.items()
        if not rule.when
        for word in (name, rule.kind)
    ]
    kind = F.coalesce(
        *(_if_privileged(name, rule) for name, rule in PRIVILEGED_TYPES.items() if rule.when),
        F.try_element_at(F.create_map(*always), F.col("type")),
    )
    rows = settled.withColumn("kind", kind).where(F.col("kind").isNotNull())
    told = {"subject": _word(), "fields": fields(F.col("record"))}
    return conformed(_with_name_of_id(rows, names).withColumns(told), PRIVILEGED)


def _if_privileged(name: str, rule: Privileged) -> Column:
    """Return the kind of change if a record of this type is privileged, else null."""
    fits = F.col("type") == name
    for column, test, value in rule.when:
        found = F.col(column)
        fits = fits & (found.isNotNull() if test is None else test(found, value))
    return F.when(fits, rule.kind)


def created_partitions(settled: DataFrame) -> DataFrame:
    """Return the partitions that were ever created: `topic_id`, `partition`."""
    created = settled.where(F.col("type") == PARTITION)
    return created.select("topic_id", "partition").distinct()


def partition_events(
    settled: DataFrame, names: DataFrame, created: DataFrame, removals: DataFrame | None = None
) -> DataFrame:
    """Return audit.tables.PARTITION_EVENTS.

    `names` and `created` (from `topic_names` and `created_partitions`) cover the whole log up to
    here. Topic ids are never used again, so they stay true. `removals`: the records that hold
    removals of topics, if these are not in `settled`; then `settled` is read once instead of twice.
    """
    events = (
        settled.where(F.col("type").isin(PARTITION, PARTITION_CHANGE))
        .withColumn("kind", F.when(F.col("type") == PARTITION, "created").otherwise("changed"))
        .select(*_EVENT_COLUMNS)
    )
    removed = (
        (settled if removals is None else removals)
        .where(F.col("type") == REMOVE_TOPIC)
        .drop("partition")
        .join(created, "topic_id")
        .withColumn("kind", F.lit("removed"))
        .select(*_EVENT_COLUMNS)
    )
    named = events.unionByName(removed).join(
        F.broadcast(names.withColumnRenamed("name", "topic_name")), "topic_id", "left"
    )
    return conformed(named.withColumn("day", day_of(F.col("settled_ms"))), PARTITION_EVENTS)


def broker_events(settled: DataFrame) -> DataFrame:
    """Return what registrations say about brokers: a row for each such record. Needs `record`.

    `kind` is `registered`, `changed` or `unregistered`. `fenced` and `stopping` are null if
    unchanged. `incarnation` is that of a registration. A level of `logberg.version` is a row
    without a broker, of kind `literal` or `restored`: what later repeated registrations mean.
    """
    registers, levels = F.col("type") == REGISTER_BROKER, F.col("type") == FEATURE_LEVEL
    fenced = F.when(F.col("fenced") != 0, F.col("fenced") > 0)
    leaves = F.col("in_controlled_shutdown") != 0
    kind = (
        F.when(registers, "registered")
        .when(levels, amendments(F.when(levels, F.col("record"))))
        .when(F.col("type") == UNREGISTER_BROKER, "unregistered")
        .otherwise("changed")
    )
    rows = settled.where(F.col("type").isin(*BROKER_TYPES)).select(
        "broker_id",
        "offset",
        *SETTLING,
        *WHO,
        kind.alias("kind"),
        fenced.alias("fenced"),
        F.when(registers, leaves).when(leaves, F.lit(col=True)).alias("stopping"),
        incarnation(F.when(registers, F.col("record"))).alias("incarnation"),
    )
    return rows.where(F.col("kind").isNotNull())


def _with_name_of_id(log: DataFrame, names: DataFrame) -> DataFrame:
    """Join the names of topics. They are few, so each task gets all of them."""
    return log.join(F.broadcast(names.withColumnRenamed("name", "name_of_id")), "topic_id", "left")


def _word() -> Column:
    """Return a record's subject. A record with a topic id needs the topic's name."""
    shown = F.coalesce("name_of_id", "topic_id")
    of_topic = F.col("type").isin(*TOPIC_TYPES)
    rest = F.when(~of_topic, F.col("record"))
    return (
        F.when(of_topic & F.col("partition").isNull(), F.concat(F.lit("topic:"), shown))
        .when(of_topic, F.concat(F.lit("partition:"), shown, F.lit("-"), F.col("partition")))
        .otherwise(resource(rest))
    )
