"""How late a loop would call a timer that is due every 10 ms, shown among a process's metrics."""

import asyncio
import time

import pytest

from runtime.loop import fair_loop
from runtime.loop.stalls import BOUNDS_S, StallMeter
from runtime.metrics import Registry

UNTIL_READY = -1.0


class Loop:
    """A loop whose work and waits take as long as the test says, in milliseconds."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.meter = StallMeter(lambda: self.now_ms / 1000)

    def works(self, ms: float) -> "Loop":
        self.now_ms += ms
        return self

    def waits(self, ms: float, at_most_ms: float | None = None) -> "Loop":
        timeout_s = UNTIL_READY if at_most_ms is None else at_most_ms / 1000
        self.meter.waits(timeout_s)
        self.now_ms += ms
        self.meter.woke()
        return self

    def seen(self) -> dict[float, int]:
        """The ticks by the upper bound of their lateness, in milliseconds."""
        bounds = [bound * 1000 for bound in BOUNDS_S]
        return {b: n for b, n in zip(bounds, self.meter.counts, strict=False) if n}


# What a loop does, the ticks that it sees, and how late the worst of them is called.
CASES = {
    "a loop that only waits calls each tick when it is due": (
        Loop().waits(10_005),
        {1.0: 1000},
        0.0,
    ),
    "a loop that wakes often sees the same ticks": (
        [loop := Loop(), *(loop.works(0.1).waits(4.9) for _ in range(201))][0],
        {1.0: 100},
        0.1,
    ),
    "a tick that is due during work is called after it": (
        Loop().waits(4).works(50).waits(1),
        {50.0: 1},
        44.0,
    ),
    "work that ends before a tick is due delays none": (Loop().waits(4).works(5).waits(0), {}, 0.0),
    "after a late tick the next one is due 10 ms later": (
        Loop().works(45).waits(9).works(0).waits(2),
        {50.0: 1, 1.0: 1},
        35.0,
    ),
    "a loop that its machine wakes too late is late": (
        Loop().waits(320, at_most_ms=20),
        {1.0: 2, 300.0: 1},
        290.0,
    ),
    "a socket that is ready late tells nothing": (Loop().waits(325), {1.0: 32}, 0.0),
}


@pytest.mark.parametrize("case", CASES)
def test_it_sees_what_a_timer_would(case: str) -> None:
    loop, seen, worst_ms = CASES[case]
    assert loop.seen() == seen
    assert loop.meter.worst_s * 1000 == pytest.approx(worst_ms, abs=0.2)


def test_a_process_shows_its_stalls() -> None:
    loop, registry = Loop(), Registry()
    loop.meter.show(registry)
    loop.waits(25).works(115).waits(0)
    text = registry.render().decode()
    assert 'logberg_loop_late_seconds_bucket{le="0.001"} 2' in text
    assert 'logberg_loop_late_seconds_bucket{le="0.15"} 3' in text
    assert "logberg_loop_late_worst_seconds 0.11" in text


def test_the_loop_of_a_process_tells_its_meter() -> None:
    async def main() -> StallMeter:
        meter = fair_loop.stalls()
        assert meter is not None
        await asyncio.sleep(0.05)
        time.sleep(0.03)  # noqa: ASYNC251 - this is the stall
        await asyncio.sleep(0)
        return meter

    meter = fair_loop.run(main())
    assert sum(meter.counts) >= 4
    assert meter.worst_s >= 0.015


def test_a_loop_at_rest_is_not_woken_for_its_ticks() -> None:
    async def main() -> int:
        selector = fair_loop._SELECTORS[asyncio.get_running_loop()]
        await asyncio.sleep(0)
        before = sum(selector.meter.counts)
        await asyncio.sleep(0.2)
        return sum(selector.meter.counts) - before

    assert fair_loop.run(main()) <= 5
