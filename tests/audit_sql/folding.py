"""The pipeline's folds in plain Python, without Spark: a log in, its kept tables out.

Rule: the steps are those of a micro-batch (`audit.spark.pipeline`), but
for what Spark and the commits do. So thousands of micro-batches take seconds, and a mutant of a
fold can be tried on many histories.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from audit.lake.schemas import arrow_schema
from audit.spark.folds.arrow_values import from_ipc
from audit.spark.folds.carried import ClusterCarried, PartitionsCarried
from audit.spark.folds.cluster import ClusterFold
from audit.spark.folds.messages import COUNTS, FEW, ROWS
from audit.spark.folds.partitions import PartitionFold
from audit.spark.folds.slices import COLUMNS, messages
from audit.spark.folds.transactions import spans_of
from audit.spark.source.bronze import bronze_rows
from audit.tables import (
    AVAILABILITY,
    BROKER_INTERVALS,
    DATE,
    PARTITION_INTERVALS,
    PRIVILEGED,
    TIME,
    kept_form,
)
from ledger.batch import Batch

PARTS = 3
TABLES = {
    table.name: table for table in (PARTITION_INTERVALS, BROKER_INTERVALS, AVAILABILITY, PRIVILEGED)
}
DAY_MS = 86_400_000


class FoldedLog:
    """The tables after each micro-batch."""

    def __init__(self) -> None:
        self._kept = {name: arrow_schema(table).empty_table() for name, table in TABLES.items()}
        self._parts = [PartitionsCarried(part, PARTS) for part in range(PARTS)]
        self._cluster = ClusterCarried()
        self._open_from: int | None = None
        self._horizon_ms = 0

    def take(self, batches: Sequence[Batch]) -> None:
        """Fold a micro-batch, and carry over what the next one needs as bytes."""
        rows = pa.Table.from_batches(bronze_rows(batches, COLUMNS)).sort_by("offset")
        sent = {(one.part, one.kind): from_ipc(one.content) for one in messages(rows, PARTS)}
        few = next(table for (_, kind), table in sent.items() if kind == FEW)
        counts = next(table for (_, kind), table in sent.items() if kind == COUNTS)
        horizon_ms = batches[-1].header.timestamp_ms
        newest = pc.field("day") >= date(1970, 1, 1) + timedelta(self._horizon_ms // DAY_MS)
        for name in (PARTITION_INTERVALS.name, BROKER_INTERVALS.name):
            self._drop(name, pc.field("until_offset").is_null())
        self._drop(AVAILABILITY.name, newest)
        for part, carried in enumerate(self._parts):
            mine = sent[part, ROWS]
            known = spans_of(mine, self._open_from)
            found = PartitionFold(carried).take(mine, known, horizon_ms)
            self._add(PARTITION_INTERVALS.name, found.ended, found.lasting)
            self._add(AVAILABILITY.name, found.past_days, found.newest_day)
            self._parts[part] = _through_bytes(carried)
        known = spans_of(few, self._open_from)
        of_all = ClusterFold(self._cluster).take(few, counts, known, horizon_ms)
        self._cluster = _through_bytes(self._cluster)
        self._add(BROKER_INTERVALS.name, of_all.ended, of_all.lasting)
        self._add(AVAILABILITY.name, of_all.past_days, of_all.newest_day)
        self._add(PRIVILEGED.name, of_all.privileged)
        self._open_from, self._horizon_ms = known.open_from, horizon_ms

    def rows(self, job: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table as its job gives them."""
        table, kept = TABLES[job], self._kept[job]
        columns = [_values(kept.column(c.name), c.kind) for c in kept_form(table).columns]
        return sorted(zip(*columns, strict=True), key=lambda row: row[: table.key])

    def _add(self, name: str, *tables: pa.Table) -> None:
        self._kept[name] = pa.concat_tables([self._kept[name], *tables])

    def _drop(self, name: str, replaced: pc.Expression) -> None:
        self._kept[name] = self._kept[name].filter(~replaced)


def fold_log(batches: Sequence[Batch], cuts: Sequence[int] = ()) -> FoldedLog:
    """Fold a whole log in micro-batches; `cuts` are the numbers of the batches that begin one."""
    folded = FoldedLog()
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(batches)}), len(batches)]
    for begin, end in pairwise(edges):
        folded.take(batches[begin:end])
    return folded


def _through_bytes(carried: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(carried), type=type(carried))


def _values(column: pa.ChunkedArray, kind: str) -> list[Any]:
    if kind == TIME:
        micros = column.cast(pa.int64()).to_pylist()
        return [None if value is None else value // 1_000 for value in micros]
    if kind == DATE:
        return [value.isoformat() for value in column.to_pylist()]
    return [tuple(v) if isinstance(v, list) else v for v in column.to_pylist()]
