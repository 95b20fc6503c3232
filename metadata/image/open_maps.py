"""Maps of an image whose delta is still open: what a group of decisions reads.

Rule: at each moment an open map equals the map that `apply` would build. A key is read from the
overlay, and from the base if the overlay doesn't have it. Everything else (length, order, derived
maps) needs the built map: `built` ends the delta and returns it, and the open map becomes it. An
open map must not be kept while the delta goes on: it follows the delta.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from metadata.buckets import BucketMap
from metadata.image.overlay import Overlay
from metadata.image.partition import Partition
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.sorted_keys import SortedKeys
from metadata.partition_key import PlainPartitionKey

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class BuiltMap(BucketMap[K, V]):
    """A map that is built when anything of it is read."""

    __slots__ = ("_built",)

    def __init__(self, built: Callable[[], BucketMap[K, V]]) -> None:
        """`built` returns the map. It is called at most once."""
        self._built = built

    def __getattr__(self, name: str) -> Any:
        """Become the built map: Python asks here for a slot that is not set yet."""
        return _become(self, BucketMap.__slots__, self._built, name)


class OpenMap(BuiltMap[K, V]):
    """A map with a delta's changes. Its keys are read without building it."""

    __slots__ = ("_overlay",)

    def __init__(self, overlay: Overlay[K, V], built: Callable[[], BucketMap[K, V]]) -> None:
        super().__init__(built)
        self._overlay = overlay

    def __contains__(self, key: object) -> bool:
        return self._overlay.get(key) is not None  # type: ignore[arg-type]

    def __getitem__(self, key: K) -> V:
        value = self._overlay.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: K, default: Any = None) -> Any:
        """Return the newest value, or the default."""
        value = self._overlay.get(key)
        return default if value is None else value


class BuiltKeys(SortedKeys[K]):
    """Sorted keys that are built when anything of them is read."""

    __slots__ = ("_built",)

    def __init__(self, built: Callable[[], SortedKeys[K]]) -> None:
        """`built` returns the keys. It is called at most once."""
        self._built = built

    def __getattr__(self, name: str) -> Any:
        """Become the built keys."""
        return _become(self, SortedKeys.__slots__, self._built, name)


class BuiltPartitionSet(PartitionSet):
    """A set of partitions that is built when anything of it is read."""

    __slots__ = ("_built",)

    def __init__(self, built: Callable[[], PartitionSet]) -> None:
        """`built` returns the set. It is called at most once."""
        self._built = built

    def __getattr__(self, name: str) -> Any:
        """Become the built set."""
        return _become(self, PartitionSet.__slots__, self._built, name)


class OpenPartitionMap(PartitionMap):
    """The partitions with a delta's changes. One of them is read without building the map."""

    __slots__ = ("_built", "_overlay")

    def __init__(
        self, overlay: Overlay[PlainPartitionKey, Partition], built: Callable[[], PartitionMap]
    ) -> None:
        """`built` returns the map. It is called at most once."""
        self._overlay = overlay
        self._built = built

    def get(self, key: PlainPartitionKey, default: Any = None) -> Any:
        """Return the newest state, or the default. `in` and `[]` ask here, too."""
        partition = self._overlay.get(key)
        return default if partition is None else partition

    def __getattr__(self, name: str) -> Any:
        """Become the built map."""
        return _become(self, PartitionMap.__slots__, self._built, name)


def _become(this: Any, slots: Iterable[str], built: Callable[[], Any], name: str) -> Any:
    """Copy the slots of a built one; return the one with this name. Raises AttributeError."""
    if name not in slots:
        raise AttributeError(name)
    made = built()
    for slot in slots:
        setattr(this, slot, getattr(made, slot))
    return getattr(made, name)
