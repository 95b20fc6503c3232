"""States, differences and histories of entries, by an index.

Rule: a moment is the end of a batch. `version_end` turns it into a number of versions, and the
state is the newest version of each thing up to that number. A page holds so many entries, in the
order of names, and says where the next one begins. So an answer costs what it shows.
"""

import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from audit.index.answers import (
    Fields,
    IndexedDifference,
    IndexedEntry,
    IndexPage,
)
from audit.index.schema import TABLE_NAMES, TABLE_NUMBERS
from audit.questions.diff import CHANGED, CREATED, REMOVED
from audit.questions.state_words import fields_of_records
from metadata.codec import decode_records
from metadata.records import Record

_STATE: Final = (
    "SELECT t.id, t.name, t.sort, v.value FROM thing t JOIN version v ON v.id ="
    " (SELECT id FROM version WHERE thing = t.id AND id <= :upto ORDER BY id DESC LIMIT 1)"
    " WHERE t.tbl = :table AND (t.sort, t.id) > (:sort, :id) AND t.first_version <= :upto"
    " AND v.value IS NOT NULL AND (:like IS NULL OR t.name LIKE :like ESCAPE '\\')"
    " ORDER BY t.sort, t.id LIMIT :limit"
)
_IN_RANGE: Final = (
    "FROM (SELECT t.tbl, t.id, t.name, t.sort, u.first, u.last FROM"
    " (SELECT thing, min(id) AS first, max(id) AS last FROM version"
    " WHERE id > :low AND id <= :high GROUP BY thing) u JOIN thing t ON t.id = u.thing) d"
    " JOIN version a ON a.id = d.last"
    " LEFT JOIN version b ON b.id = (SELECT max(id) FROM version"
    " WHERE thing = d.id AND id < d.first)"
    " WHERE b.value IS NOT a.value"
)
"""What differs, from the versions between the moments. Quick if these are few."""
_OF_THINGS: Final = (
    "FROM thing d"
    " JOIN version a ON a.id = (SELECT max(id) FROM version WHERE thing = d.id AND id <= :high)"
    " LEFT JOIN version b ON b.id = (SELECT max(id) FROM version"
    " WHERE thing = d.id AND id <= :low)"
    " WHERE d.first_version <= :high AND a.id > :low AND b.value IS NOT a.value"
)
"""The same from all things. Quick if these are few."""
_PAGE: Final = (
    "SELECT d.tbl, d.id, d.name, d.sort, b.value, a.value {} AND (d.tbl, d.sort,"
    " d.id) > (:tbl, :sort, :id) AND (:only IS NULL OR d.tbl = :only)"
    " AND (:like IS NULL OR d.name LIKE :like ESCAPE '\\')"
    " ORDER BY d.tbl, d.sort, d.id LIMIT :limit"
)
_COUNTED: Final = (
    "SELECT tbl, was, is_there, count(*) FROM (SELECT d.tbl AS tbl, b.value IS NOT NULL AS was,"
    " a.value IS NOT NULL AS is_there {}) GROUP BY tbl, was, is_there"
)
KEPT: Final = "kept"


class _After(NamedTuple):
    """Where a page begins: behind this name."""

    table: int
    sort: str
    id: int

    @classmethod
    def of(cls, text: str) -> "_After":
        """Read what `text` returned. Raises ValueError."""
        if not text:
            return cls(-1, "", -1)
        table, number, sort = text.split(":", 2)
        return cls(int(table), sort, int(number))

    def text(self) -> str:
        return f"{self.table}:{self.id}:{self.sort}"


