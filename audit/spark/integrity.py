"""Integrity on Spark: compares each frame with the frame before it on disk.

Rule: the frame before is the one before it in the file, not the one with the next lower offset;
otherwise swapped frames would not be found. One task reads a segment in the order of the file, so a
running number within the segment gives the order.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.tables import conformed
from audit.tables import INTEGRITY

BAD_CHECKSUM: Final = "the checksum is wrong"
BROKEN_CHAIN: Final = "the previous hash is not the hash of the batch before: the chain is broken"


def in_file_order(batches: DataFrame) -> DataFrame:
    """Number the frames (`place`) in their order on disk. Call it before anything shuffles them."""
    return batches.withColumn("place", F.struct("segment", F.monotonically_increasing_id()))


def integrity(batches: DataFrame, first_hashes: DataFrame) -> DataFrame:
    """Return audit.tables.INTEGRITY from audit.tables.BATCHES as the source returns it.

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
    return conformed(found.where(F.col("kind").isNotNull()), INTEGRITY)


def _said(*parts: str | Column) -> Column:
    return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))
