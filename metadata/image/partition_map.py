# ruff: noqa: SLF001 - a map looks into others of its class
"""An immutable map of partitions that takes about ten bytes for each, besides the partition itself.

Rule: sixteen neighbours of a topic share one entry of a `BucketMap`, a chunk. So the key, its hash
and its place in a dict are there once for sixteen partitions. The chunk is a tuple, in which the
lowest bits of a partition's number are its place; None stands for a number that is missing, and
nothing follows the last partition. A change copies one chunk and one bucket.

Larger chunks would save little more memory, and a copy touches the reference count of each
partition in the chunk (ADR 0042).
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeVar, overload

from metadata.buckets import STEP, BucketMap, KeyChange, mix_partition
from metadata.image.partition import Partition
from metadata.partition_key import PlainPartitionKey
from metadata.steps import finished

D = TypeVar("D")

ChunkKey = tuple[bytes, int]
"""A topic's id, and the number of a partition without its four lowest bits."""
Chunk = tuple[Partition | None, ...]

CHUNK_BITS: Final = 4
_IN_CHUNK: Final = (1 << CHUNK_BITS) - 1


class PartitionMap:
    """An immutable map of partitions; see the module. Its methods are those of a `BucketMap`."""

    __slots__ = ("_chunks", "_length")

    def __init__(self, items: Mapping[PlainPartitionKey, Partition] | None = None) -> None:
        self._chunks: BucketMap[ChunkKey, Chunk] = BucketMap(mix_partition)
        self._length = 0
        if items:
            loaded = self.with_changes(items)
            self._chunks, self._length = loaded._chunks, loaded._length

    @classmethod
    def of_chunks(cls, chunks: BucketMap[ChunkKey, Chunk], length: int) -> "PartitionMap":
        """Return the map of these chunks, which hold `length` partitions."""
        made = cls.__new__(cls)
        made._chunks, made._length = chunks, length
        return made

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: PlainPartitionKey) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: PlainPartitionKey) -> Partition:
        partition = self.get(key)
        if partition is None:
            raise KeyError(key)
        return partition

    @overload
    def get(self, key: PlainPartitionKey) -> Partition | None: ...
    @overload
    def get(self, key: PlainPartitionKey, default: D) -> Partition | D: ...
    def get(self, key: PlainPartitionKey, default: D | None = None) -> Partition | D | None:
        """Return the partition, or the default."""
        topic_id, number = key
        chunk = self._chunks.get((topic_id, number >> CHUNK_BITS))
        if chunk is None:
            return default
        place = number & _IN_CHUNK
        partition = chunk[place] if place < len(chunk) else None
        return default if partition is None else partition

    def __iter__(self) -> Iterator[PlainPartitionKey]:
        """Yield the keys, sorted. The keys of all chunks are sorted first."""
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Partition]:
        """Yield the partitions, sorted by their keys."""
        return (partition for _, partition in self.items())

    def items(self) -> Iterator[tuple[PlainPartitionKey, Partition]]:
        """Yield the entries, sorted by key."""
        return _entries(self._chunks.items())

    def unordered_items(self) -> Iterator[tuple[PlainPartitionKey, Partition]]:
        """Yield the entries without sorting them. For sums only, never for records or replay."""
        return _entries(self._chunks.unordered_items())

    def pages(self) -> list[Any]:
        """Return the map's pages, for a caller that frees the map in steps."""
        return self._chunks.pages()

    def with_changes(self, changes: Mapping[PlainPartitionKey, Partition | None]) -> "PartitionMap":
        """Return the map with these entries set or, where the value is None, removed."""
        return finished(self.changing(changes))

    def changing(
        self, changes: Mapping[PlainPartitionKey, Partition | None]
    ) -> "Generator[None, None, PartitionMap]":
        """Do what `with_changes` does, and yield after each `STEP` entries; never for fewer."""
        if not changes:
            return self
        edited: dict[ChunkKey, list[Partition | None]] = {}
        length = self._length
        rest = iter(changes.items())
        while some := list(islice(rest, STEP)):
            length += self._edit(some, edited)
            if len(changes) > STEP:
                yield
        chunks: dict[ChunkKey, Chunk | None] = {}
        for number, (key, partitions) in enumerate(edited.items(), 1):
            while partitions and partitions[-1] is None:
                partitions.pop()
            chunks[key] = tuple(partitions) or None
            if number % STEP == 0:
                yield
        return PartitionMap.of_chunks((yield from self._chunks.changing(chunks)), length)

    def _edit(
        self,
        changes: Iterable[tuple[PlainPartitionKey, Partition | None]],
        edited: dict[ChunkKey, list[Partition | None]],
    ) -> int:
        """Write entries into copies of their chunks; return how many more there are then."""
        more = 0
        for (topic_id, number), partition in changes:
            key = (topic_id, number >> CHUNK_BITS)
            chunk = edited.get(key)
            if chunk is None:
                chunk = edited[key] = list(self._chunks.get(key, ()))
            place = number & _IN_CHUNK
            if place >= len(chunk):
                chunk.extend([None] * (place + 1 - len(chunk)))
            more += (partition is not None) - (chunk[place] is not None)
            chunk[place] = partition
        return more

    def differences(
        self, other: "PartitionMap"
    ) -> Iterator[KeyChange[PlainPartitionKey, Partition] | None]:
        """Yield the differences from an earlier or any other map, in no order.

        None comes in between: `STEP` yields are a short step, however large the maps are.
        """
        for change in self._chunks.differences(other._chunks):
            if change is not None:
                yield from _within(change)
            yield None

    def changes_since(
        self, other: "PartitionMap"
    ) -> tuple[KeyChange[PlainPartitionKey, Partition], ...]:
        """Return the differences from an earlier or any other map, sorted by key."""
        chunks = self._chunks.changes_since(other._chunks)
        return tuple(change for chunk in chunks for change in _within(chunk))

    def __eq__(self, other: object) -> bool:
        """Return whether the entries are equal. Buckets that both maps share are skipped."""
        if not isinstance(other, PartitionMap):
            return NotImplemented
        return self._length == other._length and self._chunks == other._chunks

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PartitionMap({dict(self.items())!r})"


def _entries(
    chunks: Iterable[tuple[ChunkKey, Chunk]],
) -> Iterator[tuple[PlainPartitionKey, Partition]]:
    """Yield the partitions of chunks, with their keys."""
    for (topic_id, number), chunk in chunks:
        for partition_id, partition in enumerate(chunk, number << CHUNK_BITS):
            if partition is not None:
                yield (topic_id, partition_id), partition


def _within(
    change: KeyChange[ChunkKey, Chunk],
) -> Iterator[KeyChange[PlainPartitionKey, Partition]]:
    """Yield the partitions that differ between two versions of a chunk, ascending."""
    (topic_id, number), before, after = change
    old_chunk, new_chunk = before or (), after or ()
    for place in range(max(len(old_chunk), len(new_chunk))):
        old = old_chunk[place] if place < len(old_chunk) else None
        new = new_chunk[place] if place < len(new_chunk) else None
        if old is not new and old != new:
            yield KeyChange((topic_id, (number << CHUNK_BITS) + place), old, new)
