"""Slices: what one task makes of a piece of the log. It is the only decoding in a micro-batch.

Rule: a task decodes its piece once, writes the piece's file of bronze itself, and passes on only
what the folds need. Records of partitions go to the part of their topic. Few records concern every
part: those that begin and end transactions, topics and the min ISR. What is small goes to the
driver as records, and who changed what as counts. Everything that is passed on is Arrow in a few
large values, so Spark never handles a record by itself.

A task can't know whether its first records belong to an open transaction. So counts are kept apart
by *stretch*: the records between two markers of transactions, which all share one fate.
"""

from collections.abc import Collection, Iterator
from typing import Final
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audit.findings.event_making import clock_apart_ms
from audit.findings.refusals import REFUSAL_SIGN
from audit.lake.files import DataFile, write_file
from audit.lake.place import LakePlace
from audit.lake.schemas import to_kept
from audit.spark.folds.arrow_values import to_ipc
from audit.spark.folds.messages import COUNTS, DRIVER, FEW, REPORT, ROWS, Message
from audit.spark.folds.transactions import BEGIN, EPOCH, MARKERS
from audit.spark.source.bronze import BRONZE_COLUMNS, TYPE_NAMES, arrow_schema, bronze_rows
from audit.spark.source.reading import Piece, read_piece
from audit.tables import BRONZE
from ledger.batch import Batch
from metadata.records.declaring import Privileged

COLUMNS: Final = (*BRONZE_COLUMNS, "record")
TOPIC: Final = "TOPIC_RECORD"
REMOVE_TOPIC: Final = "REMOVE_TOPIC_RECORD"
PARTITION: Final = "PARTITION_RECORD"
PARTITION_CHANGE: Final = "PARTITION_CHANGE_RECORD"
CONFIG: Final = "CONFIG_RECORD"
BROKER_TYPES: Final = (
    "REGISTER_BROKER_RECORD",
    "UNREGISTER_BROKER_RECORD",
    "FENCE_BROKER_RECORD",
    "UNFENCE_BROKER_RECORD",
    "BROKER_REGISTRATION_CHANGE_RECORD",
    "FEATURE_LEVEL_RECORD",
)
MIN_ISR: Final = "min.insync.replicas"

CALLER: Final = (
    "principal",
    "on_behalf_of",
    "request_id",
    "operation",
    "reason",
    "auth_method",
    "client_address",
    "acted_as",
)
ROW_COLUMNS: Final = (
    "offset",
    "base_offset",
    "timestamp_ms",
    "type",
    "topic_id",
    "topic_name",
    "partition",
    "leader",
    "isr",
    "replicas",
    "resource_type",
    "name",
    "config_key",
    "config_value",
    *CALLER,
)
FEW_COLUMNS: Final = (
    "offset",
    "base_offset",
    "timestamp_ms",
    "type",
    *CALLER,
    "record",
)
_IDENTITY: Final = ("principal", "on_behalf_of", "auth_method", "client_address", "acted_as")
"""What tells callers apart (`audit.findings.events`)."""
_OUTCOME: Final = "REQUEST_OUTCOME_RECORD"
_COUNTED: Final = ("day", "principal", "operation", "type")
COUNT_COLUMNS: Final = (
    "offset",
    "base_offset",
    "timestamp_ms",
    *_COUNTED,
    "count",
    "first_offset",
    "last_offset",
    "first_ms",
    "last_ms",
)
"""The first three are those of the stretch's first record."""
_OF_PARTITIONS: Final = pa.array([PARTITION, PARTITION_CHANGE])
_OF_TOPICS: Final = pa.array([TOPIC, REMOVE_TOPIC, *MARKERS])
_PRIVILEGED: Final = {
    name: kind.PRIVILEGED for name, kind in TYPE_NAMES.items() if kind.PRIVILEGED is not None
}
_ALWAYS_FEW: Final = pa.array(
    sorted(
        {
            *MARKERS,
            *BROKER_TYPES,
            TOPIC,
            REMOVE_TOPIC,
            CONFIG,
            *(name for name, rule in _PRIVILEGED.items() if not rule.when),
        }
    )
)


