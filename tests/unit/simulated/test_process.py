"""Simulated processes: timers, pauses, blocking calls, death, and the clocks of a machine."""

import pytest

from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import ProcessKilledError, SimulationFailedError, World


@pytest.fixture
def world() -> World:
    return World(1)


@pytest.fixture
def process(world: World) -> SimulatedProcess:
    return SimulatedProcess(world, 1)


def test_timers_come_at_their_time_and_cancelled_ones_never(
    world: World, process: SimulatedProcess
) -> None:
    seen: list[tuple[str, float]] = []
    start = process.clock.monotonic()
    process.clock.call_later(0.5, lambda: seen.append(("b", process.clock.monotonic() - start)))
    process.clock.call_later(0.25, lambda: seen.append(("a", process.clock.monotonic() - start)))
    process.clock.call_later(0.3, lambda: seen.append(("never", 0))).cancel()
    process.clock.call_later(-1, lambda: seen.append(("late", 0)))
    process.clock.call_soon(lambda: seen.append(("soon", 0)))
    world.run(100)
    assert [name for name, _ in seen] == ["late", "soon", "a", "b"]
    assert [round(at, 6) for _, at in seen[2:]] == [0.25, 0.5]


def test_a_timer_that_is_rearmed_for_the_rest_lets_time_pass(
    world: World, process: SimulatedProcess
) -> None:
    deadline = process.clock.monotonic() + 0.1
    calls = 0

    def wait() -> None:
        nonlocal calls
        calls += 1
        left = deadline - process.clock.monotonic()
        if left > 0:
            process.clock.call_later(left, wait)

    wait()
    assert world.run(1_000)
    assert calls <= 3


def test_nothing_of_a_dead_process_ever_happens(world: World, process: SimulatedProcess) -> None:
    seen: list[str] = []
    process.clock.call_later(1, lambda: seen.append("timer"))
    process.clock.call_soon(lambda: seen.append("soon"))
    process.kill()
    process.clock.call_later(0, lambda: seen.append("from the grave"))
    process.clock.call_soon(lambda: seen.append("from the grave"))
    world.run_until(5)
    assert seen == []
    with pytest.raises(ProcessKilledError):
        process.run(lambda: None)


def test_a_process_may_be_killed_in_the_middle_of_its_event(
    world: World, process: SimulatedProcess
) -> None:
    seen: list[str] = []

    def event() -> None:
        seen.append("before")
        process.kill()
        process.ensure_alive()
        seen.append("after")

    process.run(event)
    process = SimulatedProcess(world, 1)
    process.clock.call_soon(event)
    world.run(10)
    assert seen == ["before", "before"]


def test_what_becomes_due_in_a_pause_happens_after_it_in_order(
    world: World, process: SimulatedProcess
) -> None:
    seen: list[tuple[str, float]] = []

    def see(name: str) -> None:
        seen.append((name, world.now))

    for delay in (1, 3, 2):
        process.clock.call_later(delay, lambda delay=delay: see(f"timer {delay}"))
    process.clock.call_later(2.5, lambda: see("cancelled")).cancel()
    late = process.clock.call_later(2.7, lambda: see("cancelled in the pause"))
    world.run_until(1.5)
    process.pause()
    # Frames are such events: what arrived in the pause comes before what arrives after it.
    process.schedule(1_000_000, lambda: see("frame"), "frame")
    world.run_until(4)
    late.cancel()
    process.resume()
    process.schedule(0, lambda: see("after"), "frame")
    world.run_until(6)
    assert seen == [
        ("timer 1", 1.0),
        ("timer 2", 4.0),
        ("frame", 4.0),
        ("timer 3", 4.0),
        ("after", 4.0),
    ]


def test_the_monotonic_clock_runs_on_in_a_pause(world: World, process: SimulatedProcess) -> None:
    start = process.clock.monotonic()
    process.pause()
    world.run_until(10)
    process.resume()
    assert process.clock.monotonic() - start == pytest.approx(10)


def test_hooks_run_between_the_events_that_waited(world: World, process: SimulatedProcess) -> None:
    order: list[str] = []
    process.pause()
    for name in ("one", "two"):
        process.clock.call_soon(lambda name=name: order.append(name))
    world.run_until(1)
    world.after_event(lambda whose: order.append("check") if whose is process else None)
    process.resume()
    world.run_until(2)
    assert order == ["one", "check", "two", "check"]


