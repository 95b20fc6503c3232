"""Keys in order, immutable, of which the smallest leave and mostly larger ones come.

Rule: chunks of at most 1,024 keys; the next version shares all chunks that it doesn't change. So
adding a key and dropping the first cost microseconds at a million keys.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

_CHUNK = 1024

_Chunk = tuple[bytes, ...]


class SortedKeys:
    """An immutable sorted sequence of distinct keys."""

    __slots__ = ("_chunks",)

    def __init__(self, chunks: Sequence[_Chunk] = ()) -> None:
        self._chunks = tuple(chunks)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the keys from the smallest on; taking the first few costs nothing more."""
        for chunk in self._chunks:
            yield from chunk

    def without_first(self, count: int) -> "SortedKeys":
        """Return what is left when the `count` smallest keys go."""
        if not count:
            return self
        for index, chunk in enumerate(self._chunks):
            if count < len(chunk):
                return SortedKeys((chunk[count:], *self._chunks[index + 1 :]))
            count -= len(chunk)
        return SortedKeys()

    def with_keys(self, keys: Sequence[bytes]) -> "SortedKeys":
        """Return these keys and `keys`, which are sorted, new and distinct."""
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortedKeys) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


def _split(keys: _Chunk, size: int) -> list[_Chunk]:
    """Cut what is too long; with room to grow, unless it is the end, which grows by a new chunk."""
    if len(keys) <= _CHUNK:
        return [keys]
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _last(chunk: _Chunk) -> bytes:
    return chunk[-1]
