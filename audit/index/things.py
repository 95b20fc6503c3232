"""The entries of the state that the index knows: their numbers, names, and whether they are there.

Rule: an entry is a table of the image and a key in it. A topic that is deleted and created again is
another entry with the same name, because its id is another one.
"""

import re
from typing import Any, Final

import msgspec

from audit.index.schema import TABLE_NUMBERS
from audit.questions.names import Names
from audit.questions.state_words import name_of

_DIGITS: Final = re.compile(r"\d+")
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode

ThingRow = tuple[int, int, str, str, bytes, int]
TallyRow = tuple[int, int, int]


class Things:
    """Gives numbers to entries, and counts how many are there."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._numbers: dict[tuple[int, Any], int] = {}
        self._there: set[int] = set()
        self._counts: dict[int, int] = {}
        self._changed: set[int] = set()
        self.new: list[ThingRow] = []

    def restore(self, number: int, table: int, key: bytes, *, is_there: bool) -> None:
        """Take up an entry of an index that was opened."""
        self._numbers[table, _tuples(_unpack(key))] = number
        if is_there:
            self._there.add(number)
            self._counts[table] = self._counts.get(table, 0) + 1

    def note(self, table: str, key: Any, version: int, *, is_there: bool) -> int | None:
        """Return the number of an entry that may have changed.

        None: it neither was nor is there.
        """
        place = (TABLE_NUMBERS[table], key)
        number = self._numbers.get(place)
        if number is None:
            if not is_there:
                return None
            number = self._numbers[place] = len(self._numbers) + 1
            name = self._name(table, key)
            row = (number, place[0], name, sort_key(name), _pack(key), version)
            self.new.append(row)
        was_there = number in self._there
        if is_there != was_there:
            (self._there.add if is_there else self._there.discard)(number)
            self._counts[place[0]] = self._counts.get(place[0], 0) + (1 if is_there else -1)
            self._changed.add(place[0])
        elif not is_there:
            return None
        return number

    def take_tallies(self, at: int) -> list[TallyRow]:
        """Return the counts that changed since the last call."""
        if not self._changed:
            return []
        rows = [(table, at, self._counts[table]) for table in sorted(self._changed)]
        self._changed.clear()
        return rows

    def _name(self, table: str, key: Any) -> str:
        if table == "topics":
            return self._names.shown(key)
        if table == "partitions":
            return f"{self._names.shown(key[0])}-{key[1]}"
        return name_of(table, key)


def sort_key(name: str) -> str:
    """Return a text that sorts `orders-2` before `orders-10`."""
    return _DIGITS.sub(lambda found: found[0].zfill(12), name)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
