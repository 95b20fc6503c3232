"""The log as a Spark data source, `logberg_log`, for batches and for streams.

Rule: only committed, whole, checked batches become rows. Damage stops the job and names file and
offset. Ranges are options that are fixed before Spark plans the query. No filter is ever pushed
down: Spark 4.3 applies pushed filters to later queries too and counts wrong
(tests/spark/test_source.py shows it). A reader builds the columns of the given schema and no
others.

A stream's offset is the log's offset and the chain hash there. Both ends of a micro-batch are
boundaries of batches, and Spark writes them into its checkpoint before it reads the micro-batch. So
after a kill the same batches are read again, byte for byte, and nothing is added twice. The hash
ensures that a checkpoint continues only with the log that it began with. A transaction may be open
at the end of a micro-batch. Rows are raw records; the consumer that settles them must keep those of
an open transaction.

Options: `path` (or several by `.load([…])`), `table` (`log` or `batches`), `startOffset`,
`endOffset`, `types` (names, separated by commas), `pieces` (at least about so many tasks), and for
streams `recordsPerTrigger`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from audit.places.replicas import Replica
from audit.spark.source.bronze import classes_of, ddl
from audit.spark.source.frames import FRAMES_DDL, SegmentPiece, plan_frames, read_frames
from audit.spark.source.reading import (
    BATCHES,
    LOG,
    SourceOptionError,
    SourceOptions,
    absolute,
    check_continues,
    checked_range,
    open_longest,
    plan,
    read_rows,
    sound_end,
)
from ledger.reader import LedgerReader

NAME: Final = "logberg_log"


class LogbergLogSource(DataSource):
    """The data source that Spark knows as `logberg_log`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        table = SourceOptions.read(self.options).table
        return FRAMES_DDL if table == BATCHES else ddl()

    def reader(self, schema: StructType) -> DataSourceReader:
        options = SourceOptions.read(self.options)
        if options.table == BATCHES:
            return BatchTableReader(options)
        return LogReader(options, schema.fieldNames())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        options = SourceOptions.read(self.options)
        if options.table != LOG:
            raise SourceOptionError(f"only the table {LOG!r} can be streamed")
        return LogStreamReader(options, schema.fieldNames())


