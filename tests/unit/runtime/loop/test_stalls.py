"""How late a loop calls a timer, shown among a process's metrics."""

from collections.abc import Callable

from runtime.loop.stalls import StallMeter
from runtime.metrics import Registry


class LateClock:
    """A clock whose timers are called as late as the test says."""

    def __init__(self) -> None:
        self.now = 100.0
        self.callback: Callable[[], None] | None = None
        self.due = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> "LateClock":
        self.due, self.callback = self.now + delay_s, callback
        return self

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def cancel(self) -> None:
        self.callback = None

    def tick(self, late_s: float) -> None:
        assert self.callback is not None
        self.now = self.due + late_s
        self.callback()


def test_a_process_shows_its_stalls() -> None:
    clock, registry = LateClock(), Registry()
    meter = StallMeter(clock, registry)
    meter.start()
    clock.tick(0.0004)
    clock.tick(0.12)
    clock.tick(0.0)
    text = registry.render().decode()
    assert 'logberg_loop_late_seconds_bucket{le="0.001"} 2' in text
    assert 'logberg_loop_late_seconds_bucket{le="0.15"} 3' in text
    assert "logberg_loop_late_worst_seconds 0.12" in text


def test_a_stopped_meter_waits_for_no_tick() -> None:
    clock = LateClock()
    meter = StallMeter(clock, Registry())
    meter.start()
    clock.tick(0)
    meter.stop()
    meter.stop()
    assert clock.callback is None
