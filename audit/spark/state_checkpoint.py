"""A checkpoint as rows of bronze. A log that was cut is counted from there.

Rule: the checkpoint is loaded and verified as controllers do it. Its records are settled facts of
the offset before its own.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.bronze import BRONZE_COLUMNS, bronze_rows
from ledger.batch import Batch, BatchHeader, Provenance
from metadata.codec import decode_records
from snapshots.checkpoint import CheckpointHeader
from snapshots.store import LoadedCheckpoint

COLUMNS: Final = (*BRONZE_COLUMNS, "record")


def checkpoint_rows(spark: SparkSession, loaded: LoadedCheckpoint) -> DataFrame:
    """Return a checkpoint's records as settled rows of bronze, with `record`, and their `place`."""
    header = loaded.header
    parts = list(bronze_rows(as_batches(header, loaded.arrays()), COLUMNS))
    table = pa.Table.from_batches(parts)
    fact = F.lit(header.offset - 1).cast("bigint")
    return spark.createDataFrame(table).select(
        *(F.col(name) for name in COLUMNS if name not in ("offset", "base_offset", "end_offset")),
        F.col("offset").alias("place"),
        fact.alias("offset"),
        fact.alias("base_offset"),
        F.lit(header.offset).cast("bigint").alias("end_offset"),
        F.lit("settled").alias("outcome"),
        fact.alias("settled_base"),
        F.col("timestamp_ms").alias("settled_ms"),
    )


def as_batches(header: CheckpointHeader, blocks: Iterable[bytes]) -> Iterator[Batch]:
    """Yield a checkpoint's records as batches whose offsets are the records' places."""
    place = 0
    for block in blocks:
        count = len(decode_records(block))
        batch = BatchHeader(place, count, header.epoch, header.timestamp_ms, Provenance(), b"")
        yield Batch(batch, block, b"", b"")
        place += count
