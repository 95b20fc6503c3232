"""Reading keys: one, and all that begin with a text.

Rule: a list isn't of one revision, since ZooKeeper reads node by node. Its revision was reached
before it was read, so a watch from there on misses nothing.
"""

import asyncio
from collections.abc import AsyncIterator

from coordination.backend import RecordPage
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.commits import record_of
from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.nodes import Node
from coordination.backends.zookeeper.paths import Layout, decoded
from coordination.types import Record, Revision
from coordination.until import Until


def may_hold(folder: str, prefix: str) -> bool:
    """Whether a folder can have keys that begin with the prefix."""
    return folder.startswith(prefix) or prefix.startswith(folder)


class ZooKeeperKeys:
    """The keys below one root."""

    def __init__(self, layout: Layout, request_timeout_s: float) -> None:
        self._layout = layout
        self._timeout_s = request_timeout_s

    async def get(
        self, link: ZooKeeperConnection, key: str, until: Until, *, stale: bool
    ) -> Record | None:
        if not stale:
            await link.sync(until)
        node = await nodes.get(link, self._layout.key(key).path, until)
        return None if node is None else record_of(key, node)

    async def pages(
        self, link: ZooKeeperConnection, prefix: str, page: int, *, keys_only: bool
    ) -> AsyncIterator[RecordPage]:
        until = Until.after(self._timeout_s)
        await link.sync(until)
        revision = Revision(link.last_zxid)
        keys = await self._keys(link, prefix, until)
        for first in range(0, max(len(keys), 1), page):
            until = Until.after(self._timeout_s)
            part = keys[first : first + page]
            read = await asyncio.gather(
                *(self._node(link, key, until, keys_only=keys_only) for key in part)
            )
            yield RecordPage(
                revision,
                tuple(
                    record_of(key, node)
                    for key, node in zip(part, read, strict=True)
                    if node is not None
                ),
            )

    async def _keys(self, link: ZooKeeperConnection, prefix: str, until: Until) -> list[str]:
        names, _ = await nodes.children(link, self._layout.keys, until)
        folders = [folder for name in names if may_hold(folder := decoded(name), prefix)]
        listed = await asyncio.gather(
            *(nodes.children(link, self._layout.folder(folder), until) for folder in folders)
        )
        keys = [
            key
            for folder, (inside, _) in zip(folders, listed, strict=True)
            for name in inside
            if (key := folder + decoded(name)).startswith(prefix)
        ]
        return sorted(keys, key=str.encode)

    async def _node(
        self, link: ZooKeeperConnection, key: str, until: Until, *, keys_only: bool
    ) -> Node | None:
        path = self._layout.key(key).path
        if not keys_only:
            return await nodes.get(link, path, until)
        stat = await nodes.stat(link, path, until)
        return None if stat is None else Node(b"", stat)