class LogReader(DataSourceReader):
    """Reads bronze once."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        options = self._options
        replica, reader = open_longest(options.places)
        start, end = checked_range(replica, reader, options.start, options.end)
        return [*plan(options.places, replica, reader, start, end, options.pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._columns, self._options.classes)


class BatchTableReader(DataSourceReader):
    """The table `batches`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        return [*plan_frames(self._options.places, self._options.end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SegmentPiece):
            return iter(())  # Spark's own, when there are no segments at all
        return read_frames(partition, self._options.end)


def register(spark: SparkSession) -> None:
    """Register `logberg_log` in a session. It may be registered already."""
    spark.dataSource.register(LogbergLogSource)


def read_log(
    spark: SparkSession,
    replica_locations: Sequence[str],
    *,
    up_to: int | None = None,
    start: int | None = None,
    columns: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
) -> DataFrame:
    """Return the log as unordered rows of bronze (audit/spark/bronze.py).

    Of several replicas, the one with the longest log is read. The end is fixed now: the log's end,
    or `up_to`, before which the last batch begins. `columns`: columns of bronze; `record` and
    `fields` are built only if named here. `types`: record types (`TOPIC_RECORD`). Raises
    NoLogError, LedgerError (HistoryMissingError before the log's start), UnknownColumnError.
    """
    replica, reader = open_longest(replica_locations)
    begin, end = checked_range(replica, reader, start, up_to)
    options = {
        "endOffset": end,
        "startOffset": begin,
        "types": _types_option(types),
        "pieces": 4 * spark.sparkContext.defaultParallelism,
    }
    return _load(spark, replica_locations, options, ddl() if columns is None else ddl(columns))


def stream_log(
    spark: SparkSession,
    location: str,
    *,
    start: int | None = None,
    columns: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    records_per_trigger: int | None = None,
) -> DataFrame:
    """Return the log as a stream of the same rows, from `start` or the log's start on.

    A micro-batch is whole batches. A transaction may be open at its end. Also works with
    `availableNow`.
    """
    stream = spark.readStream.format(NAME).schema(ddl() if columns is None else ddl(columns))
    options = {
        "startOffset": start,
        "types": _types_option(types),
        "recordsPerTrigger": records_per_trigger,
        "pieces": 4 * spark.sparkContext.defaultParallelism,
    }
    for name, value in options.items():
        if value is not None:
            stream = stream.option(name, value)
    return stream.load(absolute(location))


def _types_option(types: Sequence[str] | None) -> str | None:
    """Check names of types here, not later in a process of Spark's."""
    if types is None:
        return None
    classes_of(types)
    return ",".join(types)


def batches(
    spark: SparkSession, locations: Sequence[str], *, up_to: int | None = None
) -> DataFrame:
    """Return every frame of every replica as unordered rows of audit.tables.BATCHES.

    Frames with a wrong checksum are included (`crc_ok` false). A segment's rows end where no next
    frame can be found. `up_to`: only frames that begin before it; else up to each replica's end.
    """
    return _load(spark, locations, {"table": BATCHES, "endOffset": up_to}, FRAMES_DDL)


def _load(
    spark: SparkSession,
    places: Sequence[str],
    options: Mapping[str, str | int | None],
    schema: str,
) -> DataFrame:
    reader = spark.read.format(NAME).schema(schema)
    for name, value in options.items():
        if value is not None:
            reader = reader.option(name, value)
    return reader.load([*map(absolute, places)])


Place = dict[str, Any]
"""`offset` and, in hexadecimal, `head`: the hash of the batch that ends there. Stored as JSON."""


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in a process beside the driver. Only `read` runs in tasks, on a copy."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self._opened: tuple[Replica, LedgerReader] | None = None
        self._target: int | None = None
        """The offset where a query with `availableNow` ends."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open log, because a task opens its own."""
        return self.__dict__ | {"_opened": None}

    def initialOffset(self) -> Place:  # noqa: N802 - Spark's
        replica, reader = self._log()
        start, _ = checked_range(replica, reader, self._options.start, self._options.start)
        return self._place(self._boundary(start))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        most = self._options.records_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        self._target = self._end()

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:  # noqa: N802 - Spark's
        begin = start["offset"]
        end = self._end() if self._target is None else self._target
        self._check_continues(start, end)
        if isinstance(limit, ReadMaxRows) and end - begin > limit.max_rows:
            end = max(self._boundary(begin + limit.max_rows), self._batch_end(begin))
        return self._place(end)

    def partitions(self, start: Place, end: Place) -> list[InputPartition]:
        replica, reader = self._log()
        if reader.log_end < end["offset"]:  # after a restart the checkpoint may be ahead of us
            replica, reader = self._log(again=True)
        self._check_continues(end, sound_end(replica, reader))
        return [
            *plan(
                self._options.places,
                replica,
                reader,
                start["offset"],
                end["offset"],
                self._options.pieces,
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._columns, self._options.classes)

    def _end(self) -> int:
        replica, reader = self._log(again=True)
        return sound_end(replica, reader)

    def _log(self, *, again: bool = False) -> tuple[Replica, LedgerReader]:
        """Return the log as it was last opened, or opened again."""
        if again or self._opened is None:
            self._opened = open_longest(self._options.places)
        return self._opened

    def _place(self, offset: int) -> Place:
        return {"offset": offset, "head": self._head(offset).hex()}

    def _head(self, end_offset: int) -> bytes:
        """Return the chain hash at the end of a batch or the log's start; b"" elsewhere."""
        return self._log()[1].hash_at(end_offset) or b""

    def _check_continues(self, place: Place, end: int) -> None:
        """Refuse to continue with another log than the one that was read. Raises NoLogError."""
        check_continues(*self._log(), place["offset"], place["head"], end)

    def _boundary(self, offset: int) -> int:
        """Return the base offset of the batch that holds an offset; at the log's end, that end."""
        reader = self._log()[1]
        if offset >= reader.log_end:
            return reader.log_end
        return reader.catalogue.head_at(offset)[1].base_offset

    def _batch_end(self, offset: int) -> int:
        return self._log()[1].catalogue.head_at(offset)[1].end_offset
