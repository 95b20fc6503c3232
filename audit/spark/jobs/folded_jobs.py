"""Jobs that the pipeline's folds compute: one pass over the log, in one Spark job.

Rule: the tasks are those of the pipeline (`slices`, `partitions`, `cluster`), but they
write no files: the rows of the asked table come out of the second stage. Nothing is collected, so a
table may be larger than the driver.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from audit.lake.schemas import arrow_schema
from audit.spark.folds.arrow_values import joined
from audit.spark.folds.checkpoint import FoldBeginning, beginning
from audit.spark.folds.cluster import ClusterFold, ClusterTables
from audit.spark.folds.messages import (
    COUNTS,
    DRIVER,
    FEW,
    ROWS,
    Message,
    two_stages,
)
from audit.spark.folds.partitions import PartitionFold, PartTables
from audit.spark.folds.slices import nothing, sliced
from audit.spark.folds.transactions import spans_of
from audit.spark.jobs.audited_log import AuditedLog
from audit.spark.source.reading import Piece
from audit.tables import (
    AVAILABILITY,
    BROKER_INTERVALS,
    BY_NAME,
    CHANGES,
    PARTITION_EVENTS,
    PARTITION_INTERVALS,
    PRIVILEGED,
    AuditTable,
)

_OF_PARTS: Final[dict[str, Callable[[PartTables], tuple[pa.Table, ...]]]] = {
    PARTITION_EVENTS.name: lambda found: (found.events,),
    PARTITION_INTERVALS.name: lambda found: (found.ended, found.lasting),
    AVAILABILITY.name: lambda found: (found.past_days, found.newest_day),
}
_OF_CLUSTER: Final[dict[str, Callable[[ClusterTables], tuple[pa.Table, ...]]]] = {
    BROKER_INTERVALS.name: lambda found: (found.ended, found.lasting),
    AVAILABILITY.name: lambda found: (found.past_days, found.newest_day),
    CHANGES.name: lambda found: (found.changes,),
    PRIVILEGED.name: lambda found: (found.privileged,),
}
FOLDED: Final = tuple(dict.fromkeys([*_OF_PARTS, *_OF_CLUSTER]))
"""The names of the tables that come from the folds."""


class _Work(NamedTuple):
    """What the tasks must know. Spark pickles it."""

    table: str
    pieces: tuple[Piece, ...]
    begun: FoldBeginning
    horizon_ms: int


def folded_job(log: AuditedLog, table: AuditTable, schema: StructType) -> DataFrame:
    """Return a table of FOLDED as an unordered DataFrame with the table's schema."""
    cores = log.spark.sparkContext.defaultParallelism
    parts = 2 * cores
    pieces = tuple(log.pieces(2 * cores))
    work = _Work(table.name, pieces, beginning(log.checkpoint, parts), log.horizon_ms())

    def slices(number: int) -> Iterator[Message]:
        return _sliced(work, number)

    def folds(messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        for rows in _folded(work, list(messages)):
            yield from as_job(rows, BY_NAME[work.table]).to_batches()

    # A log without batches still has the facts of its checkpoint, so each part gets a message.
    return two_stages(log.spark, max(len(pieces), 1), parts, slices, folds, schema)


def _sliced(work: _Work, number: int) -> Iterator[Message]:
    parts = len(work.begun.parts)
    if work.pieces:
        yield from sliced(work.pieces[number], number, parts, None, "")
        return
    yield from (Message(part, 0, "nothing", b"") for part in (DRIVER, *range(parts)))


def _folded(work: _Work, found: list[Message]) -> Iterator[pa.Table]:
    """Yield the rows of the table that the messages of a task give, as they are kept."""
    found.sort(key=lambda message: message.piece)
    for part in {message.part for message in found}:
        mine = [message for message in found if message.part == part]
        if part == DRIVER and work.table in _OF_CLUSTER:
            yield from _OF_CLUSTER[work.table](_of_cluster(work, mine))
        elif part != DRIVER and work.table in _OF_PARTS:
            yield from _OF_PARTS[work.table](_of_part(work, part, mine))


def _of_part(work: _Work, part: int, found: Sequence[Message]) -> PartTables:
    rows = _contents(found, ROWS)
    known = spans_of(rows, None)
    return PartitionFold(work.begun.parts[part]).take(rows, known, work.horizon_ms)


def _of_cluster(work: _Work, found: Sequence[Message]) -> ClusterTables:
    few, counts = _contents(found, FEW), _contents(found, COUNTS)
    known = spans_of(few, None)
    return ClusterFold(work.begun.cluster).take(few, counts, known, work.horizon_ms)


def _contents(found: Sequence[Message], kind: str) -> pa.Table:
    rows = joined([message.content for message in found if message.kind == kind])
    return nothing(kind) if rows is None else rows


def as_job(rows: pa.Table, table: AuditTable) -> pa.Table:
    """Return kept rows in the kinds of the job: moments in milliseconds, days as text."""
    kept = arrow_schema(table)
    columns = []
    for name in kept.names:
        values = rows.column(name)
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
        elif pa.types.is_date(values.type):
            values = values.cast(pa.string())
        columns.append(values)
    return pa.Table.from_arrays(columns, names=[column.name for column in table.columns])
