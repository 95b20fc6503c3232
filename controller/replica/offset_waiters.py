"""Calls back when the applied image has reached an offset.

Waiters are released in the order of their offsets, each exactly once: with True when the offset is
reached, with False when the wait is over.
"""

import heapq
from collections.abc import Callable

from runtime.clock import Clock, Timer

OnReached = Callable[[bool], None]


class _Waiter:
    __slots__ = ("on_reached", "timer")

    def __init__(self, on_reached: OnReached) -> None:
        self.on_reached: OnReached | None = on_reached
        self.timer: Timer | None = None

    def release(self, reached: bool) -> None:
        if self.timer is not None:
            self.timer.cancel()
        on_reached, self.on_reached = self.on_reached, None
        if on_reached is not None:
            on_reached(reached)


class OffsetWaiters:
    """Holds the waiters, in a heap by offset."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, _Waiter]] = []
        self._number = 0
        self.offset = 0
        """Everything below this offset is applied."""

    def wait(self, offset: int, wait_s: float, on_reached: OnReached) -> None:
        """Call back True at `offset` (at once if it is reached), False after `wait_s` seconds."""
        if offset <= self.offset:
            on_reached(True)
            return
        waiter = _Waiter(on_reached)
        waiter.timer = self._clock.call_later(wait_s, lambda: waiter.release(False))
        self._number += 1
        heapq.heappush(self._heap, (offset, self._number, waiter))

    def reached(self, offset: int) -> None:
        """Everything below `offset` is applied: release its waiters."""
        self.offset = max(self.offset, offset)
        while self._heap and self._heap[0][0] <= self.offset:
            heapq.heappop(self._heap)[2].release(True)
