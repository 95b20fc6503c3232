"""The changes of one map, until they become the next one.

Rule: a delta writes here, never into an image. Each key that was touched is in `changed` with its
newest value, None if it was removed, so what changed costs nothing to know and the map is written
once per key however often the key changed.
"""

from collections.abc import Generator
from typing import Generic, TypeVar

from metadata.buckets import BucketMap, KeyChange

K = TypeVar("K")
V = TypeVar("V")


class Overlay(Generic[K, V]):
    """What is to be written over a `BucketMap`."""

    __slots__ = ("_base_is_empty", "base", "changed")

    def __init__(self, base: BucketMap[K, V]) -> None:
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
        """Give `key` a value."""
        self.changed[key] = value

    def remove(self, key: K) -> None:
        """Take `key` away; it need not be there."""
        self.changed[key] = None

    def apply_in_steps(self) -> Generator[None, None, BucketMap[K, V]]:
        """Return the next map, or the same one if nothing was written; yields if that is much."""
        return self.base.changing(self.changed)

    def changes(self) -> tuple[KeyChange[K, V], ...]:
        """Return what is different from the base, sorted by key."""
        get = self.base.get
        found = ((key, get(key), after) for key, after in self.changed.items())
        changes = [KeyChange(*triple) for triple in found if triple[1] != triple[2]]
        changes.sort(key=lambda change: change.key)  # type: ignore[return-value,arg-type]
        return tuple(changes)
