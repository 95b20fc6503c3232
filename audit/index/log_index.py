"""Answers from an index that is there.

Rule: several threads may ask at once, and another thread or process may add to the index meanwhile.
An answer that takes longer than its deadline ends with `TooSlowError`, so nobody's question holds
up the others'.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from audit.index.answers import (
    Caused,
    Fields,
    IndexedEntry,
    IndexedRecord,
    IndexedVersion,
    IndexPage,
)
from audit.index.partial_image import image_around
from audit.index.schema import TABLE_NAMES, TABLE_NUMBERS
from audit.index.searching import IndexSearch, RecordSearch
from audit.index.states import StateReader, compared, kind_of, values_of
from audit.questions.search import Filter
from audit.reading.settling import SETTLED
from ledger.chain import LogMark
from metadata.image import MetadataImage
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES, Record
from metadata.uuids import uuid_text
from runtime.disk.database import read_database

_STEPS_PER_LOOK: Final = 20_000
_FREE_MAX: Final = 4
_CAUSE: Final = (
    "b.base, b.end_, b.epoch, b.time_ms, c.principal, c.acted_as, c.on_behalf_of, c.auth_method,"
    " c.client_address, c.client_id, c.operation, r.text, b.request"
)
_BATCH: Final = (
    f"SELECT {_CAUSE} FROM batch b JOIN cause c ON c.id = b.cause"
    " LEFT JOIN reason r ON r.id = b.reason WHERE b.base <= ? ORDER BY b.base DESC LIMIT 1"
)
_TYPE_NAMES: Final = {
    kind.TYPE_ID * 100 + kind.VERSION: record_type_name(kind) for kind in RECORD_CLASSES
}


class TooSlowError(Exception):
    """An answer took longer than its deadline allows."""


class LogIndex:
    """The index in a file."""

    def __init__(
        self, path: Path, *, now: Callable[[], float] | None = None, deadline_s: float = 10.0
    ) -> None:
        """`now`: seconds of a clock that never goes back; None: an answer may take any time."""
        self._path = path
        self._now = now
        self._deadline_s = deadline_s
        self._free: list[sqlite3.Connection] = []

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._free:
            self._free.pop().close()

    @contextmanager
    def _asking(self) -> Iterator[sqlite3.Connection]:
        database = self._free.pop() if self._free else read_database(self._path)
        if self._now is not None:
            now, until = self._now, self._now() + self._deadline_s
            database.set_progress_handler(lambda: now() > until, _STEPS_PER_LOOK)
        try:
            database.execute("BEGIN")
            yield database
        except sqlite3.OperationalError as error:
            if "interrupt" not in str(error):
                raise
            raise TooSlowError(
                f"the answer would take longer than {self._deadline_s:g} s. Ask for less."
            ) from None
        finally:
            database.set_progress_handler(None, 0)
            database.rollback()
            if len(self._free) < _FREE_MAX:
                self._free.append(database)
            else:
                database.close()

    # -- position and moments ------------------------------------------------------------------

    @property
    def mark(self) -> LogMark:
        """Where the index ends."""
        with self._asking() as database:
            return LogMark.decode(
                database.execute("SELECT value FROM position WHERE name = 'mark'").fetchone()[0]
            )

    @property
    def log_start(self) -> int:
        """The offset of the first record."""
        with self._asking() as database:
            sql = "SELECT value FROM position WHERE name = 'log_start'"
            return int(database.execute(sql).fetchone()[0])

    def end_of_batch(self, offset: int) -> int:
        """Return the end of the batch around an offset; between two batches the offset itself."""
        with self._asking() as database:
            row = _row(database, "SELECT end_ FROM batch WHERE base < ?", offset)
            return offset if row is None else max(offset, int(row[0]))

    def offset_at_time(self, timestamp_ms: int) -> int:
        """Return the end offset of the log as it was at a time (inclusive)."""
        with self._asking() as database:
            low, high = self._ends(database)
            while low < high:
                middle = (low + high) // 2
                row = _row(
                    database, "SELECT base, end_, time_ms FROM batch WHERE base <= ?", middle
                )
                assert row is not None
                if row[2] <= timestamp_ms:
                    low = row[1]
                else:
                    high = max(row[0], low)
            return low

    def _ends(self, database: sqlite3.Connection) -> tuple[int, int]:
        found = dict(database.execute("SELECT name, value FROM position"))
        return int(found["log_start"]), LogMark.decode(found["mark"]).log_end

    def batch_before(self, at: int) -> Caused | None:
        """Return the batch that ends at a moment; None: there is none."""
        with self._asking() as database:
            return _caused(database.execute(_BATCH, (at - 1,)).fetchone())

    def activity(self, parts: int) -> list[int]:
        """Return the number of records in each of so many equal parts of the log's time."""
        with self._asking() as database:
            first, last = database.execute(
                "SELECT (SELECT time_ms FROM batch ORDER BY base LIMIT 1),"
                " (SELECT time_ms FROM batch ORDER BY base DESC LIMIT 1)"
            ).fetchone()
            found = [0] * parts
            if first is None:
                return found
            sql = (
                "SELECT min((time_ms - :first) * :parts / :span, :parts - 1), sum(end_ - base)"
                " FROM batch GROUP BY 1"
            )
            span = {"first": first, "parts": parts, "span": max(1, last - first)}
            for part, records in database.execute(sql, span):
                found[part] = records
            return found

    # -- records -----------------------------------------------------------------------------

    def offsets(
        self,
        wanted: Filter,
        start: int,
        end: int,
        *,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[int]:
        """Return the offsets of the records that `audit.questions.search.search` would find."""
        search = RecordSearch(filter=wanted, start=start, end=end)
        return self.found(search, newest_first=newest_first, limit=limit)

    def found(
        self, wanted: RecordSearch, *, newest_first: bool = False, limit: int | None = None
    ) -> list[int]:
        """Return the offsets of the records that match, in order."""
        with self._asking() as database:
            finder = IndexSearch(database)
            return finder.offsets(wanted, newest_first=newest_first, limit=limit)

    def batches_with(
        self, wanted: Filter, start: int, end: int, limit: int
    ) -> tuple[list[tuple[int, list[int]]], int]:
        """Return the newest `limit` batches with matching records, and how many there are in all.

        Each is its base offset with the offsets of the records that match, ascending. The newest
        batch comes first.
        """
        search = RecordSearch(filter=wanted, start=start, end=end)
        with self._asking() as database:
            offsets = IndexSearch(database).offsets(search)
            found: list[tuple[int, list[int]]] = []
            until = count = 0
            for offset in offsets:
                if offset >= until:
                    row = _row(database, "SELECT base, end_ FROM batch WHERE base <= ?", offset)
                    assert row is not None
                    base, until = row
                    count += 1
                    found.append((base, []))
                found[-1][1].append(offset)
            return found[: -limit - 1 : -1], count

    def records(self, offsets: Sequence[int]) -> list[IndexedRecord]:
        """Return the records at some offsets, in the order given."""
        with self._asking() as database:
            return [_record(database, offset) for offset in offsets]

    def outcome(self, offset: int) -> str:
        """Return `settled`, `aborted` or `open`."""
        with self._asking() as database:
            return _outcome(database, offset)

    # -- states ------------------------------------------------------------------------------

    def counts(self, at: int) -> dict[str, int]:
        """Return how many entries each table has at the end of a batch."""
        with self._asking() as database:
            reader = StateReader(database)
            reader.version_end(at)
            return reader.counts(at)

    def entries(
        self, at: int, table: str, *, like: str = "", after: str = "", limit: int = 100
    ) -> IndexPage:
        """Return entries of a table at a moment. Raises LookupError, ValueError."""
        with self._asking() as database:
            return StateReader(database).entries(at, table, like=like, after=after, limit=limit)

    def state_records(self, at: int, table: str) -> list[Record]:
        """Return the records of all entries of a table at a moment. Raises LookupError."""
        with self._asking() as database:
            return StateReader(database).records(at, table)

    def different(self, before: int, after: int) -> dict[str, dict[str, int]]:
        """Return how many entries differ between two moments: {table: {kind: count}}."""
        with self._asking() as database:
            return StateReader(database).different(before, after)

    def differences(
        self,
        before: int,
        after: int,
        *,
        table: str = "",
        like: str = "",
        begin: str = "",
        limit: int = 100,
    ) -> IndexPage:
        """Return entries that differ between two moments. Raises LookupError, ValueError."""
        with self._asking() as database:
            return StateReader(database).differences(
                before, after, table=table, like=like, begin=begin, limit=limit
            )

    def things(self, table: str, name: str) -> list[int]:
        """Return the numbers of the entries with a name, the newest first."""
        with self._asking() as database:
            rows = database.execute(
                "SELECT id FROM thing WHERE name = ? AND tbl = ? ORDER BY id DESC",
                (name, TABLE_NUMBERS[table]),
            )
            return [row[0] for row in rows]

    def entry(self, at: int, thing: int) -> Fields | None:
        """Return the fields of one entry at a moment; None: it is not there."""
        with self._asking() as database:
            return StateReader(database).entry(at, thing)

    def image_around(self, at: int, table: str, name: str) -> MetadataImage | None:
        """Return an image with an entry at a moment, and with what explains it (`partial_image`).

        None: it is not there. Raises LookupError.
        """
        with self._asking() as database:
            return image_around(database, at, table, name)

    def named(self, word: str, limit: int = 20) -> list[IndexedEntry]:
        """Return the entries with this name in any table, without fields."""
        with self._asking() as database:
            rows = database.execute(
                "SELECT id, tbl, name FROM thing WHERE name = ? ORDER BY id DESC LIMIT ?",
                (word, limit),
            )
            return [IndexedEntry(row[0], TABLE_NAMES[row[1]], row[2], {}) for row in rows]

    def versions(
        self, table: str, thing: int, *, before: int = 2**62, limit: int = 100
    ) -> IndexPage:
        """Return the values that an entry had, newest first, each with its cause."""
        with self._asking() as database:
            items, following = [], ""
            for version, at, old, new in values_of(database, thing, before, limit):
                cause = _caused(database.execute(_BATCH, (at - 1,)).fetchone())
                kind = kind_of(old, new)
                items.append(IndexedVersion(at, kind, compared(table, old, new), cause))
                following = str(version)
            return IndexPage(items, following if len(items) == limit else "")


def _row(database: sqlite3.Connection, sql: str, *values: Any) -> Any:
    return database.execute(f"{sql} ORDER BY base DESC LIMIT 1", values).fetchone()


def _caused(row: tuple[Any, ...] | None) -> Caused | None:
    return (
        None
        if row is None
        else Caused(*(*row[:11], row[11] or "", uuid_text(row[12]) if row[12] else ""))
    )


def _outcome(database: sqlite3.Connection, offset: int) -> str:
    row = database.execute(
        "SELECT last, outcome FROM bracket WHERE first <= ? ORDER BY first DESC LIMIT 1", (offset,)
    ).fetchone()
    return SETTLED if row is None or row[0] < offset else str(row[1])


def _record(database: sqlite3.Connection, offset: int) -> IndexedRecord:
    type_, subject = database.execute(
        "SELECT type, subject FROM record WHERE offset_ = ?", (offset,)
    ).fetchone()
    words = database.execute("SELECT word FROM word WHERE subject = ? ORDER BY rowid", (subject,))
    cause = _caused(database.execute(_BATCH, (offset,)).fetchone())
    assert cause is not None
    return IndexedRecord(
        offset,
        _TYPE_NAMES[type_],
        tuple(row[0] for row in words),
        _outcome(database, offset),
        cause,
    )
