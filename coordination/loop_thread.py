"""An event loop on a thread of its own, for programs that don't use asyncio.

Rule: the thread is a daemon, so a program that forgets `close` still ends; the store then ends its
session by itself. A forked child must make its own thread: a fork copies no running loop.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads, which wait for the results."""

    def __init__(self, name: str = "coordination") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result, or raise its exception.

        When the waiting thread is interrupted (Ctrl-C), the coroutine is cancelled. Raises
        RuntimeError on the loop's own thread, where waiting would never end, and after `close`.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the loop's thread can't wait for itself")
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine behind those before it. Raises RuntimeError after `close`."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the loop's thread is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], T]) -> T:
        """Call a plain function on the loop's thread."""

        async def called() -> T:
            return function()

        return self.run(called())

    def close(self) -> None:
        """End the loop and its thread; what still runs is cancelled. A second call does nothing."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
