"""The state at one or many offsets, at any size. Its hash equals that of the live image there.

Rule: this module doesn't know what a record does. Executors replay parts of the log with the
controllers' code (state_fold), and the driver adds their sums. Records of a topic go to one part,
chosen by the topic's id. ClearElr goes to all of these parts. All other records, and the end of
every batch, go to the part *rest*.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.settle import Spans, counted
from audit.spark.state_fold import REST, SNAPSHOT, FoldRow, PartialSum, fold
from metadata.image.families import TABLES

NEEDS: Final = (
    "offset",
    "timestamp_ms",
    "epoch",
    "base_offset",
    "end_offset",
    "type",
    "topic_id",
    "record",
)
"""The columns of bronze that the state needs."""
TOPIC_PARTS: Final = 8

_TOPIC_TYPES: Final = ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD")
_PARTITION_TYPES: Final = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD")
_CLEAR: Final = "CLEAR_ELR_RECORD"

_SUM_DDL: Final = "at bigint, table string, entries bigint, total binary"

StateRow = tuple[str, int, str, str]


def states(
    log: DataFrame,
    known: Spans,
    offsets: Iterable[int],
    *,
    checkpoint: DataFrame | None = None,
    parts: int = TOPIC_PARTS,
) -> dict[int, list[StateRow]]:
    """Return the rows of audit.tables.STATE_COUNTS at each offset, in one job.

    `log`: bronze with the columns NEEDS, from the offset of the checkpoint (`checkpoint_rows`) on,
    or from 0 without one. Raises Spark's PythonException if replay refuses a record.
    """
    asked = sorted(set(offsets))
    rows = _rest(log).unionByName(_topics(log, known, parts))
    if checkpoint is not None:
        rows = rows.unionByName(_of_checkpoint(checkpoint, parts))

    def fold_batches(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - on executors

        found = list(fold(_fold_rows(batches), asked))
        columns = list(zip(*found, strict=True)) or [()] * len(PartialSum._fields)
        types = (pa.int64(), pa.string(), pa.int64(), pa.binary())
        yield pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)],
            names=list(PartialSum._fields),
        )

    sums = (
        rows.select(*FoldRow._fields)
        .repartition("part")
        .sortWithinPartitions("part", "counts_from", "offset")
        .mapInArrow(fold_batches, _SUM_DDL)
    )
    partial = [PartialSum(row[0], row[1], row[2], bytes(row[3])) for row in sums.collect()]
    return {at: state_rows(one for one in partial if one.at == at) for at in asked}


def state_rows(partial: Iterable[PartialSum]) -> list[StateRow]:
    """Add the sums of all parts at one offset."""
    entries = dict.fromkeys((table.name for table in TABLES), 0)
    sums = dict.fromkeys(entries, 0)
    for one in partial:
        entries[one.table] += one.entries
        sums[one.table] += int.from_bytes(one.total, "big")
    private = {table.name for table in TABLES if table.controllers_only}
    shared = sum(total for name, total in sums.items() if name not in private)
    own = sum(total for name, total in sums.items() if name in private)
    rows = [("*", sum(entries.values()), _text(shared), _text(own))]
    for name, total in sums.items():
        shares, holds = (0, total) if name in private else (total, 0)
        rows.append((name, entries[name], _text(shares), _text(holds)))
    return sorted(rows)


def _text(total: int) -> str:
    return (total % (1 << 256)).to_bytes(32, "big").hex()


def _fold_rows(batches: Iterator[Any]) -> Iterator[FoldRow]:
    for batch in batches:
        yield from map(FoldRow._make, zip(*(c.to_pylist() for c in batch.columns), strict=True))


def _rest(log: DataFrame) -> DataFrame:
    """Return all records except those of partitions, and the last offset of each batch."""
    of_partition = F.col("type").isin(*_PARTITION_TYPES)
    return log.where(~of_partition | (F.col("offset") == F.col("end_offset") - 1)).select(
        F.lit(REST).alias("part"),
        "offset",
        "end_offset",
        F.col("base_offset").alias("counts_from"),
        "epoch",
        "timestamp_ms",
        F.when(~of_partition, F.col("record")).alias("record"),
    )


def _topics(log: DataFrame, known: Spans, parts: int) -> DataFrame:
    chosen = log.where(F.col("type").isin(*_TOPIC_TYPES, *_PARTITION_TYPES, _CLEAR))
    return counted(chosen, known).select(
        _part(parts),
        "offset",
        "end_offset",
        F.col("settled_base").alias("counts_from"),
        "epoch",
        "timestamp_ms",
        "record",
    )


def _of_checkpoint(checkpoint: DataFrame, parts: int) -> DataFrame:
    """Return a checkpoint's rows for the parts that need them. They come before the log."""
    of_partition = F.col("type").isin(*_PARTITION_TYPES)
    of_topic = F.col("type").isin(*_TOPIC_TYPES)
    order = {"counts_from": F.lit(SNAPSHOT).cast("bigint"), "offset": F.col("place")}
    rows = checkpoint.withColumns(order)
    rest = rows.where(~of_partition).withColumn("part", F.lit(REST)).select(*FoldRow._fields)
    topics = rows.where(of_partition | of_topic).select("*", _part(parts))
    return rest.unionByName(topics.select(*FoldRow._fields))


def _part(parts: int) -> Any:
    """Return the number of a topic's part; for ClearElr, of all parts."""
    everywhere = F.array(*(F.lit(number) for number in range(parts)))
    own = F.array(F.pmod(F.crc32(F.encode("topic_id", "utf-8")), F.lit(parts)).cast("int"))
    return F.explode(F.when(F.col("type") == _CLEAR, everywhere).otherwise(own)).alias("part")