class StateReader:
    """Reads states in one database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def version_end(self, at: int) -> int:
        """Return how many versions hold at the end of a batch. Raises LookupError."""
        found = dict(self._database.execute("SELECT name, value FROM position"))
        begins = found["state_from"]
        if begins is None or at < begins:
            raise LookupError(
                "the state at this moment is not known: the log has no checkpoint before it"
                if begins is None
                else f"the state is known from offset {begins} on, where the history here begins"
            )
        row = self._database.execute(
            "SELECT version_end FROM batch WHERE base < ? ORDER BY base DESC LIMIT 1", (at,)
        ).fetchone()
        return max(0 if row is None else int(row[0]), int(found["state_versions"]))

    def counts(self, at: int) -> dict[str, int]:
        """Return how many entries each table has, without those that have none."""
        rows = self._database.execute(
            "SELECT tbl, entries FROM tally t WHERE at_ = (SELECT max(at_) FROM tally"
            " WHERE tbl = t.tbl AND at_ <= ?) AND entries > 0 ORDER BY tbl",
            (at,),
        )
        return {TABLE_NAMES[table]: entries for table, entries in rows}

    def entries(self, at: int, table: str, *, like: str, after: str, limit: int) -> IndexPage:
        """Return some entries of a table, in the order of names.

        `like`: a part of the name, whatever the case; empty: any. Raises LookupError, ValueError.
        """
        begin = _After.of(after)
        rows = self._database.execute(
            _STATE,
            {
                "upto": self.version_end(at),
                "table": TABLE_NUMBERS[table],
                "sort": begin.sort,
                "id": begin.id,
                "like": _like(like),
                "limit": limit + 1,
            },
        ).fetchall()
        more = rows[limit:]
        last = rows[:limit][-1:]
        following = _After(0, last[0][2], last[0][0]).text() if more else ""
        items = [IndexedEntry(row[0], table, row[1], shown(table, row[3])) for row in rows[:limit]]
        return IndexPage(items, following)

    def records(self, at: int, table: str) -> list[Record]:
        """Return the records of all entries of a table, as the index keeps them.

        Raises LookupError.
        """
        whole = {"sort": "", "id": -1, "like": None, "limit": -1}
        wanted = {"upto": self.version_end(at), "table": TABLE_NUMBERS[table], **whole}
        values = (row[3] for row in self._database.execute(_STATE, wanted))
        return [record for value in values for record in decode_records(value)]

    def entry(self, at: int, thing: int) -> Fields | None:
        """Return the fields of one entry; None: it is not there at the moment."""
        row = self._database.execute(
            "SELECT t.tbl, v.value FROM thing t JOIN version v ON v.thing = t.id"
            " WHERE t.id = ? AND v.id <= ? ORDER BY v.id DESC LIMIT 1",
            (thing, self.version_end(at)),
        ).fetchone()
        return None if row is None or row[1] is None else shown(TABLE_NAMES[row[0]], row[1])

    def different(self, before: int, after: int) -> dict[str, dict[str, int]]:
        """Return how many entries differ: {table: {kind: count}}; both moments in any order."""
        low, high, turned = self._range(before, after)
        found: dict[str, dict[str, int]] = {}
        for table, was, is_there, count in self._database.execute(
            _COUNTED.format(self._way(low, high)), {"low": low, "high": high}
        ):
            first, second = (is_there, was) if turned else (was, is_there)
            found.setdefault(TABLE_NAMES[table], {})[_kind(first, second)] = count
        return found

    def differences(
        self, before: int, after: int, *, table: str, like: str, begin: str, limit: int
    ) -> IndexPage:
        """Return some entries that differ, by table and name.

        `table` empty: of all. Raises LookupError, ValueError.
        """
        low, high, turned = self._range(before, after)
        place = _After.of(begin)
        rows = self._database.execute(
            _PAGE.format(self._way(low, high)),
            {
                "low": low,
                "high": high,
                "tbl": place.table,
                "sort": place.sort,
                "id": place.id,
                "only": TABLE_NUMBERS[table] if table else None,
                "like": _like(like),
                "limit": limit + 1,
            },
        ).fetchall()
        items = [_difference(row, turned=turned) for row in rows[:limit]]
        following = ""
        if len(rows) > limit:
            last = rows[limit - 1]
            following = _After(last[0], last[3], last[1]).text()
        return IndexPage(items, following)

    def _way(self, low: int, high: int) -> str:
        """Return the quicker way to find what differs."""
        things = self._database.execute("SELECT coalesce(max(id), 0) FROM thing").fetchone()[0]
        return _IN_RANGE if high - low < things else _OF_THINGS

    def _range(self, before: int, after: int) -> tuple[int, int, bool]:
        one, other = self.version_end(before), self.version_end(after)
        return min(one, other), max(one, other), other < one


def values_of(
    database: sqlite3.Connection, thing: int, upto: int, limit: int
) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yield the versions of a thing before version `upto`, newest first.

    Each is (version, offset from which it holds, value before, value).
    """
    rows = database.execute(
        "SELECT id, at_, value FROM version WHERE thing = ? AND id < ? ORDER BY id DESC LIMIT ?",
        (thing, upto, limit + 1),
    ).fetchall()
    for number, (version, at, value) in enumerate(rows[:limit], 1):
        before = rows[number][2] if number < len(rows) else None
        yield version, at, before, value


def shown(table: str, value: bytes | None) -> Fields:
    """Return the fields of a value, secrets starred."""
    if value is None:
        return {}
    return fields_of_records(table, decode_records(value), show_secrets=False)


def compared(table: str, before: bytes | None, after: bytes | None) -> dict[str, tuple[Any, Any]]:
    """Return {field: (before, after)} for the fields that differ. Secrets are compared unseen."""
    fields = partial(fields_of_records, table)
    olds, news = (decode_records(value) if value else [] for value in (before, after))
    old, new = fields(olds, show_secrets=True), fields(news, show_secrets=True)
    shown_old, shown_new = fields(olds, show_secrets=False), fields(news, show_secrets=False)
    return {
        name: (shown_old.get(name), shown_new.get(name))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    }


def kind_of(before: bytes | None, after: bytes | None) -> str:
    """Return what happened to an entry."""
    return KEPT if before == after else _kind(before is not None, after is not None)


def _difference(row: tuple[Any, ...], *, turned: bool) -> IndexedDifference:
    table, number, name, _, before, after = row
    if turned:
        before, after = after, before
    said = TABLE_NAMES[table]
    kind = _kind(before is not None, after is not None)
    return IndexedDifference(number, said, name, kind, compared(said, before, after))


def _kind(was_there: bool, is_there: bool) -> str:
    if not was_there:
        return CREATED
    return CHANGED if is_there else REMOVED


def _like(part: str) -> str | None:
    if not part:
        return None
    for special in "\\%_":
        part = part.replace(special, "\\" + special)
    return f"%{part}%"
