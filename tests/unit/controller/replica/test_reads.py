"""A linearizable read waits for a majority, and gives up when its own wait is over."""

from collections.abc import Callable
from typing import Any

import pytest

from controller.replica.offset_waiters import OffsetWaiters
from controller.replica.reads import ImageReads
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

WAIT_S = 5.0


class Reads:
    """Reads whose majority is asked by the test; answers with the second in which they came."""

    def __init__(self) -> None:
        self.process = SimulatedProcess(World(1), 1)
        self.asked: list[Callable[[bool], None]] = []
        self.answers: list[tuple[int, bool, int]] = []
        clock = self.process.clock
        self.reads = ImageReads(clock, self.asked.append, lambda: 0, OffsetWaiters(clock), WAIT_S)

    def read(self, number: int) -> None:
        def answered(ok: bool) -> None:
            self.answers.append((number, ok, self.process.world.now_us // 1_000_000))

        self.process.run(lambda: self.reads.linearizable(answered))

    def pass_s(self, seconds: float) -> None:
        self.process.world.run_for(seconds)


def test_each_read_gives_up_when_its_own_wait_is_over() -> None:
    world = Reads()
    for number in (1, 2, 3):
        world.read(number)
        world.pass_s(1)
    world.pass_s(10)
    assert world.answers == [(1, False, 5), (2, False, 6), (3, False, 7)]


def test_a_confirmed_read_is_answered_once_and_does_not_shorten_the_next_ones_wait() -> None:
    world = Reads()
    world.read(1)
    world.pass_s(1)
    world.process.run(lambda: world.asked[0](True))
    world.pass_s(1)
    world.read(2)
    world.pass_s(20)
    assert world.answers == [(1, True, 1), (2, False, 7)]


def test_one_timer_serves_all_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    world, timers = Reads(), list[float]()
    clock: Any = world.process.clock
    call_later = clock.call_later

    def counted(delay_s: float, callback: Callable[[], None]) -> Any:
        timers.append(delay_s)
        return call_later(delay_s, callback)

    monkeypatch.setattr(clock, "call_later", counted)
    for number in range(1_000):
        world.read(number)
        world.process.run(lambda: world.asked.pop()(True))
    assert len(world.answers) == 1_000
    assert len(timers) == 1
