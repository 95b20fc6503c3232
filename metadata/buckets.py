# ruff: noqa: SLF001 - a map looks into others of its class
"""An immutable map whose next version shares everything that was not written.

Rule: a `BucketMap` never changes. `with_changes` returns the next version. It copies a bucket, and
the page that holds the bucket, at the first write to it. So a single change costs microseconds
whatever the size of the map, and a bulk load costs little more than a plain dict. Two versions of
one map are compared by the identity of their pages and buckets.

A bucket is a dict with 4 to 32 entries on average, and the number of buckets grows with the map. A
copy of a bucket touches the reference count of every entry in it. With 1,024 buckets for 100,000
partitions, a batch of 50 changes would touch 5,000 other entries and evict everything else from the
processor's cache; it would take more than twice the time (ADR 0010). The number of buckets has no
other effect, since iteration is sorted by key. Only this process knows which bucket holds a key, so
that no client can choose keys that all lie in one (`metadata.bucket_hash`, ADR 0019).

None is not a value: it means "absent" in `with_changes` and in a `KeyChange`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload

from metadata.bucket_hash import (
    Mix,
    MixFor,
    keyed,
    mix_bytes,
    mix_entity,
    mix_int,
    mix_name_and_code,
    mix_partition,
    mix_row,
    mix_text,
    mix_typed_name,
)

__all__ = [
    "STEP",
    "BucketMap",
    "KeyChange",
    "mix_bytes",
    "mix_entity",
    "mix_int",
    "mix_name_and_code",
    "mix_partition",
    "mix_row",
    "mix_text",
    "mix_typed_name",
]

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

STEP: Final = 64
"""Changes between two yields: 0.5 to 2 ms of work. In a map of a million entries each change copies
a bucket that is not in the processor's cache: 9 µs on a quiet machine, three times that on a busy
one."""

_COUNT_STEP: Final = 512
"""Lookups of keys between two yields."""

_SHAPES: Final = (
    (32, 0, 0),
    (256, 0, 3),
    (2_048, 3, 3),
    (16_384, 5, 4),
    (131_072, 7, 5),
    (1 << 62, 9, 6),
)
"""(the most entries, bits of the page number, bits of the bucket's number within its page)."""


class KeyChange(NamedTuple, Generic[K, V]):
    """A key whose value differs between two maps. None: the key is not in that map."""

    key: K
    before: V | None
    after: V | None


class BucketMap(Generic[K, V]):
    """An immutable map; see the module."""

    __slots__ = ("_in_page", "_kind", "_length", "_mask", "_mix", "_most", "_pages", "_shift")

    _kind: MixFor
    _mix: Mix
    _pages: list[list[dict[K, V]]]
    _length: int
    _shift: int
    """How many bits of an index are the bucket's number within its page."""
    _in_page: int
    _mask: int
    _most: int
    """The most entries for this number of buckets."""

    def __init__(self, kind: MixFor, items: Mapping[K, V] | None = None) -> None:
        """`kind` is the function of `metadata.bucket_hash` for this kind of keys."""
        self._kind, self._mix = kind, keyed(kind)
        self._reshape(0)
        if items:
            loaded = self.with_changes(items)
            self._pages, self._length, self._mix = loaded._pages, loaded._length, loaded._mix
            self._shift, self._in_page, self._mask = loaded._shift, loaded._in_page, loaded._mask
            self._most = loaded._most

    def _reshape(self, length: int) -> None:
        """Become empty, with buckets for `length` entries."""
        self._most, page_bits, self._shift = next(shape for shape in _SHAPES if length <= shape[0])
        self._in_page = (1 << self._shift) - 1
        self._mask = (1 << (page_bits + self._shift)) - 1
        self._pages = [[{} for _ in range(1 << self._shift)] for _ in range(1 << page_bits)]
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: object) -> bool:
        index = self._mix(key) & self._mask
        return key in self._pages[index >> self._shift][index & self._in_page]

    def __getitem__(self, key: K) -> V:
        index = self._mix(key) & self._mask
        return self._pages[index >> self._shift][index & self._in_page][key]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: D | None = None) -> V | D | None:
        """Return the value, or the default."""
        index = self._mix(key) & self._mask
        return self._pages[index >> self._shift][index & self._in_page].get(key, default)

    def __iter__(self) -> Iterator[K]:
        """Yield the keys, sorted. All keys are sorted first: 0.1 s for 100,000 partitions."""
        keys: list[Any] = [key for page in self._pages for bucket in page for key in bucket]
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

    def pages(self) -> list[Any]:
        """Return the map's pages, for a caller that frees the map in steps."""
        return list(self._pages)

    def unordered_items(self) -> Iterator[tuple[K, V]]:
        """Yield the entries without sorting them. For sums only, never for records or replay."""
        return (item for page in self._pages for bucket in page for item in bucket.items())

    def with_changes(self, changes: Mapping[K, V | None]) -> "BucketMap[K, V]":
        """Return the map with these entries set or, where the value is None, removed."""
        if not changes:
            return self
        new = sum(key not in self for key in changes) if self._must_count(changes) else 0
        result, owned = self._writable(changes, new)
        if not self._length and result._most != self._most:
            result._fill(_present(changes))
            return result
        if result._most != self._most:
            result._fill(self.unordered_items())
        result._write(changes.items(), owned, set())
        return result

    def changing(self, changes: Mapping[K, V | None]) -> Generator[None, None, "BucketMap[K, V]"]:
        """Do what `with_changes` does, and yield after each `STEP` entries; never for fewer."""
        if len(changes) <= STEP and self._length + len(changes) <= self._most:
            return self.with_changes(changes)
        new = 0
        if self._must_count(changes):
            keys = iter(changes)
            while some_keys := list(islice(keys, _COUNT_STEP)):
                new += sum(key not in self for key in some_keys)
                yield
        result, owned = self._writable(changes, new)
        yield
        if result._most != self._most:
            entries = self.unordered_items() if self._length else _present(changes)
            while some := list(islice(entries, STEP)):
                result._fill(some)
                yield
            if not self._length:
                return result
        owned_pages = set[int]()
        rest = iter(changes.items())
        while some_changes := list(islice(rest, STEP)):
            result._write(some_changes, owned, owned_pages)
            yield
        return result

    def loading(
        self, keys: Sequence[K], values: Sequence[V]
    ) -> Generator[None, None, "BucketMap[K, V]"]:
        """Return the map of these keys and, at the same places, values. This one must be empty.

        Of a key that comes more than once the last value counts. Yields after each 512 entries.
        """
        result, _ = self._writable({}, 0)
        result._reshape(len(keys))
        for start in range(0, len(keys), _COUNT_STEP):
            end = start + _COUNT_STEP
            result._fill(zip(keys[start:end], values[start:end], strict=True))
            yield
        result._length = sum(len(bucket) for page in result._pages for bucket in page)
        return result

    def _must_count(self, changes: Mapping[K, V | None]) -> bool:
        """Return whether the number of new keys decides if there are enough buckets."""
        return self._length + len(changes) > self._most >= len(changes)

    def _writable(
        self, changes: Mapping[K, V | None], new: int
    ) -> tuple["BucketMap[K, V]", bytearray]:
        """Return a map to write into, and for each bucket 1 if it is not shared with this map.

        The map is a copy if it has enough buckets for the changes, else an empty larger one. `new`
        is the number of keys that are not in this map; it is used only if `_must_count`.
        """
        result: BucketMap[K, V] = BucketMap.__new__(BucketMap)
        # An empty map takes the secret that is set now; any other map keeps its own.
        result._kind, result._mix = self._kind, self._mix if self._length else keyed(self._kind)
        length = self._length + (new if self._must_count(changes) else len(changes))
        if length > self._most:
            result._reshape(length)
            return result, bytearray(b"\x01" * (result._mask + 1))
        result._most = self._most
        result._shift, result._in_page, result._mask = self._shift, self._in_page, self._mask
        result._pages, result._length = self._pages.copy(), self._length
        return result, bytearray(self._mask + 1)

    def _fill(self, entries: Iterable[tuple[K, V]]) -> None:
        """Add entries, whose keys must not be in this map."""
        mix, mask, shift, in_page = self._mix, self._mask, self._shift, self._in_page
        pages, count = self._pages, 0
        for count, (key, value) in enumerate(entries, 1):  # noqa: B007 - counted
            index = mix(key) & mask
            pages[index >> shift][index & in_page][key] = value
        self._length += count

    def _write(
        self, changes: Iterable[tuple[K, V | None]], owned: bytearray, owned_pages: set[int]
    ) -> None:
        """Set and remove entries in this map, which nobody else has a reference to yet.

        A bucket that is shared with another map is copied first, and so is its page.
        """
        mix, mask, shift, in_page = self._mix, self._mask, self._shift, self._in_page
        pages, length = self._pages, self._length
        for key, value in changes:
            index = mix(key) & mask
            if owned[index]:
                bucket = pages[index >> shift][index & in_page]
            else:
                number = index >> shift
                if number not in owned_pages:
                    owned_pages.add(number)
                    pages[number] = pages[number].copy()
                page = pages[number]
                bucket = page[index & in_page] = page[index & in_page].copy()
                owned[index] = 1
            if value is None:
                if bucket.pop(key, None) is not None:
                    length -= 1
            else:
                length -= len(bucket)
                bucket[key] = value
                length += len(bucket)
        self._length = length

    def changed_since(self, other: "BucketMap[K, V]") -> Iterator[K]:
        """Yield the keys whose values differ from those of an earlier or any other map, sorted."""
        return (change.key for change in self.changes_since(other))

    def differences(self, other: "BucketMap[K, V]") -> Iterator[KeyChange[K, V] | None]:
        """Yield the differences from an earlier or any other map, in no order.

        None comes in between: `STEP` yields are a short step, however large the maps are.
        """
        if self._pages is other._pages:
            return
        if self._mask != other._mask or self._mix is not other._mix:
            yield from self._differences_of_all(other)
            return
        for my_page, their_page in zip(self._pages, other._pages, strict=True):
            if my_page is their_page:
                continue
            for mine, theirs in zip(my_page, their_page, strict=True):
                if mine is not theirs:
                    for key, after in mine.items():
                        before = theirs.get(key)
                        if before is not after and before != after:
                            yield KeyChange(key, before, after)
                    for key in theirs:
                        if key not in mine:
                            yield KeyChange(key, theirs[key], None)
                yield None

    def _differences_of_all(self, other: "BucketMap[K, V]") -> Iterator[KeyChange[K, V] | None]:
        """Compare two maps that share no buckets."""
        for key, after in self.unordered_items():
            before = other.get(key)
            differ = before is not after and before != after
            yield KeyChange(key, before, after) if differ else None
        for key, before in other.unordered_items():
            yield None if key in self else KeyChange(key, before, None)

    def changes_since(self, other: "BucketMap[K, V]") -> tuple[KeyChange[K, V], ...]:
        """Return the differences from an earlier or any other map, sorted by key.

        Buckets that both maps share are skipped.
        """
        changes: list[KeyChange[K, V]] = []
        for mine, theirs in self._unshared(other):
            for key, after in mine.items():
                before = theirs.get(key)
                if before is not after and before != after:
                    changes.append(KeyChange(key, before, after))
            changes.extend(KeyChange(key, theirs[key], None) for key in theirs if key not in mine)
        order: Callable[[KeyChange[K, V]], Any] = _key_of
        changes.sort(key=order)
        return tuple(changes)

    def _unshared(self, other: "BucketMap[K, V]") -> Iterator[tuple[dict[K, V], dict[K, V]]]:
        """Pair the buckets that may differ."""
        if self._pages is other._pages:
            return
        if self._mask != other._mask or self._mix is not other._mix:
            yield dict(self.unordered_items()), dict(other.unordered_items())
            return
        for mine, theirs in zip(self._pages, other._pages, strict=True):
            if mine is not theirs:
                yield from (
                    (one, two) for one, two in zip(mine, theirs, strict=True) if one is not two
                )

    def __eq__(self, other: object) -> bool:
        """Return whether the entries are equal. Buckets that both maps share are skipped."""
        if not isinstance(other, BucketMap):
            return NotImplemented
        if self._length != other._length:
            return False
        return all(mine == theirs for mine, theirs in self._unshared(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {value!r}" for key, value in self.items())
        return f"BucketMap({{{shown}}})"


def _present(changes: Mapping[K, V | None]) -> Iterator[tuple[K, V]]:
    """Yield the entries that are set and not removed."""
    return ((key, value) for key, value in changes.items() if value is not None)


def _key_of(change: KeyChange[Any, Any]) -> Any:
    return change.key
