"""The job `grants` on Spark: an entry's grant, from the record with its token to its removal.

Rule: an entry that is removed and comes back gets another token. So the first record with a token
begins the grant, and the first removal behind it ends it. Each column comes from the JSON of the
record, because no other job needs it.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.log_table import fields
from audit.spark.tables import conformed
from audit.tables import GRANTS

ENTRY: Final = "ENTRY_RECORD"
REMOVE_ENTRY: Final = "REMOVE_ENTRY_RECORD"
SESSION: Final = "SESSION_RECORD"
END_SESSION: Final = "END_SESSION_RECORD"
GRANT_TYPES: Final = (ENTRY, REMOVE_ENTRY, SESSION, END_SESSION)
_ENTRY_KEY: Final = ("resource", "id")
_ENDS: Final = {
    "CLOSED": "its session was closed",
    "EXPIRED": "its session expired",
    "REVOKED": "its session was revoked",
}


def grants(settled: DataFrame) -> DataFrame:
    """Return audit.tables.GRANTS from settled records of `GRANT_TYPES`, with `record`.

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
    told = (
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
    return conformed(told, GRANTS)


def _in_one_moment() -> Column:
    return (F.col("session_id") == F.col("_session")) & (F.col("end.base") == F.col("_ended"))


def _text(name: str) -> Column:
    return F.get_json_object("fields", f"$.{name}")
