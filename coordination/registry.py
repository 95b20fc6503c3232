"""KIP-30's ListenerRegistry: listeners of keys and of namespaces.

Rule: `listeners` says how listeners are called. A namespace is a parent path: its keys are those
one level below it, unless the listener asks for all that lie deeper.
"""

from collections.abc import Hashable

from coordination.listeners import Listeners, OnKeySet, OnValue
from coordination.storage import Storage


class ListenerRegistry:
    """The listeners of one client's storage."""

    def __init__(self, storage: Storage, listeners: Listeners) -> None:
        self._storage = storage
        self._listeners = listeners

    def add_value_change_listener(self, key: str, listener: OnValue) -> None:
        """Call `value_changed` with the value, or None, now and after each change of the key."""
        self._listeners.add(
            (("key", key), "value_changed"),
            listener,
            lambda: self._storage.watch_latest(key),
            lambda event: None if event.record is None else event.record.value,
        )

    def remove_value_change_listener(self, key: str, listener: OnValue) -> None:
        """Don't call this listener any more; an unknown one is ignored."""
        self._listeners.remove((("key", key), "value_changed"), listener)

    def add_key_set_change_listener(
        self, namespace: str, listener: OnKeySet, *, recursive: bool = False
    ) -> None:
        """Call `key_set_changed` with all keys, now and after each that is made or deleted."""
        self._listeners.add(
            (namespace_id(namespace), "key_set_changed"),
            listener,
            lambda: self._storage.watch_keys(namespace, recursive=recursive, buffer=1),
            lambda event: event.keys,
        )

    def remove_key_set_change_listener(self, namespace: str, listener: OnKeySet) -> None:
        """Don't call this listener any more; an unknown one is ignored."""
        self._listeners.remove((namespace_id(namespace), "key_set_changed"), listener)


def namespace_id(namespace: str) -> Hashable:
    """Return what names a namespace among all that listeners listen to."""
    return ("namespace", namespace)
