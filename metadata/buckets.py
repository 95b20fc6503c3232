# ruff: noqa: SLF001 - a map looks into others of its class
"""A map that never changes, whose next version shares all but what was written.

Rule: a `BucketMap` is immutable. `with_changes` gives the next one: it copies the list of buckets
and each bucket that it writes, once, so a lone change costs microseconds whatever the size, and a
bulk load costs little more than a plain dict. Maps of the same origin are compared by the
identity of their buckets.

There is 1 bucket up to 128 entries, 32 up to 8,192 and 1,024 beyond, so that small maps stay
small; how many there are shows nowhere but in speed. Iteration is sorted by key. A key's bucket is
found by a function that is the same in every process and Python (`hash()` isn't): crc32 of bytes
and text; for a partition, its topic's last two bytes plus its number; for integers a
multiplicative mix (Knuth), as broker ids often come in steps.

None is no value: it stands for "absent" in `with_changes` and in a `Change`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload
from zlib import crc32

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

PartitionKey = tuple[bytes, int]
"""(topic id, partition number)."""

_SIZES: Final = ((128, 1), (8192, 32))
_MOST_BUCKETS: Final = 1024


class Change(NamedTuple, Generic[K, V]):
    """What happened to one key between two maps; None: it wasn't there, or isn't any more."""

    key: K
    before: V | None
    after: V | None


def mix_bytes(key: bytes) -> int:
    """For uuids and other bytes."""
    return crc32(key)


def mix_text(key: str) -> int:
    """For names."""
    return crc32(key.encode())


def mix_int(key: int) -> int:
    """For ids, which may come in steps of a power of ten."""
    return key * 2654435761 >> 12


def mix_partition(key: PartitionKey) -> int:
    """For partitions: neighbours lie in neighbouring buckets, topics anywhere."""
    topic_id, partition = key
    return (topic_id[14] << 8 | topic_id[15]) + partition


def mix_typed_name(key: tuple[int, str]) -> int:
    """For (code, name), such as a config resource."""
    code, name = key
    return crc32(name.encode()) + code


def mix_name_and_code(key: tuple[str, int]) -> int:
    """For (name, code), such as a SCRAM credential."""
    name, code = key
    return crc32(name.encode()) + code


class BucketMap(Generic[K, V]):
    """An immutable map; see the module."""

    __slots__ = ("_buckets", "_length", "_mask", "_mix")

    def __init__(self, mix: Callable[[K], int], items: Mapping[K, V] | None = None) -> None:
        """`mix` gives each key a number, the same in every process."""
        self._mix = mix
        self._buckets: list[dict[K, V]] = [{}]
        self._mask = 0
        self._length = 0
        if items:
            loaded = self.with_changes(items)
            self._buckets, self._mask, self._length = loaded._buckets, loaded._mask, len(loaded)

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[self._mix(key) & self._mask]  # type: ignore[arg-type]

    def __getitem__(self, key: K) -> V:
        return self._buckets[self._mix(key) & self._mask][key]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: D | None = None) -> V | D | None:
        """Return the value, or the default."""
        return self._buckets[self._mix(key) & self._mask].get(key, default)

    def __iter__(self) -> Iterator[K]:
        """Yield the keys, sorted. Sorts them all first: 0.1 s for 100,000 partitions."""
        keys: list[Any] = [key for bucket in self._buckets for key in bucket]
        keys.sort()
        return iter(keys)

    def keys(self) -> Iterator[K]:
        """Yield the keys, sorted."""
        return iter(self)

    def values(self) -> Iterator[V]:
        """Yield the values, sorted by their keys."""
        return (self[key] for key in self)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield the entries, sorted by key."""
        return ((key, self[key]) for key in self)

    def unordered_values(self) -> Iterator[V]:
        """Yield the values in no order, at once: for sums, never for records or replay."""
        return (value for bucket in self._buckets for value in bucket.values())

    def unordered_items(self) -> Iterator[tuple[K, V]]:
        """Yield the entries in no order, at once: for sums, never for records or replay."""
        return (item for bucket in self._buckets for item in bucket.items())

    def with_changes(self, changes: Mapping[K, V | None]) -> "BucketMap[K, V]":
        """Return the map with these entries set or, where the value is None, removed."""
        if not changes:
            return self
        buckets, owned = self._writable(len(changes))
        mix, mask, length = self._mix, len(buckets) - 1, self._length
        for key, value in changes.items():
            index = mix(key) & mask
            if owned[index]:
                bucket = buckets[index]
            else:
                owned[index] = 1
                bucket = buckets[index] = buckets[index].copy()
            if value is None:
                if bucket.pop(key, None) is not None:
                    length -= 1
            else:
                length -= len(bucket)
                bucket[key] = value
                length += len(bucket)
        result: BucketMap[K, V] = BucketMap.__new__(BucketMap)
        result._mix, result._buckets, result._mask, result._length = mix, buckets, mask, length
        return result

    def _writable(self, growth: int) -> tuple[list[dict[K, V]], bytearray]:
        """Return buckets, enough of them for what comes, and a 1 for each that is not shared."""
        wanted = _bucket_count(self._length + growth)
        if wanted <= len(self._buckets):
            return self._buckets.copy(), bytearray(len(self._buckets))
        mix, mask = self._mix, wanted - 1
        buckets: list[dict[K, V]] = [{} for _ in range(wanted)]
        for bucket in self._buckets:
            for key, value in bucket.items():
                buckets[mix(key) & mask][key] = value
        return buckets, bytearray(b"\x01" * wanted)

    def changed_since(self, other: "BucketMap[K, V]") -> Iterator[K]:
        """Yield the keys whose values differ from an earlier (or any other) map's, sorted."""
        return (change.key for change in self.changes_since(other))

    def changes_since(self, other: "BucketMap[K, V]") -> tuple[Change[K, V], ...]:
        """Return what is different from an earlier (or any other) map, sorted by key.

        Buckets that both maps share are not looked into.
        """
        changes: list[Change[K, V]] = []
        for mine, theirs in self._unshared(other):
            for key, after in mine.items():
                before = theirs.get(key)
                if before is not after and before != after:
                    changes.append(Change(key, before, after))
            changes.extend(Change(key, theirs[key], None) for key in theirs if key not in mine)
        order: Callable[[Change[K, V]], Any] = _key_of
        changes.sort(key=order)
        return tuple(changes)

    def _unshared(self, other: "BucketMap[K, V]") -> Iterable[tuple[dict[K, V], dict[K, V]]]:
        """Pair the buckets that may differ."""
        if self._buckets is other._buckets:
            return ()
        if self._mask != other._mask:
            return ((dict(self.unordered_items()), dict(other.unordered_items())),)
        pairs = zip(self._buckets, other._buckets, strict=True)
        return ((mine, theirs) for mine, theirs in pairs if mine is not theirs)

    def __eq__(self, other: object) -> bool:
        """Tell whether the entries are the same; shared buckets cost nothing."""
        if not isinstance(other, BucketMap):
            return NotImplemented
        if self._length != other._length:
            return False
        return all(mine == theirs for mine, theirs in self._unshared(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {value!r}" for key, value in self.items())
        return f"BucketMap({{{shown}}})"


def _bucket_count(length: int) -> int:
    for most, count in _SIZES:
        if length <= most:
            return count
    return _MOST_BUCKETS


def _key_of(change: Change[Any, Any]) -> Any:
    return change.key
