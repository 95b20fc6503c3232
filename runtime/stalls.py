"""How long the loop makes others wait.

Rule: measured, always, and shown. One loop owns all state, so whatever computes for long stalls
everything: a timer that is due every 10 ms notes how late it is called. A stall shorter than the
time to the next tick is seen only in part; the long ones, which matter, are seen nearly whole.
"""

from typing import NamedTuple

from runtime.clock import Clock, Timer
from runtime.quantiles import Durations

TICK_S = 0.01


class Stalls(NamedTuple):
    """Seconds that a due timer had to wait, since the last reset."""

    ticks: int
    p50_s: float
    p999_s: float
    worst_s: float


class StallMeter:
    """Measures the loop of a clock from `start` to `stop`."""

    def __init__(self, clock: Clock, tick_s: float = TICK_S) -> None:
        self._clock = clock
        self._tick_s = tick_s
        self._durations = Durations()
        self._timer: Timer | None = None
        self._due = 0.0

    def start(self) -> None:
        """Begin to measure."""
        assert self._timer is None, "the meter runs already"
        self._wait()

    def stop(self) -> None:
        """Measure no more; what was measured stays."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stalls(self) -> Stalls:
        """Return what was measured since the start or the last reset."""
        seen = self._durations
        return Stalls(seen.count, seen.quantile_s(0.5), seen.quantile_s(0.999), seen.worst_s)

    def reset(self) -> None:
        """Begin anew."""
        self._durations.clear()

    def _wait(self) -> None:
        self._due = self._clock.monotonic() + self._tick_s
        self._timer = self._clock.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        self._durations.add(max(0.0, self._clock.monotonic() - self._due))
        self._wait()
