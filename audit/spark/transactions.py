"""Transactions in a fold: which rows count now, and which wait for the end of theirs.

Rule: this is `settle` for rows of Arrow. The markers say where transactions begin and end. Rows of
a transaction that has ended get the batch that settles them; rows of an aborted one are dropped;
rows of the open one wait in what is carried to the next micro-batch. While a transaction is open,
all records belong to it, so the rows that wait are the last ones.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audit.spark.settle import MARKERS, SETTLED, Marker, Spans, spans


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


def in_order(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    """Return the rows of tables that follow each other in the log; None without any."""
    there = [table for table in tables if table is not None]
    return pa.concat_tables(there) if there else None
