"""One micro-batch in Spark: a job of two stages, with one shuffle between them.

Rule: the tasks of the first stage decode a piece of the log each (`slices`), those of the second
fold a part each (`folds.partitions`). Both write the files of their tables themselves. What they
return to the driver is small: descriptions of files, rows that are too few for a file, and what the
driver folds. A task that runs again, or twice at once, does no harm, because a file is seen by
nobody before the driver commits it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from audit.findings.events import AuditEvent
from audit.lake.files import DataFile, write_file
from audit.lake.place import LakePlace
from audit.spark.folds.arrow_values import from_ipc, joined, to_ipc
from audit.spark.folds.messages import (
    COUNTS,
    DRIVER,
    FEW,
    REPORT,
    ROWS,
    Message,
    message_batches,
    two_stages,
)
from audit.spark.folds.partitions import PartitionFold, PartTables
from audit.spark.folds.slices import SliceReport, sliced
from audit.spark.folds.transactions import spans_of
from audit.spark.pipeline.carried_store import CarriedStore
from audit.spark.source.reading import Piece
from audit.tables import AVAILABILITY, PARTITION_EVENTS, PARTITION_INTERVALS
from runtime.loop.collection import resting

EVENTS: Final = f"silver/{PARTITION_EVENTS.name}"
INTERVALS: Final = f"silver/{PARTITION_INTERVALS.name}"
DAYS: Final = f"gold/{AVAILABILITY.name}"
_PATHS: Final = {
    "events": EVENTS,
    "ended": INTERVALS,
    "lasting": INTERVALS,
    "past_days": DAYS,
    "newest_day": DAYS,
}
"""By field of PartTables: the table to which the rows belong."""
_ROWS_OF_A_FILE: Final = 65_536
"""A part writes a file itself from so many rows on. The driver puts fewer together with others."""
_FOLDED: Final = "folded"
_PLAIN: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class MicroBatch(NamedTuple):
    """What the tasks must know. Spark pickles it."""

    number: int
    pieces: tuple[Piece, ...]
    parts: int
    place: LakePlace
    open_from: int | None
    horizon_ms: int


class _PartResult(msgspec.Struct):
    files: list[tuple[str, DataFile]]
    rows: list[tuple[str, bytes]]
    leaders: list[AuditEvent]


class BatchResult(NamedTuple):
    """What a micro-batch gave, for the driver."""

    reports: list[SliceReport]
    """In the log's order."""
    few: pa.Table
    counts: pa.Table
    files: dict[str, list[DataFile]]
    """By the table's path."""
    rows: dict[str, list[pa.Table]]
    """By the table's path: rows for which no file was written."""
    leaders: list[AuditEvent]
    """Losses of leaders and their ends, part by part."""


def run(spark: SparkSession, work: MicroBatch) -> BatchResult:
    """Run the job. Raises Spark's errors for failures in a task."""

    def slices(number: int) -> Iterator[Message]:
        name = f"batch-{work.number}-piece-{number}"
        return sliced(work.pieces[number], number, work.parts, work.place, name)

    def folds(messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        return message_batches(folded(work, messages))

    with _plainly_planned(spark):
        found = two_stages(spark, len(work.pieces), work.parts, slices, folds).collect()
    return result_of([Message(*row) for row in found])


@contextmanager
def _plainly_planned(spark: SparkSession) -> Iterator[None]:
    """Let Spark run a query as one job, without compiling code for its few large rows."""
    before = {name: spark.conf.get(name) for name in _PLAIN}
    for name, value in _PLAIN.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def folded(work: MicroBatch, messages: Iterator[Message]) -> Iterator[Message]:
    """Yield what the messages to some parts give; pass on those to the driver."""
    by_part: dict[int, list[Message]] = {}
    for message in messages:
        if message.part == DRIVER:
            yield message
        else:
            by_part.setdefault(message.part, []).append(message)
    for part, found in sorted(by_part.items()):
        result = _fold_part(work, part, sorted(found, key=_in_log_order))
        yield Message(part, 0, _FOLDED, msgspec.msgpack.encode(result))


def _in_log_order(message: Message) -> int:
    return message.piece


def _fold_part(work: MicroBatch, part: int, messages: Sequence[Message]) -> _PartResult:
    rows = joined([message.content for message in messages])
    assert rows is not None
    store = CarriedStore(work.place)
    with resting():
        carried = store.part(work.number, part)
        known = spans_of(rows, work.open_from)
        tables = PartitionFold(carried).take(rows, known, work.horizon_ms)
        store.write_part(work.number + 1, carried)
    return _written(work, part, tables)


def _written(work: MicroBatch, part: int, tables: PartTables) -> _PartResult:
    result = _PartResult([], [], tables.leaders)
    for field, path in _PATHS.items():
        rows = getattr(tables, field)
        if rows.num_rows >= _ROWS_OF_A_FILE:
            name = f"batch-{work.number}-part-{part}-{field}"
            file = write_file(work.place, path, rows, name)
            assert file is not None
            result.files.append((path, file))
        elif rows.num_rows:
            result.rows.append((path, to_ipc(rows)))
    return result


def result_of(messages: list[Message]) -> BatchResult:
    """Put together what all tasks returned, in any order."""
    of: dict[str, list[bytes]] = {kind: [] for kind in (REPORT, FEW, COUNTS, _FOLDED, ROWS)}
    for message in sorted(messages, key=_in_log_order):
        of[message.kind].append(message.content)
    few, counts = joined(of[FEW]), joined(of[COUNTS])
    assert few is not None
    assert counts is not None
    files: dict[str, list[DataFile]] = {path: [] for path in _PATHS.values()}
    rows: dict[str, list[pa.Table]] = {path: [] for path in _PATHS.values()}
    leaders: list[AuditEvent] = []
    for content in of[_FOLDED]:
        result = msgspec.msgpack.decode(content, type=_PartResult)
        for path, file in result.files:
            files[path].append(file)
        for path, values in result.rows:
            rows[path].append(from_ipc(values))
        leaders += result.leaders
    reports = [msgspec.msgpack.decode(content, type=SliceReport) for content in of[REPORT]]
    return BatchResult(reports, few, counts, files, rows, leaders)
