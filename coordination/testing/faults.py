"""Faults between the client core and a backend that has no network: what a proxy is to a TCP store.

Rule: `FaultyBackend` adds faults and nothing else. Each call waits while its link is cut, fails
while the link is refused, and loses its reply while the link loses replies; in that case the inner
call was made.

The client may run on another event loop than the tester. So a link wakes its waiters on their own
loops.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Self, TypeVar

from coordination.backend import (
    Backend,
    Claim,
    Commit,
    Committed,
    OpenedSession,
    RecordPage,
    Resource,
    ResourceEntries,
    ResourceEntry,
    WatchBatch,
    WatchScope,
)
from coordination.errors import OutcomeUnknown, Unavailable
from coordination.testing.proxy import Applied, LinkState
from coordination.types import Capabilities, Record, Revision, SessionId, Token

R = TypeVar("R")


class FaultyLink:
    """A link without connections. `put` may be called on any thread."""

    def __init__(self) -> None:
        self._state = LinkState.OPEN
        self._applied: Applied | None = None
        self._lock = threading.Lock()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def put(self, state: LinkState) -> None:
        with self._lock:
            self._state = state
            self._applied = None
            waiters, self._waiters = self._waiters, []
        for loop, waiter in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, waiter)

    @property
    def state(self) -> LinkState:
        return self._state

    def connections(self) -> int:
        return 0

    async def aclose(self) -> None:
        self.put(LinkState.REFUSED)

    def lose_replies_once(self, applied: Applied) -> None:
        self._applied = applied

    async def reply(self) -> LinkState:
        """Return the link's state for a reply, once it isn't cut."""
        asked = self._applied
        if asked is not None and await asked():
            if self._applied is asked:
                self.put(LinkState.LOSING_REPLIES)
            return LinkState.LOSING_REPLIES
        return await self.uncut()

    async def uncut(self) -> LinkState:
        """Return the link's state once it isn't cut."""
        while self.state is LinkState.CUT:
            await self.changed_from(LinkState.CUT)
        return self.state

    async def changed_from(self, state: LinkState) -> None:
        """Return once the link is in another state."""
        while True:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            with self._lock:
                if self.state is not state:
                    return
                self._waiters.append((loop, waiter))
            await waiter


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class FaultyBackend:
    """`Backend` over another one, behind a link."""

    def __init__(self, inner: Backend, link: FaultyLink, timeout_s: float) -> None:
        self._inner = inner
        self._link = link
        self._timeout_s = timeout_s

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    async def open(self) -> None:
        await self._carry(self._inner.open, change=False)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def open_session(self, ttl_s: float) -> OpenedSession:
        return await self._carry(lambda: self._inner.open_session(ttl_s), change=True)

    async def renew(self, session: SessionId) -> float:
        return await self._carry(lambda: self._inner.renew(session), change=False)

    async def end_session(self, session: SessionId) -> None:
        await self._carry(lambda: self._inner.end_session(session), change=True)

    async def enter(self, claim: Claim) -> ResourceEntry:
        return await self._carry(lambda: self._inner.enter(claim), change=True)

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        return await self._carry(
            lambda: self._inner.change(resource, id_, session, data), change=True
        )

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        return await self._carry(
            lambda: self._inner.leave(resource, id_, session, token), change=True
        )

    async def break_grant(self, resource: Resource) -> bool:
        return await self._carry(lambda: self._inner.break_grant(resource), change=True)

    async def entries(self, resource: Resource) -> ResourceEntries:
        return await self._carry(lambda: self._inner.entries(resource), change=False)

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        return await self._carry(lambda: self._inner.get(key, stale=stale), change=False)

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        pages = self._inner.pages(prefix, keys_only=keys_only, page=page)
        async for one in pages:
            yield await self._carry(partial(_done, one), change=False)

    async def commit(self, commit: Commit) -> Committed:
        return await self._carry(lambda: self._inner.commit(commit), change=True)

    def watch(self, scope: WatchScope, after: Revision | None) -> "FaultyWatch":
        return FaultyWatch(self._inner, self._link, scope, after)

    async def _carry(self, call: Callable[[], Awaitable[R]], *, change: bool) -> R:
        """Make a call over the link. `change`: the outcome of a lost reply is unknown."""
        inner = asyncio.ensure_future(_when_open(self._link, call))
        try:
            async with asyncio.timeout(self._timeout_s):
                if await self._link.uncut() is LinkState.REFUSED:
                    raise Unavailable("the tester refuses this client's connections")
                await asyncio.wait([inner])
                if await self._link.reply() is LinkState.LOSING_REPLIES:
                    await self._link.changed_from(LinkState.LOSING_REPLIES)
                    raise _lost(change=change)
        except TimeoutError:
            if self._link.state is LinkState.OPEN:
                # The event loop was busy; without a fault the inner backend answers by itself.
                return await inner
            if inner.done():
                raise _lost(change=change) from None
            raise Unavailable("the tester cut this client off") from None
        finally:
            if not inner.done():
                inner.cancel()
            await asyncio.gather(inner, return_exceptions=True)
        return inner.result()


async def _when_open(link: FaultyLink, call: Callable[[], Awaitable[R]]) -> R:
    """Make the call once a cut is healed: a request that is held back hasn't arrived."""
    while link.state in (LinkState.CUT, LinkState.REFUSED):
        await link.changed_from(link.state)
    return await call()


def _lost(*, change: bool) -> OutcomeUnknown | Unavailable:
    text = "the tester dropped the reply"
    return OutcomeUnknown(text) if change else Unavailable(text)


async def _done(value: R) -> R:
    return value


class FaultyWatch:
    """`BackendWatch` whose batches wait while the link is not open."""

    def __init__(
        self, inner: Backend, link: FaultyLink, scope: WatchScope, after: Revision | None
    ) -> None:
        self._inner = inner.watch(scope, after)
        self._link = link
        self._held: WatchBatch | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        if self._held is None:
            self._held = await self._inner.__anext__()
        while (state := self._link.state) is not LinkState.OPEN:
            await self._link.changed_from(state)
        batch, self._held = self._held, None
        return batch

    async def aclose(self) -> None:
        await self._inner.aclose()
