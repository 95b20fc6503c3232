"""Loop stalls, and quantiles in bounded memory."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.metrics import Registry
from runtime.quantiles import SHORTEST_S, Durations
from runtime.stalls import StallMeter, shown_stalls


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


def test_a_timer_that_is_called_late_is_a_stall() -> None:
    clock = LateClock()
    meter = StallMeter(clock)
    meter.start()
    for _ in range(1998):
        clock.tick(0.0005)
    clock.tick(0.1)
    clock.tick(0.25)
    stalls = meter.stalls()
    assert stalls.ticks == 2000
    assert stalls.p50_s == pytest.approx(0.0005, rel=0.1)
    assert stalls.p999_s == pytest.approx(0.0005, rel=0.1)
    assert stalls.worst_s == pytest.approx(0.25)
    clock.tick(0.1)
    assert meter.stalls().p999_s == pytest.approx(0.1, rel=0.1)


def test_reset_begins_anew_and_stop_ends() -> None:
    clock = LateClock()
    meter = StallMeter(clock)
    meter.start()
    clock.tick(1)
    meter.reset()
    assert meter.stalls() == (0, 0.0, 0.0, 0.0)
    clock.tick(0)
    meter.stop()
    meter.stop()
    assert clock.callback is None
    assert meter.stalls().ticks == 1


@given(
    st.lists(st.floats(SHORTEST_S, 100), min_size=1, max_size=300),
    st.floats(0, 1, exclude_min=True),
)
def test_a_quantile_is_never_too_short_and_at_most_a_tenth_too_long(
    values: list[float], share: float
) -> None:
    durations = Durations()
    for value in values:
        durations.add(value)
    true = sorted(values)[math.ceil(share * len(values)) - 1]
    assert true * (1 - 1e-9) <= durations.quantile_s(share) <= true * 1.0906
    assert durations.quantile_s(1) == pytest.approx(max(values))
    assert durations.worst_s == max(values)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-9, 1e6])
def test_what_is_out_of_range_goes_to_the_ends(value: float) -> None:
    durations = Durations()
    durations.add(value)
    assert durations.count == 1
    assert durations.quantile_s(0.5) >= 0


def test_a_process_shows_its_stalls() -> None:
    clock, registry = LateClock(), Registry()
    meter = shown_stalls(clock, registry)
    meter.start()
    clock.tick(0.0004)
    clock.tick(0.12)
    text = registry.render().decode()
    assert 'logberg_loop_late_seconds_bucket{le="0.001"} 1' in text
    assert 'logberg_loop_late_seconds_bucket{le="0.15"} 2' in text
    assert "logberg_loop_late_worst_seconds 0.12" in text
