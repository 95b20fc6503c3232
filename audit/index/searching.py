"""Finds the records that match a search, by an index.

Rule: a search matches exactly the records that `audit.questions.search.search` finds for the same
filter; a test compares the two. Free text is more: each of its words must occur somewhere in what
is known about a record, whatever the case of its letters.

Texts are tested once each, not once for each record. The criterion that fits the fewest records
leads the search, if it fits few. Otherwise records are tested one after the other, newest first.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cache
from typing import Any, Final

import msgspec

from audit.questions.search import TYPES, Filter, principal_test
from audit.reading.settling import SETTLED
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES

_FEW: Final = 20_000
"""Records. A criterion that fits at most so many leads the search."""
_COLUMNS: Final = ("cause", "subject", "type", "reason", "detail")
_PATTERN: Final = re.compile(r"[*?\[]")
_WORDS_MAX: Final = 12


class RecordSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What to search for. Everything must match."""

    filter: Filter = Filter()
    also: tuple[tuple[str, ...], ...] = ()
    """Further resources, as in `Filter.resources`: one word of each of these must match."""
    address: str | None = None
    """A glob for the client's address."""
    text: str = ""
    """Words, divided by spaces."""
    other_words: Mapping[str, str] = {}
    """By a word of `text`: another one that does as well."""
    start: int = 0
    end: int = 2**62
    """Exclusive."""


Criterion = dict[str, list[int]]
"""By column of `record`: the numbers that fit. One column is enough."""


