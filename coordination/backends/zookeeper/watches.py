"""Watches: one mirror for each scope, which reads again when ZooKeeper reports a change.

Rule: ZooKeeper's own watches say that something changed. After a gap, in which they were not armed,
the mirror reads everything anew. A reading for a new watch stands behind a `sync`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import kazoo.exceptions as zk

from coordination.backend import KeyScope, PrefixScope, WatchScope
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.node_cache import NodeCache
from coordination.backends.zookeeper.paths import Layout
from coordination.backends.zookeeper.views import KeyView, PrefixView, QueueView, ZooKeeperView
from coordination.errors import Unavailable
from coordination.mirrors import Mirror, MirrorReading, Mirrors, MirrorWatch, S
from coordination.types import Revision
from coordination.until import Until

_PAUSE_S: Final = 0.1
_RELEASE_S: Final = 0.5
Links = Callable[[Until], Awaitable[ZooKeeperConnection]]


class ZooKeeperMirror(Mirror[S]):
    """The state of one scope, read through a cache of nodes that ZooKeeper watches."""

    def __init__(self, view: ZooKeeperView[S], links: Links, timeout_s: float) -> None:
        super().__init__(view, every_s=None, pause_s=_PAUSE_S)
        self._source = view
        self._links = links
        self._timeout_s = timeout_s
        self._link: ZooKeeperConnection | None = None
        self._cache: NodeCache | None = None

    def reads_from(self, link: ZooKeeperConnection) -> bool:
        return self._link is link

    async def _read(self, *, anew: bool) -> MirrorReading[S]:
        until = Until.after(self._timeout_s)
        # When the reading session was lost, this is another connection.
        link = await self._links(until)
        if link is not self._link or self._cache is None:
            self._link, self._cache = link, NodeCache(link, self.wake)
        try:
            if anew:
                await link.sync(until)
            else:
                # A transaction sends one event for each node. All events of what this reading finds
                # come before this reply. Otherwise the watch would report a part of a transaction
                # under the revision of the whole.
                await nodes.stat(link, "/", until)
            return MirrorReading(await self._source.read(link, self._cache, until))
        except zk.ZookeeperError as error:
            raise Unavailable(f"ZooKeeper can't read it: {error!r}") from error

    async def _release(self) -> None:
        if self._cache is not None:
            await self._cache.release(Until.after(_RELEASE_S))


class ZooKeeperWatches:
    """All watches of one backend."""

    def __init__(self, layout: Layout, links: Links, timeout_s: float) -> None:
        self._layout = layout
        self._links = links
        self._timeout_s = timeout_s
        self._mirrors = Mirrors(self._mirror, progress_every=1)

    def __bool__(self) -> bool:
        return bool(self._mirrors)

    def watch(self, scope: WatchScope, after: Revision | None) -> MirrorWatch[Any]:
        return self._mirrors.watch(scope, after)

    def note_calm(self, link: ZooKeeperConnection, zxid: int) -> None:
        """ZooKeeper has sent all events up to this zxid on this connection."""
        for mirror in self._mirrors:
            if mirror.reads_from(link):
                mirror.note_calm(Revision(zxid))

    async def aclose(self) -> None:
        await self._mirrors.aclose()

    def _mirror(self, scope: WatchScope) -> ZooKeeperMirror[Any]:
        return ZooKeeperMirror(self._view(scope), self._links, self._timeout_s)

    def _view(self, scope: WatchScope) -> ZooKeeperView[Any]:
        if isinstance(scope, KeyScope):
            return KeyView(self._layout, scope.key)
        if isinstance(scope, PrefixScope):
            return PrefixView(self._layout, scope.prefix)
        return QueueView(self._layout, scope)
