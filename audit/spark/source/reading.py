"""What a query reads: its options, its range of offsets, and the pieces that its tasks read.

Rule: a query is fixed before Spark plans it. A piece is plain values; the driver plans it, and any
executor may read it. An executor opens the places itself and needs nothing else from the driver. A
piece begins and ends at the boundary of a batch and names the offsets that it must hold. A task
that finds fewer, or anything but a checked chain of batches, stops the job. Nothing is skipped.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from audit.places.remote import is_url
from audit.places.replicas import NoLogError, Replica, open_all
from audit.spark.source.bronze import bronze_rows, classes_of
from ledger.batch import Batch, parse
from ledger.catalogue import Segment
from ledger.chain import LogMark
from ledger.errors import (
    DamagedBatchError,
    DamagedLedgerError,
    HistoryMissingError,
    LedgerError,
    UnknownFormatError,
)
from ledger.reader import LedgerReader
from ledger.scan import Head, ScannedFrame, walk_frames
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER
from metadata.records import Record
from runtime.disk.interface import Disk

PIECE_BYTES_MIN: Final = 8 * 1024 * 1024
"""Segments are not split into smaller pieces than this; such a piece isn't worth a task."""


class Piece(InputPartition):
    """Batches of one segment that follow each other. Spark pickles it for a task."""

    def __init__(
        self,
        places: Sequence[str],
        replica: str,
        path: str,
        position: int,
        start_offset: int,
        end_offset: int,
        previous: LogMark | None,
    ) -> None:
        self.places = tuple(places)
        self.replica = replica
        self.path = path
        self.position = position
        """The byte in the file where the first batch begins."""
        self.start_offset = start_offset
        """The first batch's base offset."""
        self.end_offset = end_offset
        """The piece holds the batches that begin before it; all of them must be there."""
        self.previous = previous
        """The mark that the first batch must continue, if it is known."""


def absolute(place: str) -> str:
    """Return a place that means the same in any folder, because tasks run elsewhere."""
    return place if is_url(place) else str(Path(place).absolute())


def open_longest(places: Sequence[str]) -> tuple[Replica, LedgerReader]:
    """Return the replica with the longest log, and its reader; of equals the first.

    A replica that can't be opened is left out if another can. Raises NoLogError, LedgerError.
    """
    opened: list[tuple[Replica, LedgerReader]] = []
    failures: list[Exception] = []
    for replica in open_all(places):
        try:
            opened.append((replica, replica.reader()))
        except DamagedLedgerError as error:
            file = f"{replica.location}/{error.file}"
            failures.append(DamagedLedgerError(file, error.position, error.offset, error.reason))
        except (NoLogError, LedgerError, OSError) as error:
            failures.append(error)
    if opened:
        return max(opened, key=lambda pair: pair[1].log_end)
    raise failures[0] if failures else NoLogError("no place was named to read a log from")


def sound_end(replica: Replica, reader: LedgerReader) -> int:
    """Return the end of the log that a reader can rely on. Raises DamagedLedgerError.

    After a loss of power, bytes after the synced mark may be anything. The node will write them
    again; until then the log ends before them.
    """
    mark = replica.synced_to
    if mark is None or reader.log_end <= mark.log_end:
        return reader.log_end
    end = mark.log_end
    for batch in reader.batches(max(mark.log_end, reader.log_start), reader.log_end):
        end = batch.header.end_offset
    return end


def check_continues(
    replica: Replica, reader: LedgerReader, offset: int, head: str, end: int
) -> None:
    """Refuse to continue with another log than the one that was read up to `offset`.

    `head`: the chain hash there, in hexadecimal; `end`: where the log ends. Raises NoLogError.
    """
    if end < offset:
        why = f"it ends at offset {end}"
    elif offset < reader.log_start:
        why = f"it begins at offset {reader.log_start}"
    elif (reader.hash_at(offset) or b"").hex() != head:
        why = "its chain hash there differs"
    else:
        return
    raise NoLogError(
        f"{replica.location} is not the log that was read up to offset {offset}: {why}. "
        "Restore that log, or begin again with another folder for what was read."
    )


