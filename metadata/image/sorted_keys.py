"""An immutable sorted sequence of keys, so that reading a page of them needs no sort of all.

Rule: the keys are in chunks of at most 1,024, and the next version shares all chunks that didn't
change. So with a million keys it takes microseconds to add a key, to drop the first one, or to
begin in the middle.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")

_CHUNK: Final = 1024
_CHANGES: Final = 256
"""Changes between two yields. Each may copy a chunk: 2 ms in all, not in the processor's cache."""
_RUN: Final = 4096
"""How many keys are sorted at once: that takes two milliseconds."""


class SortedKeys(Generic[K]):
    """An immutable sorted sequence of distinct keys."""

    __slots__ = ("_chunks", "_ends")

    def __init__(self, chunks: Sequence[tuple[K, ...]] = ()) -> None:
        self._chunks: tuple[tuple[Any, ...], ...] = tuple(chunks)
        self._ends: list[int] | None = None
        """For each chunk, how many keys there are up to its end; None: nobody asked yet."""

    @classmethod
    def of_sorted(cls, keys: Sequence[K]) -> "SortedKeys[K]":
        """Return the sequence of keys that are distinct and in order."""
        return cls([tuple(keys[start : start + _CHUNK]) for start in range(0, len(keys), _CHUNK)])

    @classmethod
    def sorting(cls, keys: Sequence[K]) -> Generator[None, None, "SortedKeys[K]"]:
        """Return the sequence of distinct keys; yields every few milliseconds."""
        runs: list[list[Any]] = []
        for start in range(0, len(keys), _RUN):
            some: list[Any] = list(keys[start : start + _RUN])
            runs.append(sorted(some))
            yield
        return cls((yield from _in_chunks(heapq.merge(*runs))))

    def __len__(self) -> int:
        ends = self._counted()
        return ends[-1] if ends else 0

    def __getitem__(self, index: int) -> K:
        """Return the key at an index of 0 or more. Raises IndexError."""
        ends = self._counted()
        place = bisect_right(ends, index)
        key: K = self._chunks[place][index - (ends[place - 1] if place else 0)]
        return key

    def _counted(self) -> list[int]:
        if self._ends is None:
            self._ends = list(accumulate(map(len, self._chunks)))
        return self._ends

    def __iter__(self) -> Iterator[K]:
        """Yield the keys in order. A caller that takes only the first few pays only for those."""
        for chunk in self._chunks:
            yield from chunk

    def after(self, key: K) -> Iterator[K]:
        """Yield the keys that are larger than `key`, in order."""
        low: Any = key
        place = bisect_right(self._chunks, low, key=_last)
        for number, chunk in enumerate(islice(self._chunks, place, None)):
            yield from chunk[bisect_right(chunk, low) :] if number == 0 else chunk

    def without_first(self, count: int) -> "SortedKeys[K]":
        """Return the sequence without the `count` smallest keys."""
        if not count:
            return self
        for index, chunk in enumerate(self._chunks):
            if count < len(chunk):
                return SortedKeys((chunk[count:], *self._chunks[index + 1 :]))
            count -= len(chunk)
        return SortedKeys()

    def with_keys(self, keys: Sequence[Any]) -> "SortedKeys[K]":
        """Return the sequence with `keys` added, which must be sorted, new and distinct."""
        if not keys:
            return self
        chunks = list(self._chunks)
        start = 0
        while start < len(keys):
            place = min(bisect_left(chunks, keys[start], key=_last), max(len(chunks) - 1, 0))
            end = len(keys)
            if place < len(chunks) - 1:
                end = bisect_right(keys, chunks[place][-1], lo=start)
            old = chunks[place] if chunks else ()
            merged = (*old, *keys[start:end])
            if old and keys[start] < old[-1]:
                merged = tuple(sorted(merged))
            at_end = place >= len(chunks) - 1
            chunks[place : place + 1] = _split(merged, _CHUNK if at_end else _CHUNK // 2)
            start = end
        return SortedKeys(chunks)

    def changing(
        self, changes: Mapping[K, object | None]
    ) -> Generator[None, None, "SortedKeys[K]"]:
        """Return the sequence after `changes`: it has no key whose value is None, and all others.

        Yields every few milliseconds for many changes, and never for a few.
        """
        if not changes:
            return self
        if len(changes) > _RUN:
            return (yield from self._rebuilding(changes))
        chunks = list(self._chunks)
        keys: list[Any] = sorted(changes)
        for number in range(0, len(keys), _CHANGES):
            if number:
                yield
            _change(chunks, keys[number : number + _CHANGES], changes)
        return SortedKeys(chunks)

    def _rebuilding(
        self, changes: Mapping[K, object | None]
    ) -> Generator[None, None, "SortedKeys[K]"]:
        """Do what `changing` does for many changes: sort them in runs, and merge the runs."""
        runs: list[list[Any]] = []
        rest: Iterator[Any] = iter(changes)
        while some := list(islice(rest, _RUN)):
            runs.append(sorted(key for key in some if changes[key] is not None))
            yield
        kept: Iterator[Any] = (key for key in self if key not in changes)
        return SortedKeys((yield from _in_chunks(heapq.merge(kept, *runs))))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, SortedKeys) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


def _in_chunks(keys: Iterator[Any]) -> Generator[None, None, list[tuple[Any, ...]]]:
    chunks: list[tuple[Any, ...]] = []
    while chunk := tuple(islice(keys, _CHUNK)):
        chunks.append(chunk)
        yield
    return chunks


def _change(
    chunks: list[tuple[Any, ...]], keys: Sequence[Any], changes: Mapping[Any, object | None]
) -> None:
    """Add or remove sorted keys. A chunk is copied once, however many of its keys change."""
    start = 0
    while start < len(keys):
        place = min(bisect_left(chunks, keys[start], key=_last), max(len(chunks) - 1, 0))
        at_end = place >= len(chunks) - 1
        end = len(keys) if at_end else bisect_right(keys, chunks[place][-1], lo=start)
        chunk: tuple[Any, ...] = chunks[place] if chunks else ()
        changed = list(chunk)
        same = True
        for key in keys[start:end]:
            at = bisect_left(changed, key)
            there = at < len(changed) and changed[at] == key
            if there is (changes[key] is not None):
                continue
            same = False
            if there:
                del changed[at]
            else:
                changed.insert(at, key)
        if not same:
            size = _CHUNK if at_end else _CHUNK // 2
            chunks[place : place + 1] = _split(tuple(changed), size)
        start = end


def _split(keys: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
    """Cut a chunk that is too long into chunks of `size` keys.

    `size` is half a chunk, to leave room for more keys, but a whole chunk at the end of the
    sequence: a larger key gets a new chunk there.
    """
    if not keys:
        return []
    if len(keys) <= _CHUNK:
        return [keys]
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _last(chunk: tuple[Any, ...]) -> Any:
    return chunk[-1]
