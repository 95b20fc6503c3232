"""A clock that stands still until its owner moves it on.

Rule: callbacks run in the order of their times, and at equal times in the order of the calls.
Nothing is ever late. All times are whole ms, so a run is the same everywhere.
"""

import heapq
from collections import deque
from collections.abc import Callable
from math import ceil

from runtime.clock import Timer


class SteppedTimer:
    """A callback that waits for its time."""

    __slots__ = ("callback", "due_ms")

    def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Don't call the callback."""
        self.callback = None


class SteppedClock:
    """One time for everybody who is rehearsed."""

    def __init__(self, start_ms: int) -> None:
        """`start_ms` since 1970-01-01 UTC."""
        self._start_ms = start_ms
        self.now_ms = start_ms
        self._timers: list[tuple[int, int, SteppedTimer]] = []
        self._made = 0
        self._soon: deque[Callable[[], None]] = deque()

    def monotonic(self) -> float:
        return (self.now_ms - self._start_ms) / 1000

    def wall_ms(self) -> int:
        return self.now_ms

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return self.call_in(max(0, ceil(delay_s * 1000)), callback)

    def call_in(self, delay_ms: int, callback: Callable[[], None]) -> SteppedTimer:
        """Call back `delay_ms` ms from now."""
        timer = SteppedTimer(self.now_ms + delay_ms, callback)
        self._made += 1
        heapq.heappush(self._timers, (timer.due_ms, self._made, timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def settle(self) -> None:
        """Run everything that needs no time."""
        soon = self._soon
        while soon:
            soon.popleft()()

    def next_ms(self) -> int | None:
        """Return when the next callback is due; None: none is."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def go_on(self) -> None:
        """Move to the next callback, and run it. There must be one (`next_ms`)."""
        due_ms, _, timer = heapq.heappop(self._timers)
        self.now_ms = max(self.now_ms, due_ms)
        callback, timer.callback = timer.callback, None
        assert callback is not None
        callback()
        self.settle()
