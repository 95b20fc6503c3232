"""The state at one or many offsets, at any size. Its hash equals that of the live image there.

Rule: this module doesn't know what a record does. Executors replay parts of the log with the
controllers' code, and the driver adds their sums. The state hash is a sum over entries, so the log
may be folded in parts, if each entry is in one part.

A *part of topics* replays the settled records of some topics, chosen by the topic's id, and counts
their partitions. ClearElr goes to all of these parts. *The rest* replays all other records as they
stand, with transactions and the ends of all batches, and counts all other tables. Eviction, epochs
and shutdown offsets need these. A part is read once, in order, for all requested offsets; what
changed between two of them changes the sums.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.folds.transactions import Spans, counted
from metadata.codec import decode_record
from metadata.image import EMPTY, MetadataDelta, MetadataImage, difference
from metadata.image.families import TABLES
from metadata.records import ClearElrRecord, Record, RemoveTopicRecord, TopicRecord
from metadata.state_hash import part_of

REST: Final = -1
"""The number of the part for everything that is not in a part of topics."""
SNAPSHOT: Final = -1
"""`counts_from` of records from a checkpoint."""
_PARTITIONS: Final = "partitions"
_RECORDS_PER_DELTA: Final = 1 << 16
_MODULUS: Final = 1 << 256


class FoldRow(NamedTuple):
    """A record, or the end of a batch, in the form in which it is folded."""

    part: int
    offset: int
    end_offset: int
    """That of its batch; for a record of a checkpoint, the checkpoint's offset."""
    counts_from: int
    """In a part of topics: base offset of the batch that settles it. In the rest: that of its
    own batch."""
    epoch: int
    timestamp_ms: int
    record: bytes | None
    """Canonical bytes; None if only the end of the batch counts."""


class PartialSum(NamedTuple):
    """What a part adds to one table's row at one offset."""

    at: int
    table: str
    entries: int
    total: bytes
    """32 bytes, big-endian, modulo 2^256."""


def fold(rows: Iterable[FoldRow], offsets: Sequence[int]) -> Iterator[PartialSum]:
    """Fold rows that come part by part, each in the log's order; yield sums for each part.

    `offsets` ascend. Raises ReplayError, RecordDecodeError.
    """
    part: _Part | None = None
    for row in rows:
        if part is None or part.number != row.part:
            if part is not None:
                yield from part.rest_of_offsets()
            part = _Part(row.part, offsets)
        yield from part.take(row)
    if part is not None:
        yield from part.rest_of_offsets()


class _Part:
    def __init__(self, number: int, offsets: Sequence[int]) -> None:
        self.number = number
        self._tables = [t for t in TABLES if (t.name == _PARTITIONS) == (number != REST)]
        self._waiting = list(reversed(offsets))
        self._image: MetadataImage = EMPTY
        self._shown: MetadataImage = EMPTY
        self._delta = MetadataDelta(EMPTY, with_state_hash=False, from_snapshot=True)
        self._loading = True
        self._records = 0
        self._place = (0, 0, 0)
        self._entries = dict.fromkeys((t.name for t in self._tables), 0)
        self._sums = dict.fromkeys((t.name for t in self._tables), 0)
        self._names: dict[bytes, str] = {}

    def take(self, row: FoldRow) -> Iterator[PartialSum]:
        if self._loading and row.counts_from == SNAPSHOT:
            self._load(row)
            return
        if self._loading:
            self._settle()
        while self._waiting and row.counts_from >= self._waiting[-1]:
            yield from self._show(self._waiting.pop())
        if self.number == REST:
            self._take_of_rest(row)
        else:
            self._take_of_topics(row)

    def rest_of_offsets(self) -> Iterator[PartialSum]:
        """Yield the sums of the remaining offsets; nothing changes after the last row."""
        while self._waiting:
            yield from self._show(self._waiting.pop())

    def _load(self, row: FoldRow) -> None:
        assert row.record is not None
        record = decode_record(row.record)
        if self.number == REST:
            self._place = (row.end_offset, row.epoch, row.timestamp_ms)
        elif isinstance(record, TopicRecord):
            self._names[record.topic_id] = record.name
        self._delta.replay(record, row.end_offset)

    def _take_of_rest(self, row: FoldRow) -> None:
        if row.record is not None:
            self._delta.replay(decode_record(row.record), row.offset)
            self._records += 1
        self._place = (row.end_offset, row.epoch, row.timestamp_ms)
        if row.offset == row.end_offset - 1:
            self._delta.finish_batch(*self._place)
            if self._records >= _RECORDS_PER_DELTA:
                self._settle()

    def _take_of_topics(self, row: FoldRow) -> None:
        assert row.record is not None
        record = decode_record(row.record)
        self._place = (row.offset + 1, 0, 0)
        if self._concerns_us(record):
            self._delta.replay(record, row.offset)
            self._records += 1
            if self._records >= _RECORDS_PER_DELTA:
                self._settle()

    def _concerns_us(self, record: Record) -> bool:
        """Return whether a record concerns this part.

        ClearElr goes to all parts, because only the part that holds a topic knows its name.
        """
        if isinstance(record, TopicRecord):
            self._names[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            self._names.pop(record.topic_id, None)
        elif isinstance(record, ClearElrRecord) and record.topic_name:
            return record.topic_name in self._names.values()
        return True

    def _settle(self) -> None:
        """Apply what was replayed to the image."""
        if self.number != REST or self._loading:
            self._delta.finish_batch(*self._place)
            self._loading = False
        self._image = self._delta.apply()
        self._delta = MetadataDelta(self._image, with_state_hash=False)
        self._records = 0

    def _show(self, at: int) -> Iterator[PartialSum]:
        self._settle()
        changes = difference(self._shown, self._image)
        for table in self._tables:
            for key, before, after in changes.of(table.name):
                if before is not None:
                    self._sums[table.name] -= part_of(table.records(key, before))
                    self._entries[table.name] -= 1
                if after is not None:
                    self._sums[table.name] += part_of(table.records(key, after))
                    self._entries[table.name] += 1
            total = self._sums[table.name] % _MODULUS
            yield PartialSum(at, table.name, self._entries[table.name], total.to_bytes(32, "big"))
        self._shown = self._image


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
