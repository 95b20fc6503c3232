"""Tells how late the loop would call a timer that is due every 10 ms.

Rule: it always measures, and the figures are among the process's metrics. One loop owns all state,
so a long computation delays everything else. No such timer exists: it would wake an idle process a
hundred times a second. The loop's selector says when it begins to wait, for how long, and when it
is back. So the meter knows when each tick was due, and when the loop would have called it. It
misses the part of a stall before a tick was due, up to 10 ms.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable

from runtime.metrics import Registry

TICK_S = 0.01
BOUNDS_S = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05),
    *(0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0),
)
"""Upper bounds of the histogram, in seconds."""


class StallMeter:
    """Measures one loop; `waits` and `woke` are called by the loop's selector."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """`now` returns monotonic seconds."""
        self._now = now
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0
        self.worst_s = 0.0
        self._due = now() + TICK_S
        self._asleep_until = float("inf")

    def waits(self, timeout_s: float) -> None:
        """The loop begins to wait for its sockets; below 0: until one is ready."""
        now = self._now()
        if now >= self._due:
            self._called(now)
        self._asleep_until = now + timeout_s if timeout_s >= 0 else float("inf")

    def woke(self) -> None:
        """The loop has waited."""
        now = self._now()
        if now < self._due:
            return
        # Up to here the loop only waited, so it would have called each tick when it was due.
        in_time = math.floor((min(now, self._asleep_until) - self._due) / TICK_S) + 1
        if in_time > 0:
            self.counts[0] += in_time
            self._due += in_time * TICK_S
        if now >= self._due:
            self._called(now)

    def _called(self, now: float) -> None:
        """A tick that is due is called now; the next one is due 10 ms later."""
        late_s = now - self._due
        self.counts[bisect_left(BOUNDS_S, late_s)] += 1
        self.total_s += late_s
        self.worst_s = max(self.worst_s, late_s)
        self._due = now + TICK_S

    def show(self, registry: Registry) -> None:
        """Declare the figures as metrics."""
        registry.read_histogram(
            "logberg_loop_late_seconds",
            "Lateness of a timer that is due every 10 ms",
            BOUNDS_S,
            lambda: (self.counts, self.total_s),
        )
        registry.read_gauge(
            "logberg_loop_late_worst_seconds",
            "The worst lateness of that timer since the start",
            lambda: self.worst_s,
        )
