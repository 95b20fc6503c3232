"""Measures how late the loop runs its timers.

Rule: it always measures, and the figures are among the process's metrics. One loop owns all state,
so a long computation delays everything else. A timer that is due every 10 ms records how late it is
called. It misses the part of a stall before the timer was due, up to 10 ms.
"""

from runtime.clock import Clock, Timer
from runtime.metrics import Registry

TICK_S = 0.01
_BUCKETS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05),
    *(0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0),
)


class StallMeter:
    """Measures the loop of a clock from `start` to `stop`."""

    def __init__(self, clock: Clock, registry: Registry) -> None:
        self._clock = clock
        self._timer: Timer | None = None
        self._due = 0.0
        self._worst_s = 0.0
        self._late = registry.histogram(
            "logberg_loop_late_seconds", "Lateness of a timer that is due every 10 ms", _BUCKETS
        )
        registry.read_gauge(
            "logberg_loop_late_worst_seconds",
            "The worst lateness of that timer since the start",
            lambda: self._worst_s,
        )

    def start(self) -> None:
        """Begin to measure."""
        assert self._timer is None, "the meter runs already"
        self._wait()

    def stop(self) -> None:
        """Stop measuring. What was measured stays."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._due = self._clock.monotonic() + TICK_S
        self._timer = self._clock.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        late_s = max(0.0, self._clock.monotonic() - self._due)
        self._worst_s = max(self._worst_s, late_s)
        self._late.observe(late_s)
        self._wait()
