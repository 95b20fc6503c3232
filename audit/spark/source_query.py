"""One query of the source `logberg_log`: its options, its range of offsets, the rows of a piece.

Rule: a query is fixed before Spark plans it. Batch and stream readers share what stands here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from audit.places.replicas import NoLogError, Replica
from audit.spark.bronze import bronze_rows, classes_of
from audit.spark.reading import Piece, absolute, read_piece, sound_end
from ledger.errors import HistoryMissingError
from ledger.reader import LedgerReader
from metadata.records import Record

LOG: Final = "log"
BATCHES: Final = "batches"
_PIECES: Final = 8


class SourceOptionError(ValueError):
    """An invalid option. The message says what is valid."""


class SourceOptions(NamedTuple):
    """The options of one query, parsed."""

    places: tuple[str, ...]
    table: str
    start: int | None
    end: int | None
    classes: frozenset[type[Record]] | None
    pieces: int
    records_per_trigger: int | None

    @classmethod
    def read(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Parse the options from Spark. Raises SourceOptionError, UnknownColumnError."""
        places = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
        if not all(places):
            raise SourceOptionError("name the place of the log: .load('/path/of/a/controller')")
        table = options.get("table", LOG)
        if table not in (LOG, BATCHES):
            raise SourceOptionError(f"table is {table!r}; it must be {LOG!r} or {BATCHES!r}")
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
        raise SourceOptionError(f"{name} is {text!r}; it must be a number of 0 or more")
    return int(text)


def read_rows(
    partition: InputPartition, columns: Sequence[str], classes: frozenset[type[Record]] | None
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a piece. Spark passes a partition of its own if there are no pieces."""
    if not isinstance(partition, Piece):
        return iter(())
    return bronze_rows(read_piece(partition), columns, classes)


def checked_range(
    replica: Replica, reader: LedgerReader, start: int | None, end: int | None
) -> tuple[int, int]:
    """Return the first offset and the end of a query.

    By default these are the beginning of the log and its reliable end. Raises HistoryMissingError,
    NoLogError, LedgerError.
    """
    log_end = sound_end(replica, reader)
    if start is not None and start < reader.log_start:
        raise HistoryMissingError(start, reader.log_start)
    if end is not None and end > log_end:
        raise NoLogError(f"{replica.location}: the log ends at offset {log_end}, before {end}.")
    return reader.log_start if start is None else start, log_end if end is None else end
