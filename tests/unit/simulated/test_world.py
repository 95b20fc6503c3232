"""Order, random numbers, hooks, failures; a seed's run is the same under every hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import Process, ProcessKilledError, SimulationFailedError, World


def test_events_come_in_the_order_of_time_then_of_scheduling() -> None:
    world = World(1)
    seen: list[str] = []
    for delay, name in [(20, "c"), (10, "a"), (10, "b"), (0, "first")]:
        world.schedule(delay, lambda name=name: seen.append(name))
    assert world.run(100)
    assert seen == ["first", "a", "b", "c"]
    assert world.now_us == 20


def test_time_runs_on_to_where_it_was_asked_to() -> None:
    world = World(1)
    seen: list[float] = []
    world.schedule(2_000_000, lambda: seen.append(world.now))
    world.run_until(1.5)
    assert (world.now, seen) == (1.5, [])
    assert world.run_for(10, stop=lambda: bool(seen))
    assert (world.now, seen) == (2.0, [2.0])


def test_a_step_limit_ends_a_run_that_would_not_end() -> None:
    world = World(1)

    def again() -> None:
        world.schedule(1, again)

    again()
    assert not world.run(50)
    assert world.executed == 50


def test_dice_hang_on_the_seed_and_the_name_alone() -> None:
    one, other = World(7), World(7)
    other.random("another consumer").random()
    assert one.random("links").random() == other.random("links").random()
    assert one.random("links") is one.random("links")
    assert World(7).random("links").random() != World(8).random("links").random()
    assert World(7).random("links").random() != World(7).random("disk").random()


def test_hooks_run_after_every_event_and_can_fail_the_run() -> None:
    world = World(3)
    process = SimulatedProcess(world, 5)
    whose: list[Process | None] = []
    world.after_event(whose.append)
    world.schedule(1, lambda: None)
    process.clock.call_later(1, lambda: None)
    world.run(10)
    assert whose == [None, process]

    def broken(process: Process | None) -> None:
        raise AssertionError("two leaders")

    world.after_event(broken)
    process.clock.call_soon(lambda: None)
    with pytest.raises(SimulationFailedError, match=r"seed 3 .* node 5: .*two leaders"):
        world.run(10)


def test_an_exception_of_a_node_fails_the_run_with_node_time_and_trace() -> None:
    world = World(11)
    process = SimulatedProcess(world, 2)

    def boom() -> None:
        raise KeyError("lost")

    process.clock.call_later(1.25, boom)
    with pytest.raises(SimulationFailedError) as caught:
        world.run(10)
    assert caught.value.node_id == 2
    assert caught.value.seed == 11
    assert isinstance(caught.value.__cause__, KeyError)
    assert "seed 11 at 1.250000 s node 2: KeyError('lost')" in str(caught.value)
    assert "boom" in str(caught.value)


def test_an_expected_exception_of_a_node_does_not_fail_the_run() -> None:
    world = World(1)
    process = SimulatedProcess(world, 2)
    asked: list[tuple[int, str]] = []

    def expected(process: Process, error: Exception) -> bool:
        asked.append((process.node_id, str(error)))
        return isinstance(error, OSError)

    def fail(error: Exception) -> None:
        raise error

    world.on_exception = expected
    process.clock.call_soon(lambda: fail(OSError("disk")))
    process.clock.call_soon(lambda: fail(ValueError("bug")))
    with pytest.raises(SimulationFailedError, match="bug"):
        world.run(10)
    assert asked == [(2, "disk"), (2, "bug")]


def test_a_loop_that_lets_no_time_pass_is_found() -> None:
    world = World(1)
    process = SimulatedProcess(world, 4)

    def again() -> None:
        process.clock.call_later(0, again)

    again()
    with pytest.raises(SimulationFailedError, match="node 4: time stands still"):
        world.run(1_000_000)


def test_the_error_of_a_killed_process_passes_an_except_of_exception() -> None:
    assert not issubclass(ProcessKilledError, Exception)


def test_equal_runs_have_equal_digests_and_others_differ() -> None:
    def digest(seed: int, delay: int = 5) -> str:
        world = World(seed)
        world.schedule(delay, lambda: world.note("seen", 1, 42))
        world.run(10)
        return world.digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
    assert digest(1) != digest(1, delay=6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_is_one_run_under_every_hash_seed(seed: int) -> None:
    digests = []
    for hash_seed in ("0", "1", "4242"):
        program = (
            "import sys; from tests.unit.simulated.chatter import run; print(run(int(sys.argv[1])))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        )
        digests.append(done.stdout.strip())
    assert len(set(digests)) == 1
    executed, history, _ = digests[0].split("-", 2)
    assert int(executed) > 5_000
    assert int(history) >= 10
