"""Answers `who` and `history` by an index: only the batches that matter are read from the log.

Rule: the answers are those of a pass over the whole log (`audit.questions`). The index says where
to read. What is shown comes from the log itself, whose batches are checked as they are read.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from sqlite3 import Error as DatabaseError
from typing import Final, NamedTuple

from audit.index.log_index import LogIndex
from audit.index.opening import IndexKeeper
from audit.places.replicas import Replica
from audit.questions.history_things import Thing
from audit.questions.search import Filter, FoundRecord
from audit.questions.touches import Touch, Touches, touch_of
from audit.reading.feed import OnProgress
from audit.reading.readable_log import ReadableLog
from audit.reading.settling import SETTLED, Logged, Moment, moments, records_of, settled
from ledger.batch import Batch

_BEGIN: Final = ("BEGIN_TRANSACTION_RECORD",)
_END: Final = ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD", "BEGIN_EPOCH_RECORD")
_NEVER: Final = 2**62


class IndexedLog(NamedTuple):
    """A log and its index."""

    reader: ReadableLog
    log_index: LogIndex
    damage: str
    """Why the log could not be read further; empty: the index reaches to its end."""


def indexed_log(
    folder: Path, replica: Replica, reader: ReadableLog, on_progress: OnProgress | None = None
) -> IndexedLog:
    """Build the index of a log in a folder of indexes, or bring up the one that is there.

    Raises NoLogError, OSError.
    """
    keeper = IndexKeeper(folder, replica, reader)
    try:
        keeper.bring_up(reader, on_progress)
    except DatabaseError as error:
        raise OSError(f"{keeper.path}: the index can't be written: {error}") from error
    finally:
        with suppress(DatabaseError):
            keeper.close()
    return IndexedLog(reader, LogIndex(keeper.path), keeper.damage)


def indexed_touches(log: IndexedLog, wanted: Filter, start: int, end: int, limit: int) -> Touches:
    """Return what `audit.questions.touches.touches` returns for a search."""
    newest, count = log.log_index.batches_with(wanted, start, end, limit)
    return Touches([_touch(log, *one) for one in newest], count)


def _touch(log: IndexedLog, base: int, offsets: Sequence[int]) -> Touch:
    (batch,) = log.reader.batches(base, base + 1)
    records = records_of(batch)
    found = []
    for said in log.log_index.records(offsets):
        record = records[said.offset - base]
        logged = Logged(said.offset, batch.header, record, said.outcome, None, None)
        found.append(FoundRecord(logged, said.subjects))
    return touch_of(found)


def indexed_records(log: IndexedLog, wanted: Filter, start: int, end: int) -> Iterator[FoundRecord]:
    """Yield the records that match, in the log's order."""
    for said in log.log_index.records(log.log_index.offsets(wanted, start, end)):
        (batch,) = log.reader.batches(said.offset, said.offset + 1)
        record = records_of(batch)[said.offset - batch.header.base_offset]
        logged = Logged(said.offset, batch.header, record, said.outcome, None, None)
        yield FoundRecord(logged, said.subjects)


def indexed_moments(log: IndexedLog, thing: Thing, start: int, end: int) -> Iterator[Moment]:
    """Yield the moments of [start, end) that a thing's history may need, and not many others.

    `start`: no transaction is open there. `end` cuts off the batches that begin there or later, as
    in `audit.reading.feed.Feed`.
    """
    wanted = Filter(resources=thing.resources, outcomes=(SETTLED,))
    return moments(settled(_batches(log, log.log_index.offsets(wanted, start, end), start, end)))


def _batches(log: IndexedLog, offsets: Sequence[int], start: int, end: int) -> Iterator[Batch]:
    """Yield the batches that hold some offsets, and all batches of a transaction with one."""
    transactions = _Transactions(log.log_index, start, end)
    reached = start
    for offset in offsets:
        if offset < reached:
            continue
        first, last = transactions.around(offset)
        for batch in log.reader.batches(max(first, reached), min(last, end)):
            yield batch
            reached = batch.header.end_offset


class _Transactions:
    """Where transactions begin and end. Whoever reads into one must read all of it."""

    def __init__(self, index: LogIndex, start: int, end: int) -> None:
        self._index = index
        self._begins = index.offsets(Filter(types=_BEGIN), start, end)
        self._ends = index.offsets(Filter(types=_END), start, end)

    def around(self, offset: int) -> tuple[int, int]:
        """Return the whole batches that must be read for an offset, as first and end offset."""
        first, last = self._batch(offset)
        while True:
            wider = self._widened(first, last)
            if wider == (first, last):
                return wider
            first, last = wider

    def _widened(self, first: int, last: int) -> tuple[int, int]:
        """Widen a range by the transactions that reach into it."""
        place = bisect_right(self._begins, last - 1)
        while place:
            begin = self._begins[place - 1]
            end = self._end_of(begin)
            if end < first:
                break
            first = min(first, self._batch(begin)[0])
            last = max(last, self._batch(end)[1] if end < _NEVER else _NEVER)
            place -= 1
        return first, last

    def _end_of(self, begin: int) -> int:
        place = bisect_right(self._ends, begin)
        return self._ends[place] if place < len(self._ends) else _NEVER

    def _batch(self, offset: int) -> tuple[int, int]:
        batch = self._index.batch_before(offset + 1)
        assert batch is not None
        return batch.base, batch.end
