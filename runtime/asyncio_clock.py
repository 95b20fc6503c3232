"""The real clock: an asyncio loop's time and timers, and the system's wall clock.

Rule: there is one per process, created on its loop. Callbacks run on that loop, in order, one at a
time, so no core needs a lock.
"""

import asyncio
import time
from collections.abc import Callable


class AsyncioClock:
    """`runtime.clock.Clock` over an event loop, the running one if none is given."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop if loop is not None else asyncio.get_running_loop()

    def monotonic(self) -> float:
        # Not the loop's own clock: that one stands still while the machine is suspended, and a
        # broker would believe in its lease after it woke up.
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.Handle:
        if delay_s <= 0:
            return self._loop.call_soon(callback)
        return self._loop.call_later(delay_s, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """As `call_soon`, from any thread.

        Raises RuntimeError when the loop is closed: nobody is left to be called.
        """
        self._loop.call_soon_threadsafe(callback)
