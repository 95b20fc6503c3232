"""Maps of an image whose delta is still open: what a group of decisions reads.

Rule: at each moment an open map equals the map that `apply` would build. A key is read from the
overlay, and from the base if the overlay doesn't have it. Everything else (length, order, derived
maps) needs the built map: `built` ends the delta and returns it, and the open map becomes it. An
open map must not be kept while the delta goes on: it follows the delta.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from metadata.buckets import BucketMap
from metadata.image.overlay import Overlay
from metadata.image.sorted_keys import SortedKeys

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
        if name not in BucketMap.__slots__:
            raise AttributeError(name)
        built = self._built()
        for slot in BucketMap.__slots__:
            setattr(self, slot, getattr(built, slot))
        return getattr(built, name)


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
        if name not in SortedKeys.__slots__:
            raise AttributeError(name)
        built = self._built()
        for slot in SortedKeys.__slots__:
            setattr(self, slot, getattr(built, slot))
        return getattr(built, name)
