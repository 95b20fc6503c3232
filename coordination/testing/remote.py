"""A client on an event loop of its own, in a thread of its own, that a tester can freeze.

Rule: to freeze is to block the client's event loop, as a long garbage collection, a suspended
machine or SIGSTOP would. Nothing in the client runs meanwhile: no heartbeat, no timer, no callback.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeVar

from coordination.coordinator import Coordinator

R = TypeVar("R")


class RemoteClient:
    """Runs one coordinator on a thread. Its methods are called on the harness' event loop."""

    def __init__(self, opening: AbstractAsyncContextManager[Coordinator]) -> None:
        self._opening = opening
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="frozen-client")
        self._thawed = threading.Event()
        self._thawed.set()
        self._coordinator: Coordinator | None = None

    async def open(self) -> None:
        """Start the thread and open the client on it."""
        self._thread.start()

        async def enter() -> Coordinator:
            return await self._opening.__aenter__()

        self._coordinator = await self._on_loop(enter())

    async def call(self, function: Callable[[Coordinator], Awaitable[R]]) -> R:
        """Run `function` with the coordinator on the client's event loop and return its result."""
        coordinator = self._coordinator
        assert coordinator is not None, "open the client first"

        async def run() -> R:
            return await function(coordinator)

        return await self._on_loop(run())

    async def freeze(self) -> None:
        """Return when the client's event loop stands still."""
        stands = threading.Event()
        self._thawed.clear()

        def block() -> None:
            stands.set()
            self._thawed.wait()

        self._loop.call_soon_threadsafe(block)
        await asyncio.to_thread(stands.wait)

    def thaw(self) -> None:
        """Let the event loop go on."""
        self._thawed.set()

    async def aclose(self) -> None:
        """Close the client, also a frozen one, and end its thread."""
        self.thaw()
        if not self._thread.is_alive():
            return

        async def leave() -> None:
            if self._coordinator is not None:
                await self._opening.__aexit__(None, None, None)

        with suppress(Exception):
            await self._on_loop(leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _on_loop(self, work: "Awaitable[R]") -> R:
        async def run() -> R:
            return await work

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._loop))
