"""Nodes as they were last read, each with a watch, so that only what changed is read anew.

Rule: a node that was read is kept only while its watch is known to stand. ZooKeeper's watches fire
once, and end with the connection: then everything kept is forgotten, and `gaps` grows. What
happened meanwhile nobody can tell.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import kazoo.exceptions as zk
from kazoo.client import KazooClient

from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.nodes import Node
from coordination.backends.zookeeper.one_session import RemoveWatches, remove_watches
from coordination.until import Until

_CHILDREN: Final = 1
_NODE: Final = 2


class NodeCache:
    """What one mirror has read. `changed` is set when something may be different."""

    def __init__(self, link: ZooKeeperConnection, changed: Callable[[], None]) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._changed = changed
        self._data: dict[str, Node | None] = {}
        self._children: dict[str, tuple[list[str], Any]] = {}
        self._fired: Counter[str] = Counter()
        self._armed: set[RemoveWatches] = set()
        self.gaps = 0

    async def node(self, path: str, until: Until) -> Node | None:
        if path in self._data:
            return self._data[path]
        fired, gaps = self._fired[path], self.gaps
        node = await self._read(path, until)
        if fired == self._fired[path] and gaps == self.gaps:
            self._data[path] = node
            self._arm(RemoveWatches(path, _NODE))
        return node

    async def children(self, path: str, until: Until) -> tuple[list[str], Any]:
        """As `nodes.children`. While there is no node, its making is watched."""
        if path in self._children:
            return self._children[path]
        fired, gaps = self._fired[path], self.gaps

        def ask(client: KazooClient) -> Any:
            return client.get_children_async(path, watch=self._on_event, include_data=True)

        try:
            names, stat = await self._link.read(ask, until)
        except zk.NoNodeError:
            names, stat = [], None
            await self._link.read(
                lambda client: client.exists_async(path, watch=self._on_event), until
            )
        if fired == self._fired[path] and gaps == self.gaps:
            self._children[path] = (names, stat)
            self._arm(RemoveWatches(path, _NODE if stat is None else _CHILDREN))
        return names, stat

    def keep_only(self, paths: set[str]) -> None:
        """Forget nodes that don't matter any more."""
        for path in self._data.keys() - paths:
            del self._data[path]
            self._fired.pop(path, None)

    async def release(self, until: Until) -> None:
        """Let the server forget the watches for which nobody else waits."""
        gone = [watch for watch in self._armed if self._link.armed[watch] == 1]
        self._disarm(set(self._armed))
        await asyncio.gather(
            *(self._link.read(partial(remove_watches, request=watch), until) for watch in gone),
            return_exceptions=True,
        )

    def _arm(self, watch: RemoveWatches) -> None:
        if watch not in self._armed:
            self._armed.add(watch)
            self._link.armed[watch] += 1

    def _disarm(self, watches: set[RemoveWatches]) -> None:
        for watch in watches & self._armed:
            self._armed.discard(watch)
            self._link.armed[watch] -= 1
            if not self._link.armed[watch]:
                del self._link.armed[watch]

    async def _read(self, path: str, until: Until) -> Node | None:
        while True:
            try:
                return Node(
                    *await self._link.read(
                        lambda client: client.get_async(path, watch=self._on_event), until
                    )
                )
            except zk.NoNodeError:
                stat = await self._link.read(
                    lambda client: client.exists_async(path, watch=self._on_event), until
                )
                if stat is None:
                    return None

    def _on_event(self, event: Any) -> None:
        """Called by kazoo's thread; without a path when the connection broke."""
        try:
            self._loop.call_soon_threadsafe(self._note, event.path)
        except RuntimeError:  # the loop is closed: nobody watches any more
            return

    def _note(self, path: str | None) -> None:
        if path is None:
            self.gaps += 1
            self._data.clear()
            self._children.clear()
            self._disarm(set(self._armed))
        else:
            self._fired[path] += 1
            self._data.pop(path, None)
            self._children.pop(path, None)
            self._disarm({RemoveWatches(path, _NODE), RemoveWatches(path, _CHILDREN)})
        self._changed()
