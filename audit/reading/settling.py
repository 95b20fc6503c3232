"""Settling: which records of the log count, and from which batch on.

Rule: a transaction is its records from Begin to End or Abort, both included. It settles as a whole
with the batch of its End. Abort makes its records *aborted*; so does the BeginEpoch of a new epoch,
which itself stands outside. Without any of these its records are *open*. A record outside of a
transaction settles with its own batch. Begin, End, Abort and BeginEpoch may stand anywhere in a
batch.

While a transaction is open, all records that follow belong to it. So waiting for its end keeps the
log's order, and `settled_base` never falls. An End or Abort without a Begin settles by itself. That
happens if the log begins inside a transaction.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ledger.batch import Batch, BatchHeader
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    Record,
)

SETTLED: Final = "settled"
ABORTED: Final = "aborted"
OPEN: Final = "open"


class Logged(NamedTuple):
    """A record, its place in the log, and its outcome."""

    offset: int
    header: BatchHeader
    """The header of the record's own batch."""
    record: Record
    outcome: str
    """`settled`, `aborted` or `open`."""
    settled_base: int | None
    """Base offset of the batch that settled it; None unless settled."""
    settled_ms: int | None
    """Timestamp of that batch."""


_Waiting = list[tuple[int, BatchHeader, Record]]


def settled(batches: Iterable[Batch]) -> Iterator[Logged]:
    """Yield every record in the log's order, as soon as its outcome is known.

    The batches must follow each other, and no transaction may be open before the first. Records
    that are still open after the last batch come at the end. Raises LedgerError if a batch's
    records can't be decoded.
    """
    waiting: _Waiting | None = None
    for batch in batches:
        header = batch.header
        base, time_ms = header.base_offset, header.timestamp_ms
        for offset, record in enumerate(records_of(batch), base):
            kind = type(record)
            if waiting is None:
                if kind is BeginTransactionRecord:
                    waiting = [(offset, header, record)]
                else:
                    yield Logged(offset, header, record, SETTLED, base, time_ms)
            elif kind is BeginEpochRecord:
                yield from _without(waiting, ABORTED)
                waiting = None
                yield Logged(offset, header, record, SETTLED, base, time_ms)
            else:
                waiting.append((offset, header, record))
                if kind is EndTransactionRecord:
                    for each in waiting:
                        yield Logged(*each, SETTLED, base, time_ms)
                    waiting = None
                elif kind is AbortTransactionRecord:
                    yield from _without(waiting, ABORTED)
                    waiting = None
    if waiting is not None:
        yield from _without(waiting, OPEN)


def records_of(batch: Batch) -> list[Record]:
    """Return a batch's records. Raises LedgerError, which names the batch's offset."""
    try:
        return decode_records(batch.records)
    except RecordDecodeError as error:
        offset = batch.header.base_offset
        raise LedgerError(f"the batch at offset {offset} can't be read: {error}") from error


def _without(waiting: _Waiting, outcome: str) -> Iterator[Logged]:
    for each in waiting:
        yield Logged(*each, outcome, None, None)


class Moment(NamedTuple):
    """All records that settle in one batch: one step of the state."""

    base: int
    """The batch's base offset."""
    time_ms: int
    records: list[Logged]
    """In the log's order, at least one."""


def moments(logged: Iterable[Logged]) -> Iterator[Moment]:
    """Group records that count by the batch that settles them; drop the others."""
    records: list[Logged] = []
    now: int | None = None
    for one in logged:
        base = one.settled_base
        if base is None:
            continue
        if base != now:
            if records:
                yield _moment(records)
            records, now = [], base
        records.append(one)
    if records:
        yield _moment(records)


def _moment(records: list[Logged]) -> Moment:
    first = records[0]
    assert first.settled_base is not None
    assert first.settled_ms is not None
    return Moment(first.settled_base, first.settled_ms, records)
