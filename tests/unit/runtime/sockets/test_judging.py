"""Open connections are judged again when what they rest on changes, in steps, and not too often."""

from collections.abc import Callable, Generator

import pytest

from runtime.sockets.judging import EXPIRY_S, LEAST_S, LOOK_S, ConnectionJudge, Judged


class Handle:
    """A timer of the clock below."""

    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due, self.callback = due, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Handle] = []

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        raise AssertionError("nobody asks")

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Handle:
        timer = Handle(self.now + delay_s, callback)
        self.timers.append(timer)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.call_later(0.0, callback)

    def run(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        end = self.now + seconds
        while True:
            due = [timer for timer in self.timers if not timer.cancelled and timer.due <= end]
            if not due:
                break
            first = min(due, key=lambda timer: timer.due)
            self.timers.remove(first)
            self.now = max(self.now, first.due)
            first.callback()
        self.now = end


class Door:
    """Has connections; notes when they are judged."""

    def __init__(self, clock: HandClock, ends: int = 0) -> None:
        self._clock, self._ends = clock, ends
        self.begun: list[float] = []
        self.steps = 0

    def judging(self) -> Generator[None, None, int]:
        self.begun.append(self._clock.now)
        for _ in range(3):
            self.steps += 1
            yield
        return self._ends


class Judging:
    """A judge over one door."""

    def __init__(self, ends: int = 0) -> None:
        self.clock = HandClock()
        self.rests_on: tuple[object, ...] = (object(), object())
        self.expires = False
        self.ended: list[int] = []
        self.door = Door(self.clock, ends)
        self.judge = ConnectionJudge(
            self.clock, lambda: self.rests_on, lambda: self.expires, self.ended.append
        )
        self.judge.begin([self.door])


def test_nothing_is_judged_while_nothing_changes() -> None:
    it = Judging()
    it.clock.run(60)
    assert it.door.begun == []


def test_a_change_is_judged_within_a_second_and_a_half() -> None:
    it = Judging(ends=2)
    it.clock.run(10)
    it.rests_on = (it.rests_on[0], object())
    changed = it.clock.now
    it.clock.run(3)
    (begun,) = it.door.begun
    assert begun - changed <= LOOK_S + LEAST_S
    assert it.ended == [2]


def test_changes_that_go_on_are_judged_once_a_second() -> None:
    it = Judging()
    for _ in range(100):
        it.rests_on = (object(),)
        it.clock.run(0.1)
    gaps = [after - before for before, after in zip(it.door.begun, it.door.begun[1:], strict=False)]
    assert 5 <= len(it.door.begun) <= 10
    assert min(gaps) >= LEAST_S
    assert it.ended == [], "nobody was refused"


def test_what_may_expire_is_judged_without_a_change() -> None:
    it = Judging()
    it.expires = True
    it.clock.run(10 * EXPIRY_S)
    assert 9 <= len(it.door.begun) <= 10


def test_a_pass_goes_in_steps_and_ends_with_the_judge() -> None:
    it = Judging()
    it.rests_on = (object(),)
    while not it.door.steps:
        it.clock.run(LOOK_S / 2)
        if it.door.begun:
            break
    it.judge.end()
    steps = it.door.steps
    it.clock.run(60)
    assert it.door.steps == steps or it.door.steps == 3
    assert len(it.door.begun) == 1


def test_a_door_that_fails_does_not_end_the_looking() -> None:
    class Broken(Judged):
        asked = 0

        def judging(self) -> Generator[None, None, int]:
            self.asked += 1
            raise ZeroDivisionError
            yield

    it, broken = Judging(), Broken()
    it.judge.begin([broken])
    for turn in range(2):
        it.rests_on = (object(),)
        with pytest.raises(ZeroDivisionError):
            it.clock.run(5)
        assert broken.asked == turn + 1
