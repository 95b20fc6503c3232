"""The jobs that are plain functions from DataFrames to a DataFrame.

Rule: `log` says what each settled, aborted or open record is about. What needs a record's own bytes
comes from `audit.questions.subjects`, which executors call. Such a function skips null, so a caller
passes only the bytes of the records that need it.

`grants`: an entry that is removed and comes back gets another token. So the first record with a
token begins the grant, and the first removal behind it ends it. Each column comes from the JSON of
the record, because no other job needs it.

`integrity` compares each frame with the one before it in the file, not with the one of the next
lower offset; otherwise swapped frames would not be found. One task reads a segment in the order of
the file, so a running number within the segment gives the order.

`divergence` finds replicas whose batches differ at the same base offset. They are compared only up
to the lowest log end, because a replica that is behind has no other history. Hashes are chained, so
only the first difference of a replica is reported.

GRANTS, BATCHES and the other names in capitals are tables of `audit.tables`.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from audit.questions import subjects
from audit.questions.names import Names
from audit.spark.folds.slices import CONFIG, TOPIC
from metadata.codec import decode_record
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES, ConfigResourceType

_TOPIC_TYPES: Final = tuple(
    record_type_name(kind) for kind in RECORD_CLASSES if "topic_id" in kind.COLUMNS
)
"""The types that name a topic by its id."""
_TOPIC_RESOURCE: Final = int(ConfigResourceType.TOPIC)
_NO_NAMES: Final = Names()
ENTRY: Final = "ENTRY_RECORD"
REMOVE_ENTRY: Final = "REMOVE_ENTRY_RECORD"
SESSION: Final = "SESSION_RECORD"
END_SESSION: Final = "END_SESSION_RECORD"
GRANT_TYPES: Final = (ENTRY, REMOVE_ENTRY, SESSION, END_SESSION)
ATTEMPTS: Final = "ATTEMPTS_RECORD"
_ENTRY_KEY: Final = ("resource", "id")
_ENDS: Final = {
    "CLOSED": "its session was closed",
    "EXPIRED": "its session expired",
    "REVOKED": "its session was revoked",
}
BAD_CHECKSUM: Final = "the checksum is wrong"
BROKEN_CHAIN: Final = "the previous hash is not the hash of the batch before: the chain is broken"


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
    """Return the columns of LOG from a settled bronze with `record` and `fields`."""
    of_topic = F.col("type").isin(*_TOPIC_TYPES)
    of_config = (F.col("type") == CONFIG) & (F.col("resource_type") == _TOPIC_RESOURCE)
    topic_name = (
        F.when(of_topic, F.col("name_of_id"))
        .when(of_config, F.col("name"))
        .otherwise(F.nullif("topic_name", F.lit("")))
    )
    return _with_name_of_id(log, names).withColumns({"resource": _word(), "topic_name": topic_name})


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


def grants(settled: DataFrame) -> DataFrame:
    """Return the columns of GRANTS from settled records of `GRANT_TYPES`, with `record`.

    The frame is read three times.
    """
    said = settled.withColumn("fields", fields(F.col("record")))
    entries = said.where(F.col("type").isin(ENTRY, REMOVE_ENTRY)).select(
        F.col("name").alias("resource"),
        _text("id").alias("id"),
        _text("sessionId").alias("session_id"),
        _text("token").cast("bigint").alias("token"),
        _text("revision").cast("bigint").alias("from_offset"),
        "type",
        "offset",
        "operation",
        F.col("settled_base").alias("base"),
        F.col("settled_ms").alias("ms"),
    )
    behind = (
        Window.partitionBy(*_ENTRY_KEY).orderBy("offset").rowsBetween(1, Window.unboundedFollowing)
    )
    removal = F.when(
        F.col("type") == REMOVE_ENTRY,
        F.struct("offset", "ms", "base", "operation"),
    )
    first = Window.partitionBy(*_ENTRY_KEY, "token").orderBy("offset")
    held = (
        entries.withColumn("end", F.first(removal, ignorenulls=True).over(behind))
        .where((F.col("type") == ENTRY) & (F.col("token") >= 0))
        .withColumn("_number", F.row_number().over(first))
        .where("_number = 1")
    )
    opened = said.where(F.col("type") == SESSION).select(
        _text("sessionId").alias("session_id"),
        _text("owner").alias("owner"),
        _text("clientName").alias("client_name"),
    )
    ends = F.create_map(*(F.lit(word) for pair in _ENDS.items() for word in pair))
    ended = said.where(F.col("type") == END_SESSION).select(
        _text("sessionId").alias("session_id"),
        F.col("settled_base").alias("_ended"),
        F.try_element_at(ends, _text("reason")).alias("_reason"),
    )
    return (
        held.join(ended.withColumnRenamed("session_id", "_session"), _in_one_moment(), "left")
        .join(opened, "session_id", "left")
        .withColumns(
            {
                "owner": F.coalesce("owner", F.lit("")),
                "client_name": F.coalesce("client_name", F.lit("")),
                "from_ms": F.col("ms"),
                "until_offset": F.col("end.offset"),
                "until_ms": F.col("end.ms"),
                "ended_by": F.coalesce("_reason", F.col("end.operation"), F.lit("")),
            }
        )
    )


def attempts(settled: DataFrame) -> DataFrame:
    """Return the columns of ATTEMPTS from settled records of that type, with `record`."""
    texts = {
        "principal": "principal",
        "through": "through",
        "auth_method": "authMethod",
        "operation": "operation",
        "resource": "resource",
        "client_address": "address",
        "code": "code",
        "reason": "reason",
        "request": "request",
        "client_id": "clientId",
        "body_sha256": "bodySha256",
        "answer": "answer",
    }
    numbers = {
        "count": "count",
        "first_ms": "firstMs",
        "last_ms": "lastMs",
        "controller_id": "controllerId",
    }
    said = settled.select("offset", "timestamp_ms", "day", fields(F.col("record")).alias("fields"))
    return said.withColumns(
        {
            **{column: _text(name) for column, name in texts.items()},
            **{column: _text(name).cast("bigint") for column, name in numbers.items()},
            "outcome": F.lower(_text("outcome")),
            "detail": F.lower(_text("detail")),
        }
    )


def _in_one_moment() -> Column:
    return (F.col("session_id") == F.col("_session")) & (F.col("end.base") == F.col("_ended"))


def _text(name: str) -> Column:
    return F.get_json_object("fields", f"$.{name}")


def in_file_order(batches: DataFrame) -> DataFrame:
    """Number the frames (`place`) in their order on disk. Call it before anything shuffles them."""
    return batches.withColumn("place", F.struct("segment", F.monotonically_increasing_id()))


def integrity(batches: DataFrame, first_hashes: DataFrame) -> DataFrame:
    """Return the columns of INTEGRITY from BATCHES as the source returns it.

    `first_hashes`: `replica` and `first_hash`, the previous hash that the cluster's first batch
    must have.
    """
    order = Window.partitionBy("replica").orderBy("place")
    before = F.lag(F.struct("base_offset", "count", "epoch", "timestamp_ms", "hash")).over(order)
    frames = (
        in_file_order(batches)
        .withColumn("b", before)
        .join(F.broadcast(first_hashes), "replica", "left")
    )
    first, end = F.col("b").isNull(), F.col("b.base_offset") + F.col("b.count")
    begins_wrong = (
        first & (F.col("base_offset") == 0) & (F.col("previous_hash") != F.col("first_hash"))
    )
    findings = [
        (~F.col("crc_ok"), "crc", F.lit(BAD_CHECKSUM)),
        (begins_wrong, "chain", F.lit(BROKEN_CHAIN)),
        (
            F.col("base_offset") != end,
            "gap",
            _said("offset ", end, " must follow, the batch begins at ", F.col("base_offset")),
        ),
        (F.col("previous_hash") != F.col("b.hash"), "chain", F.lit(BROKEN_CHAIN)),
        (
            F.col("epoch") < F.col("b.epoch"),
            "epoch",
            _said("the epoch falls from ", F.col("b.epoch"), " to ", F.col("epoch")),
        ),
        (
            F.col("timestamp_ms") < F.col("b.timestamp_ms"),
            "time",
            _said(
                "the timestamp falls from ", F.col("b.timestamp_ms"), " to ", F.col("timestamp_ms")
            ),
        ),
    ]
    kind, sentence = F.lit(None), F.lit(None)
    for wrong, name, words in reversed(findings):
        kind = F.when(wrong, name).otherwise(kind)
        sentence = F.when(wrong, words).otherwise(sentence)
    found = frames.withColumns({"kind": kind, "sentence": sentence})
    return found.where(F.col("kind").isNotNull())


def _said(*parts: str | Column) -> Column:
    return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))


def divergence(batches: DataFrame, replicas: int) -> DataFrame:
    """Return the columns of DIVERGENCE from BATCHES as the source returns it.

    `replicas`: their number, also counting those without frames.
    """
    ends = (
        in_file_order(batches)
        .groupBy("replica")
        .agg(F.max_by(F.col("base_offset") + F.col("count"), "place").alias("end"))
        .agg(F.min("end").alias("common"), F.count(F.lit(1)).alias("with_frames"))
        .where(F.col("with_frames") == replicas)
    )
    at_base = Window.partitionBy("base_offset")
    frames = (
        batches.join(F.broadcast(ends), F.col("base_offset") < F.col("common"))
        .groupBy("base_offset", "replica")
        .agg(F.max("hash").alias("hash"))
        .withColumns(
            {
                "there": F.count(F.lit(1)).over(at_base),
                "votes": F.count(F.lit(1)).over(Window.partitionBy("base_offset", "hash")),
            }
        )
        .withColumn(
            "agreed_hash",
            F.max(F.when(2 * F.col("votes") > F.col("there"), F.col("hash"))).over(at_base),
        )
    )
    differs = frames.where(~F.col("hash").eqNullSafe(F.col("agreed_hash")))
    first = differs.groupBy("replica").agg(
        F.min_by(F.struct("base_offset", "hash", "agreed_hash"), "base_offset").alias("first")
    )
    return first.select("replica", "first.*")