def test_a_paused_process_can_be_paused_again_and_killed(
    world: World, process: SimulatedProcess
) -> None:
    seen: list[str] = []
    process.pause()
    process.clock.call_soon(lambda: seen.append("x"))
    world.run_until(1)
    process.resume()
    process.pause()
    world.run_until(2)
    assert seen == []
    process.kill()
    process.resume()
    world.run_until(3)
    assert seen == []


def test_a_blocking_call_holds_the_loop(world: World, process: SimulatedProcess) -> None:
    seen: list[tuple[str, float]] = []

    def see(name: str) -> None:
        seen.append((name, world.now))

    def block() -> None:
        see("block")
        process.hold(500_000)

    process.clock.call_later(1, block)
    process.clock.call_later(1.2, lambda: see("late"))
    process.clock.call_later(1.6, lambda: see("in time"))
    world.run_until(3)
    assert seen == [("block", 1.0), ("late", 1.5), ("in time", 1.6)]


def test_a_hold_within_a_pause_ends_after_both(world: World, process: SimulatedProcess) -> None:
    seen: list[float] = []
    process.hold(3_000_000)
    process.clock.call_soon(lambda: seen.append(world.now))
    process.pause()
    world.run_until(1)
    process.resume()
    world.run_until(5)
    assert seen == [3.0]


def test_a_hold_that_grows_ends_when_all_of_it_is_over(
    world: World, process: SimulatedProcess
) -> None:
    seen: list[float] = []
    process.hold(1_000_000)
    process.clock.call_soon(lambda: seen.append(world.now))
    world.run_until(0.5)
    process.hold(1_000_000)
    world.run_until(5)
    assert seen == [2.0]


def test_within_an_event_time_stands_still_unless_readings_cost(
    world: World, process: SimulatedProcess
) -> None:
    clock = process.clock
    assert clock.monotonic() == clock.monotonic()
    clock.cost_us = 10
    start = clock.monotonic()
    readings = 0
    while clock.monotonic() - start < 0.001:
        readings += 1
    assert readings == 99
    world.run_until(1)
    assert clock.monotonic() - start == pytest.approx(1, abs=0.001)


def test_a_fast_clock_brings_its_timers_early_and_a_slow_one_late(world: World) -> None:
    fast, slow = SimulatedProcess(world, 1), SimulatedProcess(world, 2)
    fast.machine.set_rate(2)
    seen: list[tuple[int, float]] = []
    for process in (fast, slow):
        process.clock.call_later(1, lambda p=process: seen.append((p.node_id, world.now)))
    # A timer that is armed moves with the rate.
    slow.machine.set_rate(0.5)
    start = slow.clock.monotonic()
    world.run_until(3)
    assert seen == [(1, 0.5), (2, 2.0)]
    assert slow.clock.monotonic() - start == pytest.approx(1.5)
    with pytest.raises(ValueError, match="never goes back"):
        slow.machine.set_rate(-1)


def test_a_rate_change_of_one_machine_leaves_the_order_of_others(world: World) -> None:
    one, other = SimulatedProcess(world, 1), SimulatedProcess(world, 2)
    seen: list[str] = []
    for name in ("a", "b"):
        other.clock.call_later(1, lambda name=name: seen.append(name))
        one.clock.call_later(1, lambda name=name: seen.append(f"one {name}"))
    one.machine.set_rate(0.999999)
    world.run_until(2)
    assert seen == ["a", "b", "one a", "one b"]


def test_wall_time_jumps_and_monotonic_time_does_not(
    world: World, process: SimulatedProcess
) -> None:
    wall, start = process.clock.wall_ms(), process.clock.monotonic()
    world.run_until(1)
    assert process.clock.wall_ms() - wall == 1_000
    process.machine.jump_wall(-3_600)
    assert process.clock.wall_ms() - wall == 1_000 - 3_600_000
    assert process.clock.monotonic() - start == pytest.approx(1)


def test_monotonic_readings_of_machines_and_boots_have_nothing_in_common(world: World) -> None:
    one, other = SimulatedProcess(world, 1), SimulatedProcess(world, 2)
    assert abs(one.clock.monotonic() - other.clock.monotonic()) > 1
    before = one.clock.monotonic()
    one.kill()
    assert SimulatedProcess(world, 1).clock.monotonic() == before
    one.kill(Death.POWER)
    assert SimulatedProcess(world, 1).clock.monotonic() != before


def test_a_run_within_a_run_fails_the_whole(world: World, process: SimulatedProcess) -> None:
    def boom() -> None:
        raise ValueError("inside")

    with pytest.raises(SimulationFailedError, match="inside"):
        process.run(lambda: process.run(boom))
