"""The newest batches in encoded form, shared by all readers that wait for them.

Rule: the cache is bounded in bytes. Batches that it drops are read from the segments.
"""

from bisect import bisect_right

CACHE_BYTES = 16 * 1024 * 1024


class NewestBatches:
    """A run of batches that ends at the end of the log."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit = limit_bytes
        self._bases: list[int] = []
        self._frames: list[bytes] = []
        self._hashes: list[bytes] = []
        self._first = 0
        self._end = 0
        self.bytes = 0

    @property
    def start_offset(self) -> int:
        """The first offset in the cache; the end of the log if the cache is empty."""
        return self._bases[self._first] if self._first < len(self._bases) else self._end

    def add(self, base_offset: int, end_offset: int, frame: bytes, batch_hash: bytes) -> None:
        """Keep the batch that was just accepted."""
        self._bases.append(base_offset)
        self._frames.append(frame)
        self._hashes.append(batch_hash)
        self._end = end_offset
        self.bytes += len(frame)
        while self.bytes > self._limit:
            self.bytes -= len(self._frames[self._first])
            self._frames[self._first] = b""
            self._first += 1
        if self._first > 1024 and self._first * 2 > len(self._bases):
            del self._bases[: self._first]
            del self._frames[: self._first]
            del self._hashes[: self._first]
            self._first = 0

    def read(self, offset: int, max_bytes: int, up_to: int) -> list[bytes] | None:
        """Return whole batches from the one that holds `offset`; None if it is not in the cache.

        Returns only batches that end at or before `up_to`. The first one is returned whatever its
        size.
        """
        if not self.start_offset <= offset < self._end:
            return None
        first = bisect_right(self._bases, offset) - 1
        count = len(self._bases)
        size = 0
        i = first
        while i < count and self._end_of(i) <= up_to:
            size += len(self._frames[i])
            if size > max_bytes and i > first:
                break
            i += 1
        return self._frames[first:i]

    def hash_at(self, end_offset: int) -> bytes | None:
        """Return the hash of the batch that ends at an offset; None if it is not in the cache."""
        if not self.start_offset < end_offset <= self._end:
            return None
        i = bisect_right(self._bases, end_offset - 1) - 1
        return self._hashes[i] if self._end_of(i) == end_offset else None

    def _end_of(self, i: int) -> int:
        return self._bases[i + 1] if i + 1 < len(self._bases) else self._end
