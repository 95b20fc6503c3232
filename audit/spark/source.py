"""The log as a Spark data source, `logberg_log`: in batches and in streams.

Rule: only committed, whole, checked batches become rows; damage stops the job and names file and
offset. Ranges are options, fixed before the query is planned; no filter is ever pushed down: Spark
4.3 applies pushed filters to later queries, too, and counts wrong (tests/spark/test_source.py shows
it). A reader builds the columns of the schema that it is given, and no others.

Options: `path` (or several by `.load([…])`), `table` (`log` or `batches`), `startOffset`,
`endOffset`, `types` (names, separated by commas), `pieces` (about so many tasks, at least), and for
streams `recordsPerTrigger`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from audit.places.replicas import NoLogError, Replica
from audit.spark.bronze import bronze_rows, classes_of, ddl
from audit.spark.reading import Piece, absolute, open_longest, plan, read_piece, sound_end
from audit.spark.source_frames import (
    FRAMES_DDL,
    SegmentPiece,
    plan_frames,
    read_frames,
)
from ledger.errors import HistoryMissingError
from ledger.reader import LedgerReader
from metadata.records import Record

NAME: Final = "logberg_log"
_LOG, _BATCHES = "log", "batches"
_PIECES: Final = 8


class SourceOptionError(ValueError):
    """An option that can't be what it says; the message says what is meant."""


class SourceOptions(NamedTuple):
    """The options of one query, read."""

    places: tuple[str, ...]
    table: str
    start: int | None
    end: int | None
    classes: frozenset[type[Record]] | None
    pieces: int
    records_per_trigger: int | None

    @classmethod
    def read(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Read what Spark hands over. Raises SourceOptionError, UnknownColumnError."""
        places = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
        if not all(places):
            raise SourceOptionError("say where the log is: .load('/path/of/a/controller')")
        table = options.get("table", _LOG)
        if table not in (_LOG, _BATCHES):
            raise SourceOptionError(f"table is {table!r}; there are {_LOG!r} and {_BATCHES!r}")
        types = [name.strip() for name in options.get("types", "").split(",") if name.strip()]
        return cls(
            tuple(map(absolute, places)),
            table,
            _number(options, "startOffset"),
            _number(options, "endOffset"),
            classes_of(types) if types else None,
            _number(options, "pieces") or _PIECES,
            _number(options, "recordsPerTrigger"),
        )


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal():
        raise SourceOptionError(f"{name} is {text!r}; a number of 0 or more is meant")
    return int(text)


class LogbergLogSource(DataSource):
    """What Spark knows as `logberg_log`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        table = SourceOptions.read(self.options).table
        return FRAMES_DDL if table == _BATCHES else ddl()

    def reader(self, schema: StructType) -> DataSourceReader:
        options = SourceOptions.read(self.options)
        if options.table == _BATCHES:
            return BatchTableReader(options)
        return LogReader(options, schema.fieldNames())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        # Imported here, or the two modules would import each other.
        from audit.spark.stream import LogStreamReader  # noqa: PLC0415

        options = SourceOptions.read(self.options)
        if options.table != _LOG:
            raise SourceOptionError(f"only the table {_LOG!r} can be streamed")
        return LogStreamReader(options, schema.fieldNames())


class LogReader(DataSourceReader):
    """Bronze, once."""

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


def read_rows(
    partition: InputPartition, columns: Sequence[str], classes: frozenset[type[Record]] | None
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a piece; of what Spark makes up when there is none, none."""
    if not isinstance(partition, Piece):
        return iter(())
    return bronze_rows(read_piece(partition), columns, classes)


def checked_range(
    replica: Replica, reader: LedgerReader, start: int | None, end: int | None
) -> tuple[int, int]:
    """Return where to begin and where to stop. Raises HistoryMissingError, NoLogError, LedgerError.

    Without an offset that is where the log begins, and where it surely ends by now.
    """
    log_end = sound_end(replica, reader)
    if start is not None and start < reader.log_start:
        raise HistoryMissingError(start, reader.log_start)
    if end is not None and end > log_end:
        raise NoLogError(f"{replica.location}: the log ends at offset {log_end}, before {end}.")
    return reader.log_start if start is None else start, log_end if end is None else end


def register(spark: SparkSession) -> None:
    """Make `logberg_log` known to a session. Harmless when it is."""
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
    """Return the log as rows of bronze (audit/spark/bronze.py), in no particular order.

    Of several replicas the one with the longest log is read. The end is fixed now: batches that
    begin before `up_to`, else before the log's end. `columns`: those of bronze that are built, also
    `record` and `fields`, which are left out otherwise. `types`: record types (`TOPIC_RECORD`).
    Raises NoLogError, LedgerError (HistoryMissingError before the log's start), UnknownColumnError.
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
    """Return the log as a stream of the same rows, from `start` on (else the log's start).

    A micro-batch is whole batches; a transaction may be open at its end. Also with `availableNow`.
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
    """Check names of types here and now rather than in a process of Spark's."""
    if types is None:
        return None
    classes_of(types)
    return ",".join(types)


def batches(
    spark: SparkSession, locations: Sequence[str], *, up_to: int | None = None
) -> DataFrame:
    """Return every frame of every replica: audit.tables.BATCHES, in no particular order.

    Also frames whose checksum is wrong (`crc_ok` false); what can't be walked any further ends a
    segment's rows. Up to each replica's own end, or those that begin before `up_to`.
    """
    return _load(spark, locations, {"table": _BATCHES, "endOffset": up_to}, FRAMES_DDL)


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
