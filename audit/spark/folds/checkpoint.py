"""A checkpoint before a log that was cut: as rows of bronze, and as the beginning of the folds.

Rule: a log that was cut is counted from its first checkpoint, which is loaded and verified as
controllers do it. Its records are settled facts of the offset before its own, at its time, and no
events.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from audit.findings.event_making import EventMaker
from audit.findings.events import AuditEvent
from audit.spark.folds.arrow_values import from_ipc
from audit.spark.folds.carried import ClusterCarried, PartitionsCarried
from audit.spark.folds.cluster import ClusterFold
from audit.spark.folds.messages import ROWS
from audit.spark.folds.partitions import PartitionFold
from audit.spark.folds.slices import COLUMNS, messages
from audit.spark.source.bronze import bronze_rows
from ledger.batch import Batch, BatchHeader, Provenance
from metadata.codec import decode_records
from snapshots.checkpoint import CheckpointHeader
from snapshots.store import LoadedCheckpoint


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


class FoldBeginning(NamedTuple):
    """Where the folds begin, and with what."""

    offset: int
    horizon_ms: int
    parts: tuple[PartitionsCarried, ...]
    cluster: ClusterCarried
    events: bytes | None
    """What the maker of events remembers."""
    rights: tuple[AuditEvent, ...] = ()
    """Who holds rights already, for the watcher of findings."""


def beginning(checkpoint: LoadedCheckpoint | None, parts: int) -> FoldBeginning:
    """Return the beginning; `checkpoint` None: that of a log from offset 0."""
    folds = tuple(PartitionsCarried(part, parts) for part in range(parts))
    cluster = ClusterCarried()
    if checkpoint is None:
        return FoldBeginning(0, 0, folds, cluster, None)
    header = checkpoint.header
    fact, time_ms = header.offset - 1, header.timestamp_ms
    batches = as_batches(header, checkpoint.arrays())
    rows = pa.Table.from_batches(bronze_rows(batches, COLUMNS)).sort_by("offset")
    for message in messages(rows, parts):
        if message.kind == ROWS:
            PartitionFold(folds[message.part]).begin(from_ipc(message.content), fact, time_ms)
    records = list(checkpoint.records())
    ClusterFold(cluster).begin(records, fact, time_ms)
    maker = EventMaker(leaders=False)
    rights = tuple(fact for fact in maker.begin(records, time_ms) if fact.grantee)
    return FoldBeginning(header.offset, time_ms, folds, cluster, maker.carried(), rights)
