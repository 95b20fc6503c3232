"""Watches: the state first, then what changes; never a silent gap.

Rule: an event's revision is where a watch may resume (`after=`). A watch goes on after a lost
connection by itself. What the store has forgotten meanwhile comes as an event of kind `resync`,
which holds the fresh state. What the program takes too slowly is coalesced, and says so.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, TypeVar

from structlog.typing import FilteringBoundLogger

from coordination.backend import Backend, BackendWatch, WatchBatch, WatchScope
from coordination.buffering import BatchBuffer
from coordination.errors import Compacted, CoordinationError, SessionClosed, Unavailable
from coordination.interpreters import Interpreter
from coordination.types import Revision

E = TypeVar("E")
BUFFER = 1024
"""How many changes wait for a slow program before they are coalesced."""


class Watch(Generic[E]):
    """An asynchronous iterator of events; leave its `async with` to free the server's side."""

    def __init__(
        self,
        begin: Callable[[Revision | None], BackendWatch],
        interpreter: Interpreter[E],
        *,
        after: Revision | None,
        strict: bool,
        buffer: int,
        first_wait_s: float,
        opened: Callable[["Watch[E]"], None],
        closed: Callable[["Watch[E]"], None],
    ) -> None:
        self.revision = Revision(0) if after is None else after
        """Of the last event delivered, or a later one up to which nothing happened."""
        self._begin = begin
        self._interpreter = interpreter
        self._after = after
        self._strict = strict
        self._first_wait_s = first_wait_s
        self._opened = opened
        self._closed = closed
        self._buffer = BatchBuffer(buffer)
        self._ready: deque[E] = deque()
        self._source: BackendWatch | None = None
        self._pump: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._fresh = False
        self._error: BaseException | None = None
        self._over = False

    async def __aenter__(self) -> "Watch[E]":
        """Begin the watch; what changes from here on is seen, unless the store is out of reach."""
        self._start()
        if self._after is None:
            first = asyncio.create_task(self._news.wait())
            try:
                await asyncio.wait({first}, timeout=self._first_wait_s)
            except asyncio.CancelledError:
                await self.aclose()
                raise
            finally:
                first.cancel()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> "Watch[E]":
        return self

    async def __anext__(self) -> E:
        """Return the next event.

        Raises Compacted if the watch is strict and missed changes; go on with `resync` then.
        Raises AuthFailed; SessionClosed when the client closed meanwhile.
        """
        self._start()
        while not self._ready:
            batch = self._buffer.take()
            if batch is not None:
                self._interpret(batch)
                continue
            self._news.clear()
            if self._error is not None:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            await self._news.wait()
        event = self._ready.popleft()
        self.revision = max(self.revision, Revision(getattr(event, "revision", 0)))
        return event

    async def resync(self) -> E:
        """Read the whole state afresh, and return the next event, which is of kind `resync`."""
        await self._stop()
        self._buffer.clear()
        self._ready.clear()
        self._error, self._after, self._fresh = None, None, True
        return await self.__anext__()

    async def aclose(self) -> None:
        """End the watch; a second call does nothing."""
        self._over = True
        await self._stop()
        self._closed(self)
        self._news.set()

    async def fail(self, error: CoordinationError) -> None:
        """End the watch; whoever waits for an event gets this error."""
        self._error = error
        await self.aclose()

    def _interpret(self, batch: WatchBatch) -> None:
        if batch.kind == "resync" and self._strict and not self._fresh:
            raise Compacted("the store has forgotten changes that this watch has not delivered")
        if self._fresh and batch.kind == "snapshot":
            batch = replace(batch, kind="resync")
        self._fresh = False
        self._ready.extend(self._interpreter.events(batch))
        if not self._ready:
            self.revision = max(self.revision, batch.revision)

    def _start(self) -> None:
        if self._pump is None and not self._over and self._error is None:
            self._source = self._begin(self._after)
            self._pump = asyncio.create_task(self._read(self._source), name="watch")
            self._opened(self)

    async def _stop(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def _read(self, source: BackendWatch) -> None:
        try:
            async for batch in source:
                self._buffer.add(batch)
                self._news.set()
            self._error = Unavailable("the watch ended")
        except CoordinationError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - the program that iterates gets it
            self._error = error
        finally:
            self._news.set()
            await source.aclose()


class Watches:
    """The open watches of one client."""

    def __init__(self, backend: Backend, first_wait_s: float, log: FilteringBoundLogger) -> None:
        self._backend = backend
        self._first_wait_s = first_wait_s
        self._log = log
        self._open: set[Watch[Any]] = set()
        self._closed = False

    def open(
        self,
        scope: WatchScope,
        interpreter: Interpreter[E],
        *,
        after: Revision | None = None,
        strict: bool = False,
        buffer: int = BUFFER,
    ) -> Watch[E]:
        """Make a watch; it begins with its `async with` or its first event."""
        if self._closed:
            raise SessionClosed("the client is closed")
        return Watch(
            lambda since: self._backend.watch(scope, since),
            interpreter,
            after=after,
            strict=strict,
            buffer=buffer,
            first_wait_s=self._first_wait_s,
            opened=self._open.add,
            closed=self._open.discard,
        )

    async def aclose(self) -> None:
        """End all of them; who waits for an event gets SessionClosed."""
        self._closed = True
        for watch in list(self._open):
            await watch.fail(SessionClosed("the client was closed"))
