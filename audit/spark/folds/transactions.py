"""Transactions: which records count, and from which batch on.

Rule: a transaction is everything from its Begin to its End or Abort, both included, or up to the
next epoch, which stands outside. There is one transaction at a time (KIP-868), so settled records
keep the log's order. Markers become spans of offsets, on the driver or in a task.

The folds settle rows of Arrow (`settled_rows`): rows of an ended transaction get the batch that
settles them, those of an aborted one are dropped, and those of the open one wait. While a
transaction is open, all records belong to it, so the rows that wait are the last ones. The jobs
settle a DataFrame (`settle`): spans and records are joined by blocks of offsets, so a record is
compared only with the transactions of its block.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

SETTLED: Final = "settled"
ABORTED: Final = "aborted"
OPEN: Final = "open"

BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"
EPOCH: Final = "BEGIN_EPOCH_RECORD"
MARKERS: Final = (BEGIN, END, ABORT, EPOCH)

_BLOCK: Final = 256


class Marker(NamedTuple):
    """A record that begins or closes a transaction, or may close one (BeginEpoch)."""

    offset: int
    base_offset: int
    timestamp_ms: int
    type: str


class Span(NamedTuple):
    """The records of a transaction that has ended: first and last offset, both included."""

    first: int
    last: int
    outcome: str
    settled_base: int | None
    settled_ms: int | None


class Spans(NamedTuple):
    """The transactions of a log. All other records settle in their own batch."""

    closed: tuple[Span, ...]
    open_from: int | None
    """The offset of the Begin whose transaction is open at the end."""


def markers(log: DataFrame) -> list[Marker]:
    """Collect the markers of a log in order. The columns of Marker are needed."""
    rows = log.where(F.col("type").isin(*MARKERS)).select(*Marker._fields).collect()
    return sorted(Marker(*row) for row in rows)


def spans(found: Iterable[Marker], open_from: int | None = None) -> Spans:
    """Return the transactions.

    `open_from` is the Begin of one that was open before these markers.
    """
    closed: list[Span] = []
    for marker in found:
        if open_from is None:
            if marker.type == BEGIN:
                open_from = marker.offset
        elif marker.type != BEGIN:
            closed.append(_closed(open_from, marker))
            open_from = None
    return Spans(tuple(closed), open_from)


def _closed(first: int, marker: Marker) -> Span:
    """Return the transaction that a marker closes; BeginEpoch itself stands outside of it."""
    if marker.type == END:
        return Span(first, marker.offset, SETTLED, marker.base_offset, marker.timestamp_ms)
    return Span(first, marker.offset - (marker.type == EPOCH), ABORTED, None, None)


def settle(log: DataFrame, known: Spans) -> DataFrame:
    """Return the log with `outcome`, `settled_base` and `settled_ms`; null if unsettled."""
    own = F.lit(True)
    if known.open_from is not None:
        own = F.col("offset") < known.open_from
    if not known.closed:
        return _with_outcome(log, F.lit(SETTLED), F.col("base_offset"), F.col("timestamp_ms"), own)
    joined = log.withColumn("_block", F.floor(F.col("offset") / _BLOCK)).join(
        F.broadcast(_blocks(log, known.closed)),
        (F.col("_block") == F.col("_span_block"))
        & F.col("offset").between(F.col("_first"), F.col("_last")),
        "left",
    )
    alone = F.col("_first").isNull()
    settled = _with_outcome(
        joined,
        F.when(alone, SETTLED).otherwise(F.col("_outcome")),
        F.when(alone, F.col("base_offset")).otherwise(F.col("_settled_base")),
        F.when(alone, F.col("timestamp_ms")).otherwise(F.col("_settled_ms")),
        own,
    )
    return settled.select(*log.columns, "outcome", "settled_base", "settled_ms")


def counted(log: DataFrame, known: Spans) -> DataFrame:
    """Return the settled records only."""
    return settle(log, known).where(F.col("outcome") == SETTLED)


def _with_outcome(
    frame: DataFrame, outcome: Column, base: Column, ms: Column, closed: Column
) -> DataFrame:
    return frame.withColumns(
        {
            "outcome": F.when(closed, outcome).otherwise(OPEN),
            "settled_base": F.when(closed, base),
            "settled_ms": F.when(closed, ms),
        }
    )


def _blocks(log: DataFrame, closed: tuple[Span, ...]) -> DataFrame:
    """Return a row for each block of offsets that a span reaches into."""
    frame = log.sparkSession.createDataFrame(
        list(closed),
        "_first bigint, _last bigint, _outcome string, _settled_base bigint, _settled_ms bigint",
    )
    first, last = F.floor(F.col("_first") / _BLOCK), F.floor(F.col("_last") / _BLOCK)
    return frame.withColumn("_span_block", F.explode(F.sequence(first, last)))


class SettledRows(NamedTuple):
    """Rows in the log's order, divided by the fate of their transactions."""

    rows: pa.Table
    """Those that count, with `settled_base` and `settled_ms`."""
    waiting: pa.Table
    """Those of the open transaction."""


def spans_of(rows: pa.Table, open_from: int | None) -> Spans:
    """Return the transactions among ordered rows; the columns of Marker are needed.

    `open_from`: the Begin of a transaction that was open before these rows. The rows may hold that
    Begin again.
    """
    marked = rows.filter(pc.is_in(rows.column("type"), pa.array(MARKERS)))
    columns = (marked.column(name).to_pylist() for name in Marker._fields)
    return spans(map(Marker._make, zip(*columns, strict=True)), open_from)


def settled_rows(rows: pa.Table, known: Spans) -> SettledRows:
    """Divide ordered rows with `offset`, `base_offset` and `timestamp_ms`."""
    offsets = rows.column("offset").to_numpy()
    end = len(offsets)
    if known.open_from is not None:
        end = int(np.searchsorted(offsets, known.open_from))
    waiting, rows, offsets = rows.slice(end), rows.slice(0, end), offsets[:end]
    bases, times = (rows.column(n).to_numpy().copy() for n in ("base_offset", "timestamp_ms"))
    counts = np.ones(end, bool)
    for span in known.closed:
        within = slice(*np.searchsorted(offsets, (span.first, span.last + 1)))
        if span.outcome == SETTLED:
            bases[within], times[within] = span.settled_base, span.settled_ms
        else:
            counts[within] = False
    settled = rows.append_column("settled_base", pa.array(bases)).append_column(
        "settled_ms", pa.array(times)
    )
    return SettledRows(settled if counts.all() else settled.filter(pa.array(counts)), waiting)
