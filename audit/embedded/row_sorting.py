"""Sorts the rows of a table that may be larger than memory.

Rule: rows are sorted in runs of a fixed number. More than one run lie compressed in a file without
a name in the system's temporary folder, and are merged from there, a piece of each at a time. So
memory does not grow with the table. The file is gone when the rows are read, or the process ends.
"""

import heapq
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import IO, Any, Final, TypeVar

import msgspec

RUN: Final = 1 << 18
"""Rows that are sorted at once."""
_PIECE: Final = 1 << 11
"""Rows of a run that are in memory while runs are merged."""
_LEVEL: Final = 1
"""zlib's: the fastest. Rows of one partition are alike, so they shrink to a tenth."""

RowT = TypeVar("RowT", bound=tuple[Any, ...])


def sorted_rows(
    rows: Iterable[RowT], kind: type[RowT], key: Callable[[RowT], Any], *, run: int = RUN
) -> Iterator[RowT]:
    """Yield rows in the order of their keys.

    `kind`: the rows' class, a NamedTuple of what msgpack can hold. `run`: how many rows are kept in
    memory. Raises OSError, which names the temporary folder, and what reading `rows` raises.
    """
    coming = iter(rows)
    first = sorted(islice(coming, run), key=key)
    if len(first) < run:
        yield from first
        return
    with tempfile.TemporaryFile(prefix="logberg-sorting-") as file:
        runs = _Runs(file, kind)
        while first:
            runs.add(first)
            del first
            first = sorted(islice(coming, run), key=key)
        yield from heapq.merge(*map(runs.rows, range(runs.count)), key=key)


class _Runs:
    """Sorted runs in a file."""

    def __init__(self, file: IO[bytes], kind: type[tuple[Any, ...]]) -> None:
        self._file = file
        self._end = 0
        self._pieces: list[list[tuple[int, int]]] = []
        """Of each run: where each piece begins, and its length."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]  # known at run time only

    @property
    def count(self) -> int:
        return len(self._pieces)

    def add(self, rows: list[Any]) -> None:
        """Write a run. Raises OSError."""
        pieces: list[tuple[int, int]] = []
        try:
            for begin in range(0, len(rows), _PIECE):
                data = zlib.compress(self._encode(rows[begin : begin + _PIECE]), _LEVEL)
                self._file.write(data)
                pieces.append((self._end, len(data)))
                self._end += len(data)
            self._file.flush()
        except OSError as error:
            raise OSError(
                error.errno,
                f"{os.strerror(error.errno or 0)}, where rows are sorted (TMPDIR names the folder)",
                tempfile.gettempdir(),
            ) from error
        self._pieces.append(pieces)

    def rows(self, number: int) -> Iterator[Any]:
        """Yield the rows of a run."""
        for begin, length in self._pieces[number]:
            yield from self._decode(zlib.decompress(os.pread(self._file.fileno(), length, begin)))
