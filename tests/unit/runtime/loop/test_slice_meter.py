"""The meter of slices, on a thread clock of the test's own."""

import asyncio
import gc

from runtime.loop import fair_loop
from runtime.loop.slice_meter import SliceMeter, name_long_callbacks
from runtime.metrics import Registry


class ThreadClock:
    """Processor time that the test hands out."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_only_the_work_between_two_looks_counts() -> None:
    clock = ThreadClock()
    meter = SliceMeter(clock)
    meter.ended()  # Before the first look there is no slice.
    for work, idle in ((0.004, 5.0), (0.021, 0.1), (0.004, 0.0)):
        meter.began()
        clock.now += work
        meter.ended()
        clock.now += idle
    assert sum(meter.counts) == 3
    assert round(meter.total_s, 6) == 0.029
    assert round(meter.worst_s, 6) == 0.021


def test_the_figures_stand_among_the_metrics() -> None:
    clock = ThreadClock()
    meter, registry = SliceMeter(clock), Registry()
    meter.show(registry)
    meter.began()
    clock.now += 0.03
    meter.ended()
    lines = registry.render().decode().splitlines()
    assert 'logberg_loop_slice_cpu_seconds_bucket{le="0.025"} 0' in lines
    assert 'logberg_loop_slice_cpu_seconds_bucket{le="0.03"} 1' in lines
    assert "logberg_loop_slice_cpu_seconds_count 1" in lines
    assert "logberg_loop_slice_cpu_worst_seconds 0.03" in lines


def test_the_collectors_pauses_are_counted_until_it_stops() -> None:
    meter = SliceMeter()
    meter.watch_collector()
    gc.collect()
    meter.stop()
    counted = meter.pauses
    gc.collect()
    assert counted >= 1
    assert meter.pauses == counted


def test_the_fair_loop_measures_from_poll_to_poll() -> None:
    async def main() -> SliceMeter:
        meter = fair_loop.meter()
        assert meter is not None
        before = sum(meter.counts)
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert sum(meter.counts) >= before + 10
        return meter

    assert fair_loop.run(main()).total_s > 0


def test_a_long_callback_is_named() -> None:
    clock = ThreadClock()
    told: list[tuple[str, float]] = []

    def counts_long() -> None:
        clock.now += 0.5

    def is_quick() -> None:
        clock.now += 0.001

    async def main() -> None:
        loop = asyncio.get_running_loop()
        end = name_long_callbacks(lambda name, seconds: told.append((name, seconds)), 0.02, clock)
        try:
            loop.call_soon(counts_long)
            loop.call_soon(is_quick)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        finally:
            end()

    asyncio.run(main())
    assert [(name.rpartition(".")[2], seconds) for name, seconds in told] == [("counts_long", 0.5)]
