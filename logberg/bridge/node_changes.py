"""Changes of ZooKeeper's nodes that would make a tree say what this cluster says.

Rule: a change names the version of the node that it was decided on. ZooKeeper refuses it if the
node has changed since. So nothing of a foreign writer is overwritten.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from logberg.importing.znodes import ZnodeTree


class NodeDeed(Enum):
    """What is done to a node."""

    CREATE = "create"
    SET = "set"
    DELETE = "delete"


class NodeChange(NamedTuple):
    """One change. Parents are created before their children, and deleted after them."""

    deed: NodeDeed
    path: str
    data: bytes = b""
    version: int = -1
    """Of the node that is set or deleted."""

    def __str__(self) -> str:
        return f"{self.deed.value} {self.path}"


class Notice(NamedTuple):
    """A node that tells Kafka's brokers what to read again. It is no part of the state."""

    prefix: str
    """ZooKeeper adds a number to it."""
    data: bytes


class NodeChanges:
    """Changes that are collected against one tree."""

    def __init__(self, tree: ZnodeTree) -> None:
        self.tree = tree
        self.changes: list[NodeChange] = []
        self.notices: list[Notice] = []
        self._made: set[str] = set()

    def put(self, path: str, data: bytes) -> None:
        """Set a node's data, or create it with its parents."""
        node = self.tree.get(path)
        if node is not None:
            self.changes.append(NodeChange(NodeDeed.SET, path, data, node.version))
            return
        for parent in _parents(path):
            if self.tree.get(parent) is None and parent not in self._made:
                self._made.add(parent)
                self.changes.append(NodeChange(NodeDeed.CREATE, parent))
        self._made.add(path)
        self.changes.append(NodeChange(NodeDeed.CREATE, path, data))

    def put_json(self, path: str, value: Any) -> None:
        """Set a node's data as Kafka encodes JSON."""
        self.put(path, msgspec.json.encode(value))

    def delete(self, path: str) -> None:
        """Delete a node with all below it, if it is there."""
        node = self.tree.get(path)
        if node is None:
            return
        for child in self.tree.children(path):
            self.delete(child.path)
        self.changes.append(NodeChange(NodeDeed.DELETE, path, b"", node.version))

    def notify(self, prefix: str, data: bytes) -> None:
        """Tell Kafka's brokers; the same only once."""
        notice = Notice(prefix, data)
        if notice not in self.notices:
            self.notices.append(notice)

    def notify_config(self, entity_path: str) -> None:
        """Tell Kafka's brokers that the configs of an entity have changed."""
        notice = {"version": 2, "entity_path": entity_path}
        self.notify("/config/changes/config_change_", msgspec.json.encode(notice))

    def config_of(self, path: str) -> dict[str, str]:
        """Return the configs in a node; none if it isn't there."""
        node = self.tree.get(path)
        if node is None or not node.data:
            return {}
        found: dict[str, str] = msgspec.json.decode(node.data)["config"]
        return found

    def put_config(self, path: str, wanted: dict[str, str]) -> None:
        """Set the configs in a node if they differ, and tell Kafka's brokers."""
        if self.config_of(path) != wanted:
            self.put_json(path, {"version": 1, "config": dict(sorted(wanted.items()))})
            self.notify_config(path.removeprefix("/config/"))


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")[1:-1]
    for count in range(1, len(parts) + 1):
        yield "/" + "/".join(parts[:count])


def shown_changes(changes: Iterable[NodeChange], most: int) -> str:
    """Return the first changes in words."""
    every = [str(each) for each in changes]
    more = f"; and {len(every) - most} more" if len(every) > most else ""
    return "; ".join(every[:most]) + more