class SliceReport(msgspec.Struct, frozen=True):
    """What a task says of its piece: enough to see that no batch is missing or came twice."""

    start: int
    end: int
    records: int
    previous_hash: bytes
    """The hash that the first batch continues."""
    head: bytes
    """The hash of the last batch."""
    timestamp_ms: int
    """Of the last batch."""
    file: DataFile | None


def sliced(
    piece: Piece, number: int, parts: int, place: LakePlace | None, name: str
) -> Iterator[Message]:
    """Write a piece's file of bronze and yield what the folds need of it.

    `place` None: no file is written. Raises LakeError, and what `read_piece` raises.
    """
    seen = _Seen()
    rows = pa.Table.from_batches(bronze_rows(seen.each(read_piece(piece)), COLUMNS))
    rows = rows.sort_by("offset")
    file = None
    if place is not None:
        file = write_file(place, BRONZE.name, to_kept(rows, BRONZE), name)
    report = msgspec.msgpack.encode(seen.report(rows.num_rows, file))
    yield Message(DRIVER, number, REPORT, report)
    found = messages(rows, parts, seen.apart)
    yield from (each._replace(piece=number) for each in found)


class _Seen:
    """The first and last batch that went by, and those whose clocks are apart."""

    def __init__(self) -> None:
        self.apart: list[int] = []
        """Their base offsets."""
        self._first: Batch | None = None
        self._last: Batch | None = None

    def each(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            if self._first is None:
                self._first = batch
            self._last = batch
            if clock_apart_ms(batch.header):
                self.apart.append(batch.header.base_offset)
            yield batch

    def report(self, records: int, file: DataFile | None) -> SliceReport:
        assert self._first is not None, "a piece holds at least one batch"
        assert self._last is not None
        first, last = self._first.header, self._last.header
        return SliceReport(
            first.base_offset,
            last.end_offset,
            records,
            first.previous_hash,
            self._last.hash,
            last.timestamp_ms,
            file,
        )


def messages(rows: pa.Table, parts: int, apart: Collection[int] = ()) -> Iterator[Message]:
    """Divide rows of bronze, ordered by offset, among the parts and the driver.

    `apart`: base offsets of batches whose request was made long before or after.
    """
    types = rows.column("type")
    own = pc.is_in(types, _OF_PARTITIONS)
    of_all = pc.or_(pc.is_in(types, _OF_TOPICS), _is_min_isr(rows))
    narrow = rows.select(list(ROW_COLUMNS))
    part_of = _part_of(rows.column("topic_id"), parts)
    for part in range(parts):
        mine = pc.or_(of_all, pc.and_(own, pc.fill_null(pc.equal(part_of, part), False)))
        yield Message(part, 0, ROWS, to_ipc(narrow.filter(mine)))
    few = pc.or_(pc.is_in(types, _ALWAYS_FEW), _may_be_privileged(rows))
    few = pc.or_(pc.or_(few, _with_refusals(rows)), _first_met(rows, apart))
    yield Message(DRIVER, 0, FEW, to_ipc(rows.select(list(FEW_COLUMNS)).filter(few)))
    yield Message(DRIVER, 0, COUNTS, to_ipc(counts(rows)))


def part_of_topic(topic_id: str, parts: int) -> int:
    """Return the number of the part that folds a topic's partitions."""
    return crc32(topic_id.encode()) % parts


def _part_of(topic_ids: pa.ChunkedArray, parts: int) -> pa.Array:
    encoded = topic_ids.combine_chunks().dictionary_encode()
    by_topic = pa.array(
        [part_of_topic(text, parts) for text in encoded.dictionary.to_pylist()], pa.int32()
    )
    return by_topic.take(encoded.indices)


def _is_min_isr(rows: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(rows.column("config_key"), MIN_ISR), False)


def _may_be_privileged(rows: pa.Table) -> pa.Array:
    """Return where a record's columns fulfil the conditions of its type."""
    found = np.zeros(rows.num_rows, bool)
    for name, rule in _PRIVILEGED.items():
        if rule.when:
            found |= _fulfilled(rows, name, rule)
    return pa.array(found)


def _with_refusals(rows: pa.Table) -> pa.Array:
    """Return where the outcome of a request tells of refused items."""
    places = np.flatnonzero(pc.equal(rows.column("type"), _OUTCOME).to_numpy())
    answers = rows.column("record").take(pa.array(places))
    found = np.zeros(rows.num_rows, bool)
    found[places] = pc.match_substring(answers, REFUSAL_SIGN).to_numpy()
    return pa.array(found)


def _first_met(rows: pa.Table, apart: Collection[int]) -> pa.Array:
    """Return where a stretch has the first record of a caller, or of a batch in `apart`."""
    offsets = rows.column("offset").to_numpy()
    begins = _stretches(offsets, rows.column("type"))
    stretch = pa.array(np.searchsorted(begins, offsets, "right"))
    met = rows.select(["offset", "base_offset", *_IDENTITY]).append_column("stretch", stretch)
    of_callers = met.group_by(["stretch", *_IDENTITY]).aggregate([("offset", "min")])
    is_apart = pc.is_in(met.column("base_offset"), pa.array(list(apart), pa.int64()))
    of_batches = met.filter(is_apart).group_by(["stretch", "base_offset"])
    firsts = [of_callers, of_batches.aggregate([("offset", "min")])]
    found = np.zeros(rows.num_rows, bool)
    for first in firsts:
        found[np.searchsorted(offsets, first.column("offset_min").to_numpy())] = True
    return pa.array(found)


def _fulfilled(rows: pa.Table, name: str, rule: Privileged) -> np.ndarray:
    places = np.flatnonzero(pc.equal(rows.column("type"), name).to_numpy())
    fits = np.ones(len(places), bool)
    for column, test, value in rule.when:
        values = rows.column(column).take(pa.array(places))
        there = values.is_valid().to_numpy()
        fits &= there
        if test is not None:
            known = values.to_numpy(zero_copy_only=False)[there]
            fits[there] &= test(known, value)
    found = np.zeros(rows.num_rows, bool)
    found[places[fits]] = True
    return found


def nothing(kind: str) -> pa.Table:
    """Return what messages of a kind hold if the log has no records: no rows."""
    empty = arrow_schema(COLUMNS).empty_table()
    if kind == COUNTS:
        named = empty.select(["offset", "base_offset", "timestamp_ms", *_COUNTED])
        for name in COUNT_COLUMNS[len(named.column_names) :]:
            named = named.append_column(name, pa.array([], pa.int64()))
        return named
    return empty.select(list(ROW_COLUMNS if kind == ROWS else FEW_COLUMNS))


def counts(rows: pa.Table) -> pa.Table:
    """Count records by stretch, day, principal, operation and type."""
    offsets = rows.column("offset").to_numpy()
    begins = _stretches(offsets, rows.column("type"))
    of_stretch = np.searchsorted(begins, offsets, "right") - 1
    grouped = (
        rows.select(["offset", "timestamp_ms", *_COUNTED])
        .append_column("stretch", pa.array(of_stretch))
        .group_by(["stretch", *_COUNTED])
        .aggregate(
            [
                ("offset", "count"),
                ("offset", "min"),
                ("offset", "max"),
                ("timestamp_ms", "min"),
                ("timestamp_ms", "max"),
            ]
        )
        .sort_by("stretch")
    )
    firsts = pa.array(np.searchsorted(offsets, begins)).take(
        grouped.column("stretch").combine_chunks()
    )
    of_first = rows.select(["offset", "base_offset", "timestamp_ms"]).take(firsts)
    columns = [*of_first.columns, *grouped.drop_columns(["stretch"]).columns]
    return pa.Table.from_arrays(columns, names=list(COUNT_COLUMNS))


def _stretches(offsets: np.ndarray, types: pa.ChunkedArray) -> np.ndarray:
    """Return the first offset of each stretch, ascending."""
    marked = pc.is_in(types, pa.array(MARKERS)).to_numpy()
    before = pc.is_in(types, pa.array([BEGIN, EPOCH])).to_numpy()
    after = offsets[marked] + 1
    return np.unique(np.concatenate([offsets[:1], offsets[before], after]))
