"""The job `log`: every settled, aborted or open record, with what it is about.

Rule: plain functions from DataFrames to DataFrames. What needs a record's own bytes comes from
`audit.questions.subjects`, which executors call. Such a function skips null, so a caller passes
only the bytes of the records that need it.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from audit.questions import subjects
from audit.questions.names import Names
from audit.spark.slices import CONFIG, TOPIC
from audit.spark.tables import conformed
from audit.tables import LOG
from metadata.codec import decode_record
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES, ConfigResourceType

_TOPIC_TYPES: Final = tuple(
    record_type_name(kind) for kind in RECORD_CLASSES if "topic_id" in kind.COLUMNS
)
"""The types that name a topic by its id."""
_TOPIC_RESOURCE: Final = int(ConfigResourceType.TOPIC)
_NO_NAMES: Final = Names()


def _resource(record: bytes | None) -> str | None:
    return None if record is None else subjects.resource(decode_record(record), _NO_NAMES)


def _fields(record: bytes | None) -> str | None:
    return None if record is None else subjects.fields_text(decode_record(record))


resource = F.udf(_resource, StringType(), useArrow=True)
"""The first subject of a record that has no topic id."""
fields = F.udf(_fields, StringType(), useArrow=True)
"""A record's data as JSON, with secrets starred."""


def topic_names(log: DataFrame) -> DataFrame:
    """Return `topic_id` and `name` of every topic with a TopicRecord, settled or not."""
    return (
        log.where(F.col("type") == TOPIC)
        .groupBy("topic_id")
        .agg(F.max_by("topic_name", "offset").alias("name"))
    )


def log_table(log: DataFrame, names: DataFrame) -> DataFrame:
    """Return audit.tables.LOG from a settled bronze with `record` and `fields`."""
    of_topic = F.col("type").isin(*_TOPIC_TYPES)
    of_config = (F.col("type") == CONFIG) & (F.col("resource_type") == _TOPIC_RESOURCE)
    topic_name = (
        F.when(of_topic, F.col("name_of_id"))
        .when(of_config, F.col("name"))
        .otherwise(F.nullif("topic_name", F.lit("")))
    )
    return conformed(
        _with_name_of_id(log, names).withColumns({"resource": _word(), "topic_name": topic_name}),
        LOG,
    )


def _with_name_of_id(log: DataFrame, names: DataFrame) -> DataFrame:
    """Join the names of topics. They are few, so each task gets all of them."""
    return log.join(F.broadcast(names.withColumnRenamed("name", "name_of_id")), "topic_id", "left")


def _word() -> Column:
    """Return a record's subject. A record with a topic id needs the topic's name."""
    shown = F.coalesce("name_of_id", "topic_id")
    of_topic = F.col("type").isin(*_TOPIC_TYPES)
    rest = F.when(~of_topic, F.col("record"))
    return (
        F.when(of_topic & F.col("partition").isNull(), F.concat(F.lit("topic:"), shown))
        .when(of_topic, F.concat(F.lit("partition:"), shown, F.lit("-"), F.col("partition")))
        .otherwise(resource(rest))
    )