class IndexSearch:
    """Finds offsets in one database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def offsets(
        self, wanted: RecordSearch, *, newest_first: bool = False, limit: int | None = None
    ) -> list[int]:
        """Return the offsets of the records that match, in order. Raises sqlite3.Error."""
        criteria = self._criteria(wanted)
        if any(not any(criterion.values()) for criterion in criteria):
            return []
        where: list[str] = ["offset_ >= ? AND offset_ < ?"]
        values: list[Any] = [wanted.start, wanted.end]
        self._add_outcomes(wanted.filter, where)
        if wanted.filter.request_id is not None:
            where.append(
                "offset_ IN (SELECT r.offset_ FROM batch b JOIN record r"
                " ON r.offset_ >= b.base AND r.offset_ < b.end_ WHERE b.request = ?)"
            )
            values.append(wanted.filter.request_id)
        leading = self._leading(criteria)
        for criterion in criteria:
            fits = [(column, numbers) for column, numbers in criterion.items() if numbers]
            where.append(_condition([column for column, _ in fits], leads=criterion is leading))
            values += [json.dumps(numbers) for _, numbers in fits]
        order = "DESC" if newest_first else "ASC"
        sql = f"SELECT offset_ FROM record WHERE {' AND '.join(where)} ORDER BY offset_ {order}"
        if limit is not None:
            sql += " LIMIT ?"
            values.append(limit)
        return [row[0] for row in self._database.execute(sql, values)]

    def _leading(self, criteria: Sequence[Criterion]) -> Criterion | None:
        """Return the criterion that fits the fewest records; None: each fits many."""
        counted = [(self._count(criterion), place) for place, criterion in enumerate(criteria)]
        count, place = min(counted, default=(_FEW + 1, 0))
        return criteria[place] if count <= _FEW else None

    def _count(self, criterion: Criterion) -> int:
        """Return how many records fit, as far as that matters."""
        total = 0
        for column, numbers in criterion.items():
            if numbers and total <= _FEW:
                total += self._database.execute(
                    f"SELECT count(*) FROM (SELECT 1 FROM record WHERE {column} IN"
                    " (SELECT value FROM json_each(?)) LIMIT ?)",
                    (json.dumps(numbers), _FEW + 1),
                ).fetchone()[0]
        return total

    def _criteria(self, wanted: RecordSearch) -> list[Criterion]:
        said, criteria = wanted.filter, []
        if said.principal is not None or said.operation is not None or wanted.address is not None:
            criteria.append({"cause": self._causes(said, wanted.address)})
        if said.types:
            criteria.append({"type": _tags(said.types)})
        criteria.extend(
            {"subject": self._subjects(resources)}
            for resources in (said.resources, *wanted.also)
            if resources
        )
        for word in wanted.text.split()[:_WORDS_MAX]:
            criterion, other = self._text(word), wanted.other_words.get(word)
            if other is not None:
                criterion = _either(criterion, self._text(other))
            criteria.append(criterion)
        return criteria

    def _causes(self, said: Filter, address: str | None) -> list[int]:
        principal = principal_test(said) or _always
        operation = _always if said.operation is None else _plain(said.operation)
        place = _always if address is None else _plain(address)
        rows = self._database.execute(
            "SELECT id, principal, acted_as, on_behalf_of, client_address, operation FROM cause"
        )
        return [
            row[0]
            for row in rows
            if operation(row[5]) and place(row[4]) and any(map(principal, row[1:4]))
        ]

    def _subjects(self, patterns: Iterable[str]) -> list[int]:
        found: set[int] = set()
        for pattern in patterns:
            column = "word" if ":" in pattern else "name"
            if _PATTERN.search(pattern) is None:
                sql = f"SELECT subject FROM word WHERE {column} = ?"
                found.update(row[0] for row in self._database.execute(sql, (pattern,)))
                continue
            # A pattern begins with text that the index can find.
            prefix = _PATTERN.split(pattern, maxsplit=1)[0]
            sql = f"SELECT {column}, subject FROM word WHERE {column} >= ? AND {column} < ?"
            fits = _plain(pattern)
            rows = self._database.execute(sql, (prefix, prefix + "\U0010ffff"))
            found.update(subject for word, subject in rows if fits(word))
        return sorted(found)

    def _text(self, word: str) -> Criterion:
        """Return everything in which a word occurs."""
        like = "%" + re.sub(r"([\\%_])", r"\\\1", word) + "%"

        def ids(sql: str) -> list[int]:
            return [row[0] for row in self._database.execute(sql, {"like": like})]

        fits = "LIKE :like ESCAPE '\\'"
        causes = " OR ".join(
            f"{column} {fits}"
            for column in (
                "principal",
                "acted_as",
                "on_behalf_of",
                "auth_method",
                "client_address",
                "client_id",
                "operation",
            )
        )
        lowered = word.lower().replace("-", "_")
        return {
            "cause": ids(f"SELECT id FROM cause WHERE {causes}"),
            "subject": ids(f"SELECT DISTINCT subject FROM word WHERE word {fits}"),
            "type": _tags([name for name in TYPES if lowered in name.lower()]),
            "reason": ids(f"SELECT id FROM reason WHERE text {fits}"),
            "detail": ids(f"SELECT id FROM detail WHERE text {fits}"),
        }

    def _add_outcomes(self, said: Filter, where: list[str]) -> None:
        """Restrict the search to outcomes. Few records are in a transaction that doesn't count."""
        if not said.outcomes:
            return
        wanted = set(said.outcomes)
        is_settled = SETTLED in wanted
        others = {"aborted", "open"}
        named = others - wanted if is_settled else others & wanted
        if is_settled and not named:
            return
        words = ", ".join(f"'{word}'" for word in sorted(named)) or "''"
        where.append(
            f"offset_ {'NOT ' if is_settled else ''}IN (SELECT r.offset_ FROM bracket b"
            " JOIN record r ON r.offset_ >= b.first AND r.offset_ <= b.last"
            f" WHERE b.outcome IN ({words}))"
        )


def _condition(columns: list[str], *, leads: bool) -> str:
    """Return the condition that one of the columns has one of the numbers that are bound to it."""
    numbers = "IN (SELECT value FROM json_each(?))"
    if leads:
        parts = [f"SELECT offset_ FROM record WHERE {column} {numbers}" for column in columns]
        return f"offset_ IN ({' UNION '.join(parts)})"
    # The plus keeps SQLite from using the column's index.
    return "(" + " OR ".join(f"+{column} {numbers}" for column in columns) + ")"


def _either(one: Criterion, other: Criterion) -> Criterion:
    return {column: sorted({*one[column], *other[column]}) for column in one}


def _always(_text: str) -> bool:
    return True


def _plain(pattern: str) -> Callable[[str], bool]:
    fits = re.compile(translate(pattern)).match
    return lambda text: fits(text) is not None


def _tags(names: Iterable[str]) -> list[int]:
    return [tag for name in names for tag in _tags_of().get(name, ())]


@cache
def _tags_of() -> dict[str, list[int]]:
    """Return the numbers of a type of record, by its name: one for each version."""
    found: dict[str, list[int]] = {}
    for kind in RECORD_CLASSES:
        tag = kind.TYPE_ID * 100 + kind.VERSION
        found.setdefault(record_type_name(kind), []).append(tag)
    return found
