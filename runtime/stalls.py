"""How long the loop makes others wait.

Rule: measured, always, and shown. One loop owns all state, so whatever computes for long stalls
everything: a timer that is due every 10 ms notes how late it is called. A stall shorter than the
time to the next tick is seen only in part; the long ones, which matter, are seen nearly whole.
"""

from collections.abc import Callable
from typing import NamedTuple

from runtime.clock import Clock, Timer
from runtime.metrics import Registry
from runtime.quantiles import Durations

TICK_S = 0.01
_BUCKETS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05),
    *(0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0),
)


class Stalls(NamedTuple):
    """Seconds that a due timer had to wait, since the last reset."""

    ticks: int
    p50_s: float
    p999_s: float
    worst_s: float


class StallMeter:
    """Measures the loop of a clock from `start` to `stop`."""

    def __init__(
        self,
        clock: Clock,
        tick_s: float = TICK_S,
        on_tick: Callable[[float], None] | None = None,
    ) -> None:
        """`on_tick` is told each tick's lateness in seconds."""
        self._clock = clock
        self._on_tick = on_tick
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
        late_s = max(0.0, self._clock.monotonic() - self._due)
        self._durations.add(late_s)
        if self._on_tick is not None:
            self._on_tick(late_s)
        self._wait()


def shown_stalls(clock: Clock, registry: Registry) -> StallMeter:
    """Return a meter whose figures are among a process's metrics."""
    late = registry.histogram(
        "logberg_loop_late_seconds", "How late a timer due every 10 ms is called", _BUCKETS
    )
    meter = StallMeter(clock, on_tick=late.observe)
    registry.read_gauge(
        "logberg_loop_late_worst_seconds",
        "The latest that it was called since the start",
        lambda: meter.stalls().worst_s,
    )
    return meter
