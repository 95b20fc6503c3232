"""The real clock: an asyncio loop's time and timers, and the system's wall clock.

Rule: a process has one clock, made on its loop: a controller that is a broker's agent too shares
it with the agent (`of_running_loop`). So the long work of both takes turns (`runtime.loop.slices`).
Callbacks run on that loop, in order, one at a time, so no core needs a lock.
"""

import asyncio
import time
from collections.abc import Callable
from weakref import WeakValueDictionary


class AsyncioClock:
    """`runtime.clock.Clock` over an event loop: the given one, or the running one."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop if loop is not None else asyncio.get_running_loop()

    def monotonic(self) -> float:
        # Not the loop's own clock, which stops while the machine is suspended. After waking up, a
        # broker would still consider its lease valid.
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

        Raises RuntimeError if the loop is closed.
        """
        self._loop.call_soon_threadsafe(callback)


_OF_LOOPS: "WeakValueDictionary[asyncio.AbstractEventLoop, AsyncioClock]" = WeakValueDictionary()


def of_running_loop() -> AsyncioClock:
    """Return the clock of the running loop. It is the same object for all who ask."""
    loop = asyncio.get_running_loop()
    clock = _OF_LOOPS.get(loop)
    if clock is None:
        clock = _OF_LOOPS[loop] = AsyncioClock(loop)
    return clock
