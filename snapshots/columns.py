"""Columns of integers and of lists: how a block of topics stores one field of many partitions.

Rule: a sequence of values has exactly one encoding, and the reader accepts only that one. It never
allocates more than a small multiple of the bytes that it was given, plus the values that its caller
allowed.

A column of no values has no bytes. Any other column is

    i32  base: the smallest value
    u8   width: bytes of each difference, the fewest of 0, 1, 2, 4 that hold the largest difference
    n times u8, u16 or u32: the value minus the base; none if the width is 0
"""

import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Any, Final

from snapshots.errors import ColumnsError

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
UUID_BYTES: Final = 16

Ids = tuple[int, ...]
Intern = Callable[[Any, Any], Any]
"""Takes an object twice; returns the one object that stands for all its equals."""

_HEAD = struct.Struct(">iB")
_COUNT = struct.Struct(">I")
_CODES: Final = {1: "B", 2: "H", 4: "I"}
_LEAST: Final = {0: 0, 1: 1, 2: 1 << 8, 4: 1 << 16}
"""The largest difference of a column with this width is at least this."""
_SWAPPED: Final = sys.byteorder == "little"
assert all(array(code).itemsize == width for width, code in _CODES.items())


class ColumnWriter:
    """Appends columns to a list of bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def count(self, number: int) -> None:
        """Append a count, u32."""
        self.parts.append(_COUNT.pack(number))

    def raw(self, data: bytes) -> None:
        """Append bytes whose length the reader knows."""
        self.parts.append(data)

    def ints(self, values: Sequence[int]) -> None:
        """Append a column of integers of 32 bits."""
        if not values:
            return
        base = min(values)
        most = max(values) - base
        width = 0 if not most else 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4
        self.parts.append(_HEAD.pack(base, width))
        if width:
            data = array(_CODES[width], [value - base for value in values] if base else values)
            if _SWAPPED:
                data.byteswap()
            self.parts.append(data.tobytes())

    def lists(self, lists: Sequence[Ids]) -> None:
        """Append a column of lists: their lengths, then all their items."""
        self.ints(list(map(len, lists)))
        self.ints(list(chain.from_iterable(lists)))

    def exceptions(self, places: Sequence[int], lists: Sequence[Ids]) -> None:
        """Append the lists of the few rows at `places`, ascending."""
        self.count(len(places))
        self.ints(places)
        self.lists(lists)


class ColumnReader:
    """Reads what a `ColumnWriter` wrote. All methods raise ColumnsError."""

    def __init__(self, data: bytes | memoryview, items_max: int) -> None:
        """`items_max`: the most items that all lists together may have."""
        self._data = memoryview(data)
        self._at = 0
        self._items_left = items_max

    def count(self, most: int) -> int:
        """Read a count, u32."""
        (number,) = _COUNT.unpack(self.raw(_COUNT.size))
        if number > most:
            raise ColumnsError(f"a count of {number}; at most {most} is possible here")
        return int(number)

    def raw(self, size: int) -> memoryview:
        """Read so many bytes."""
        found = self._data[self._at : self._at + size]
        if len(found) != size:
            raise ColumnsError("the columns end too early")
        self._at += size
        return found

    def finish(self) -> None:
        """Raise ColumnsError if bytes are left."""
        if self._at != len(self._data):
            raise ColumnsError("bytes behind the last column")

    def ints(self, count: int, low: int = INT32_MIN, high: int = INT32_MAX) -> list[int]:
        """Read a column of `count` integers from `low` to `high`."""
        if not count:
            return []
        base, width = _HEAD.unpack(self.raw(_HEAD.size))
        if not width:
            if not low <= base <= high:
                raise ColumnsError(f"{base} in a column of numbers from {low} to {high}")
            return [base] * count
        if width not in _CODES:
            raise ColumnsError(f"a column can't be {width} bytes wide")
        data = array(_CODES[width], bytes(self.raw(count * width)))
        if _SWAPPED:
            data.byteswap()
        most = max(data)
        if min(data) or most < _LEAST[width]:
            raise ColumnsError("a column is not in its shortest form")
        if base < low or base + most > high:
            raise ColumnsError(
                f"{base} to {base + most} in a column of numbers from {low} to {high}"
            )
        return [base + value for value in data] if base else data.tolist()

    def lists(self, count: int, intern: Intern, least: int = 0) -> list[Ids]:
        """Read a column of `count` lists with at least `least` items each."""
        lengths = self.ints(count, least, INT32_MAX)
        return split(self.ints(self._claim(lengths)), lengths, intern)

    def exceptions(self, rows: int, intern: Intern, least: int = 1) -> tuple[list[int], list[Ids]]:
        """Read (places, lists): the lists of a few of so many rows."""
        count = self.count(rows)
        places = self.ints(count, 0, rows - 1)
        if any(map(int.__ge__, places, islice(places, 1, None))):
            raise ColumnsError("the places of exceptions don't ascend")
        return places, self.lists(count, intern, least)

    def table(self, most: int) -> list[bytes]:
        """Read a table of distinct uuids, ascending, as `uuid_table` wrote it."""
        count = self.count(most)
        data = bytes(self.raw(count * UUID_BYTES))
        table = [data[at : at + UUID_BYTES] for at in range(0, len(data), UUID_BYTES)]
        if any(map(bytes.__ge__, table, islice(table, 1, None))):
            raise ColumnsError("the ids of a table don't ascend")
        return table

    def _claim(self, lengths: Iterable[int]) -> int:
        total = sum(lengths)
        if total > self._items_left:
            raise ColumnsError(f"lists of {total} items; at most {self._items_left} fit here")
        self._items_left -= total
        return total


def split(items: Iterable[Any], lengths: Sequence[int], intern: Intern) -> list[tuple[Any, ...]]:
    """Cut items into tuples of these lengths; equal tuples become one object."""
    rest = iter(items)
    if lengths and lengths.count(lengths[0]) == len(lengths) and lengths[0]:
        found = list(zip(*[rest] * lengths[0], strict=True))
    else:
        found = [tuple(islice(rest, length)) for length in lengths]
    return list(map(intern, found, found))
