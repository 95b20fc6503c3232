"""Watches: one mirror for each scope, which all watches of that scope share.

Rule: a mirror reads again when ZooKeeper says that something changed, and after every gap. Each
watch compares the mirror's state with the one that it reported last, so a slow watch skips states
and says so. A new watch waits for a reading that began after it, behind a `sync`: its snapshot
holds all that was acknowledged.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, Generic

from coordination.backend import KeyScope, PrefixScope, WatchBatch, WatchScope
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.node_cache import NodeCache
from coordination.backends.zookeeper.paths import Layout
from coordination.backends.zookeeper.views import KeyView, PrefixView, QueueView, S, ZooKeeperView
from coordination.errors import AuthFailed, CoordinationError
from coordination.types import Revision
from coordination.until import Until

_AGAIN_S: Final = 0.1
_RELEASE_S: Final = 0.5
Links = Callable[[Until], Awaitable[ZooKeeperConnection]]


class ZooKeeperMirror(Generic[S]):
    """The state of one scope, kept up to date."""

    def __init__(self, view: ZooKeeperView[S], links: Links, timeout_s: float) -> None:
        self.view = view
        self._links = links
        self._timeout_s = timeout_s
        self._dirty = asyncio.Event()
        self._asked = 0
        self._served = 0
        self._link: ZooKeeperConnection | None = None
        self._cache: NodeCache | None = None
        self._task = asyncio.ensure_future(self._run())
        self._bells: set[asyncio.Event] = set()
        self.state: S | None = None
        self.failure: CoordinationError | None = None
        self.calm = Revision(0)
        """Nothing changed after `state` up to here."""
        self.pulses = 0
        """So often was it found calm."""

    @property
    def watched(self) -> bool:
        return bool(self._bells)

    def subscribe(self) -> asyncio.Event:
        """An event that is set when there may be news."""
        bell = asyncio.Event()
        self._bells.add(bell)
        return bell

    def unsubscribe(self, bell: asyncio.Event) -> None:
        self._bells.discard(bell)

    def ask(self) -> int:
        """Ask for a reading that begins after now; `has_served` says when it is there."""
        self._asked += 1
        self._dirty.set()
        return self._asked

    def has_served(self, number: int) -> bool:
        return self._served >= number

    def note_calm(self, link: ZooKeeperConnection, zxid: int) -> None:
        """Everything up to this zxid was reported on this connection."""
        if link is self._link and not self._dirty.is_set() and self._served == self._asked:
            self.calm = Revision(max(self.calm, zxid))
            self.pulses += 1
            self._ring()

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._cache is not None:
            await self._cache.release(Until.after(_RELEASE_S))

    async def _run(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            asked = self._asked
            try:
                await self._refresh(asked)
            except AuthFailed as error:
                self.failure = error
            except CoordinationError:
                # The store can't be reached, or the session was lost: the next try takes another
                # one.
                self._dirty.set()
                await asyncio.sleep(_AGAIN_S)
                continue
            self._served = asked
            self._ring()

    async def _refresh(self, asked: int) -> None:
        until = Until.after(self._timeout_s)
        link = await self._links(until)
        if link is not self._link or self._cache is None:
            self._link, self._cache = link, NodeCache(link, self._dirty.set)
        if asked > self._served:
            await link.sync(until)
        else:
            # Behind this reply all events have come that belong to what is read: a transaction has
            # one for each node, and a part of it must not be told under the revision of the whole.
            await nodes.stat(link, "/", until)
        self.state = await self.view.read(link, self._cache, until)

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()


class ZooKeeperWatch(Generic[S]):
    """One watch: `coordination.backend.BackendWatch`."""

    def __init__(
        self,
        mirror: ZooKeeperMirror[S],
        after: Revision | None,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        self._mirror = mirror
        self._after = after
        self._on_close = closed
        self._bell = mirror.subscribe()
        self._asked = mirror.ask()
        self._reported: S | None = None
        self._revision = Revision(0) if after is None else after
        self._open = True
        self._pulses = mirror.pulses

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        while self._open:
            await self._bell.wait()
            self._bell.clear()
            if self._mirror.failure is not None:
                raise self._mirror.failure
            batch = self._next() if self._open else None
            if batch is not None:
                # The revision never goes back: a removal may tell only its folder's.
                self._revision = Revision(max(self._revision, batch.revision))
                return replace(batch, revision=self._revision)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self._mirror.unsubscribe(self._bell)
            self._bell.set()
            await self._on_close()

    def _next(self) -> WatchBatch | None:
        state = self._mirror.state
        if state is None or not self._mirror.has_served(self._asked):
            return None
        old, self._reported = self._reported, state
        view = self._mirror.view
        if old is None:
            batch = view.whole(state) if self._after is None else view.since(self._after, state)
        else:
            batch = view.difference(old, state)
        pulses, self._pulses = self._pulses, self._mirror.pulses
        if batch is None and self._mirror.pulses > pulses:
            return WatchBatch("progress", self._mirror.calm)
        return batch


class ZooKeeperWatches:
    """All watches of one backend."""

    def __init__(self, layout: Layout, links: Links, timeout_s: float) -> None:
        self._layout = layout
        self._links = links
        self._timeout_s = timeout_s
        self._mirrors: dict[WatchScope, ZooKeeperMirror[Any]] = {}

    def watch(self, scope: WatchScope, after: Revision | None) -> ZooKeeperWatch[Any]:
        mirror = self._mirrors.get(scope)
        if mirror is None:
            mirror = ZooKeeperMirror(self._view(scope), self._links, self._timeout_s)
            self._mirrors[scope] = mirror

        async def closed() -> None:
            if not mirror.watched and self._mirrors.get(scope) is mirror:
                del self._mirrors[scope]
                await mirror.aclose()

        return ZooKeeperWatch(mirror, after, closed)

    def __bool__(self) -> bool:
        return bool(self._mirrors)

    def note_calm(self, link: ZooKeeperConnection, zxid: int) -> None:
        for mirror in list(self._mirrors.values()):
            mirror.note_calm(link, zxid)

    async def aclose(self) -> None:
        mirrors, self._mirrors = list(self._mirrors.values()), {}
        for mirror in mirrors:
            await mirror.aclose()

    def _view(self, scope: WatchScope) -> ZooKeeperView[Any]:
        if isinstance(scope, KeyScope):
            return KeyView(self._layout, scope.key)
        if isinstance(scope, PrefixScope):
            return PrefixView(self._layout, scope.prefix)
        return QueueView(self._layout, scope)
