"""A backend in a thread of its own, for `connect(…, heartbeat_thread=True)`.

Rule: the whole backend lives on the thread's loop, so that heartbeats need nothing of the program's
loop, which may be busy for longer than the ttl. The program's calls cross over to the thread and
back. A thread that holds the interpreter's lock stops the heartbeats too; the session then ends at
its deadline as ever.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from coordination.backend import (
    Backend,
    BackendFactory,
    BackendSettings,
    BackendWatch,
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
from coordination.errors import Unavailable
from coordination.loop_thread import LoopThread
from coordination.types import Capabilities, Record, Revision, SessionId, Token
from runtime.asyncio_clock import of_running_loop
from runtime.clock import Clock

T = TypeVar("T")
THREAD = "coordination heartbeats"


class ThreadedBackend:
    """`coordination.backend.Backend` through another thread. Make it with `start`."""

    def __init__(self, thread: LoopThread, real: Backend, clock: Clock) -> None:
        """`real` was made on the thread's loop; `clock` is that loop's."""
        self._thread = thread
        self._real = real
        self._clock = clock
        self._closed = False

    @classmethod
    def start(cls, factory: BackendFactory, settings: BackendSettings) -> "ThreadedBackend":
        """Make a backend in a new thread. Raises what the factory raises."""
        thread = LoopThread(THREAD)

        def make() -> ThreadedBackend:
            clock = of_running_loop()
            return cls(thread, factory(replace(settings, clock=clock)), clock)

        try:
            return thread.call(make)
        except BaseException:
            thread.close()
            raise

    def begin(
        self, work: Callable[[Backend, Clock], Coroutine[Any, Any, None]]
    ) -> "asyncio.Future[None]":
        """Run work on the thread, with its own backend and clock; cancelling the future ends it."""
        return asyncio.wrap_future(self._thread.submit(work(self._real, self._clock)))

    @property
    def capabilities(self) -> Capabilities:
        return self._real.capabilities

    async def open(self) -> None:
        await self.there(self._real.open())

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                await self.there(self._real.aclose())
            finally:
                await asyncio.to_thread(self._thread.close)

    async def open_session(self, ttl_s: float) -> OpenedSession:
        return await self.there(self._real.open_session(ttl_s))

    async def renew(self, session: SessionId) -> float:
        return await self.there(self._real.renew(session))

    async def end_session(self, session: SessionId) -> None:
        await self.there(self._real.end_session(session))

    async def enter(self, claim: Claim) -> ResourceEntry:
        return await self.there(self._real.enter(claim))

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        return await self.there(self._real.change(resource, id_, session, data))

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        return await self.there(self._real.leave(resource, id_, session, token))

    async def break_grant(self, resource: Resource) -> bool:
        return await self.there(self._real.break_grant(resource))

    async def entries(self, resource: Resource) -> ResourceEntries:
        return await self.there(self._real.entries(resource))

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        return await self.there(self._real.get(key, stale=stale))

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        pages = self._real.pages(prefix, keys_only=keys_only, page=page)
        try:
            while (part := await self.there(next_of(pages))) is not None:
                yield part
        finally:
            if isinstance(pages, AsyncGenerator):
                with suppress(Unavailable):
                    await self.there(end_of(pages))

    async def commit(self, commit: Commit) -> Committed:
        return await self.there(self._real.commit(commit))

    def watch(self, scope: WatchScope, after: Revision | None) -> "ThreadedWatch":
        return ThreadedWatch(self, lambda: self._real.watch(scope, after))

    async def there(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the thread's loop, and wait for it on this one."""
        try:
            running = self._thread.submit(work)
        except RuntimeError:
            raise Unavailable("the client is closed") from None
        return await asyncio.wrap_future(running)


class ThreadedWatch:
    """`coordination.backend.BackendWatch` through another thread."""

    def __init__(self, backend: ThreadedBackend, begin: Callable[[], BackendWatch]) -> None:
        """`begin` is called on the thread's loop."""
        self._backend = backend
        self._begin = begin
        self._watch: BackendWatch | None = None

    def __aiter__(self) -> "ThreadedWatch":
        return self

    async def __anext__(self) -> WatchBatch:
        batch = await self._backend.there(self._next())
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def aclose(self) -> None:
        with suppress(Unavailable):
            await self._backend.there(self._close())

    async def _next(self) -> WatchBatch | None:
        if self._watch is None:
            self._watch = self._begin()
        return await next_of(self._watch)

    async def _close(self) -> None:
        if self._watch is not None:
            await self._watch.aclose()


async def next_of(items: AsyncIterator[T]) -> T | None:
    """Return the next item; None: there is none."""
    try:
        return await anext(items)
    except StopAsyncIteration:
        return None


async def end_of(items: AsyncGenerator[Any, None]) -> None:
    """Close a generator before its end."""
    await items.aclose()