def plan(
    places: Sequence[str],
    replica: Replica,
    reader: LedgerReader,
    start: int,
    end: int,
    pieces_wanted: int,
) -> list[Piece]:
    """Return the pieces that hold the batches from the one with `start` to that before `end`.

    A segment is one piece, unless that gives fewer than `pieces_wanted`. Raises DamagedLedgerError,
    HistoryMissingError.
    """
    catalogue = reader.catalogue
    if start >= end:
        return []
    catalogue.segment_at(start)
    wanted = [s for s in catalogue.run if s.base_offset < end and catalogue.end_of(s) > start]
    sizes = [replica.disk.size(segment.path) for segment in wanted]
    at_most = max(PIECE_BYTES_MIN, sum(sizes) // max(pieces_wanted, 1))
    pieces: list[Piece] = []
    for segment, size in zip(wanted, sizes, strict=True):
        until = min(end, catalogue.end_of(segment))
        first = max(start, segment.base_offset)
        parts = max(1, round(size * (until - first) / _records(reader, segment) / at_most))
        cuts = [first + (until - first) * part // parts for part in range(parts)]
        pieces += _pieces(places, replica, reader, segment, cuts, until)
    return pieces


def _records(reader: LedgerReader, segment: Segment) -> int:
    return max(1, reader.catalogue.end_of(segment) - segment.base_offset)


def _pieces(
    places: Sequence[str],
    replica: Replica,
    reader: LedgerReader,
    segment: Segment,
    cuts: Sequence[int],
    until: int,
) -> Iterator[Piece]:
    """Yield the pieces of one segment. They begin at the batches that hold the offsets `cuts`."""
    begins = [_begin(reader, segment, cut) for cut in cuts]
    begins = list(dict.fromkeys(begins))
    ends = [base for base, _, _ in begins[1:]] + [until]
    for (base, position, previous), end in zip(begins, ends, strict=True):
        yield Piece(places, replica.name, segment.path, position, base, end, previous)


def _begin(reader: LedgerReader, segment: Segment, offset: int) -> tuple[int, int, LogMark | None]:
    """Return base offset, position and predecessor of the batch that holds an offset."""
    if offset == segment.base_offset:
        return offset, segment.header_length, segment.header.previous
    head: Head = reader.catalogue.head_at(offset)[1]
    if head.base_offset == segment.base_offset:
        return head.base_offset, head.position, segment.header.previous
    return head.base_offset, head.position, None


def open_replica(piece: Piece) -> Replica:
    """Open the replica of a piece, in this process. Raises NoLogError."""
    for replica in open_all(piece.places):
        if replica.name == piece.replica:
            return replica
    raise NoLogError(
        f"{piece.replica} was in {', '.join(piece.places)} when the query was planned, but this "
        "process can't see it: every worker must reach the log under the same name"
    )


def path_now(disk: Disk, path: str) -> str:
    """Return a segment's path, which changes if a running node moves it to its archive."""
    name = path.rpartition("/")[2]
    if not disk.exists(path):
        for moved in (f"{ARCHIVE_FOLDER}/{name}", f"{LOG_FOLDER}/{name}"):
            if disk.exists(moved):
                return moved
    return path


def read_piece(piece: Piece) -> Iterator[Batch]:
    """Yield a piece's batches, checked and chained.

    Raises DamagedLedgerError with file and offset, LedgerError for a newer format, NoLogError.
    """
    replica = open_replica(piece)
    path = path_now(replica.disk, piece.path)
    mark = piece.previous
    offset, position = piece.start_offset, piece.position
    shown = f"{replica.location}/{path}"
    frames = walk_frames(replica.disk, path, position)
    while offset < piece.end_offset:
        try:
            frame = _next(frames, position, offset)
            position = frame.position
            batch = _parsed(frame.window, frame.start, position)
            _check_next(batch, mark, offset, position)
        except DamagedBatchError as error:
            raise DamagedLedgerError(shown, error.position, offset, error.reason) from None
        except UnknownFormatError as error:
            raise LedgerError(f"{shown}: {error}") from None
        yield batch
        mark = LogMark.beginning("").after(batch)
        offset, position = mark.log_end, frame.position + frame.length


def _next(frames: Iterator[ScannedFrame], position: int, offset: int) -> ScannedFrame:
    frame = next(frames, None)
    if frame is None:
        reason = f"the segment ends at offset {offset}, it reached further"
        raise DamagedBatchError(position, reason)
    return frame


def _parsed(window: bytes, start: int, position: int) -> Batch:
    try:
        return parse(window, start)
    except DamagedBatchError as error:
        raise DamagedBatchError(position, error.reason) from None
    except UnknownFormatError as error:
        raise UnknownFormatError(position, error.format_version, error.flags) from None


def _check_next(batch: Batch, mark: LogMark | None, offset: int, position: int) -> None:
    base = batch.header.base_offset
    reason = mark.objection(batch) if mark is not None else ""
    if not reason and base != offset:
        reason = f"offset {offset} must follow, the batch begins at {base}"
    if reason:
        raise DamagedBatchError(position, reason)


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
