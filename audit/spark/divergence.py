"""Divergence on Spark: replicas whose batches differ at the same base offset.

Rule: replicas are compared only up to the lowest log end, because a replica that is behind has no
other history. Hashes are chained, so only the first difference of a replica is reported.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.integrity import in_file_order
from audit.spark.tables import conformed
from audit.tables import DIVERGENCE


def divergence(batches: DataFrame, replicas: int) -> DataFrame:
    """Return audit.tables.DIVERGENCE from audit.tables.BATCHES as the source returns it.

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
    return conformed(first.select("replica", "first.*"), DIVERGENCE)
