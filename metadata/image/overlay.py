"""The changes of a delta to one map.

Rule: a delta writes here and never into an image. `changed` holds each key that was written, with
its newest value, or None if it was removed. So the changes are known without a comparison, and the
next map is written once per key, however often the key changed.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from metadata.buckets import BucketMap, KeyChange

K = TypeVar("K")
V = TypeVar("V")


class Base(Protocol[K, V]):
    """What an overlay needs of its map: a `BucketMap`, or the `PartitionMap`."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[K]: ...
    def get(self, key: K, /) -> V | None: ...
    def changing(self, changes: Mapping[K, V | None], /) -> Generator[None, None, Any]: ...


class Overlay(Generic[K, V]):
    """Changes to a map of an image."""

    __slots__ = ("_base_is_empty", "base", "changed")

    def __init__(self, base: Base[K, V]) -> None:
        self.base = base
        self._base_is_empty = not len(base)
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """Return the newest value; None if there is none."""
        value = self.changed.get(key)
        if value is None and not self._base_is_empty and key not in self.changed:
            return self.base.get(key)
        return value

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def set(self, key: K, value: V) -> None:
        """Set the value of `key`."""
        self.changed[key] = value

    def remove(self, key: K) -> None:
        """Remove `key`, which need not exist."""
        self.changed[key] = None

    def apply_in_steps(self) -> Generator[None, None, BucketMap[K, V]]:
        """Return the next map, or the same one if nothing changed; yields after many changes."""
        return self.base.changing(self.changed)

    def changes(self) -> tuple[KeyChange[K, V], ...]:
        """Return the differences from the base, sorted by key."""
        get = self.base.get
        found = ((key, get(key), after) for key, after in self.changed.items())
        changes = [KeyChange(*triple) for triple in found if triple[1] != triple[2]]
        changes.sort(key=lambda change: change.key)  # type: ignore[return-value,arg-type]
        return tuple(changes)
