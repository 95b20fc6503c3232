"""Long work, and much short work, leaves time to others in between."""

from collections import deque
from collections.abc import Callable, Generator

import pytest

from runtime.loop.slices import SLICE_S, LoopShare, SlicedWork, in_turn, run_in_slices


class WorkingClock:
    """A loop by hand: `work` takes time, `pass_` runs what was due at its begin."""

    def __init__(self) -> None:
        self.now = 10.0
        self.due: deque[Callable[[], None]] = deque()

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> "WorkingClock":
        raise AssertionError("nothing here waits for time")

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.due.append(callback)

    def cancel(self) -> None: ...

    def pass_(self) -> None:
        for _ in range(len(self.due)):
            self.due.popleft()()


class Crowd:
    """Pieces of 1 ms that come all at once."""

    def __init__(self, clock: WorkingClock, pieces: int) -> None:
        self.clock = clock
        self.left = pieces
        self.share = LoopShare(clock, self.go)

    def go(self) -> None:
        while self.left and not self.share.spent():
            self.left -= 1
            self.clock.now += SLICE_S / 5 + 1e-9


def test_a_crowd_takes_no_more_of_a_pass_than_its_share() -> None:
    clock = WorkingClock()
    crowd = Crowd(clock, 12)
    crowd.go()
    assert crowd.left == 7
    crowd.go()
    assert crowd.left == 7, "the share is of the pass, however often it is asked for"
    clock.pass_()
    assert crowd.left == 2
    clock.pass_()
    assert crowd.left == 0
    clock.pass_()
    assert not clock.due, "it comes to rest"


def test_a_lone_piece_runs_at_once() -> None:
    clock = WorkingClock()
    crowd = Crowd(clock, 1)
    crowd.go()
    assert crowd.left == 0
    clock.pass_()
    crowd.left = 3
    crowd.go()
    assert crowd.left == 0


def test_long_work_runs_in_slices_and_ends_once() -> None:
    clock, done, slices = WorkingClock(), [], 0

    def work() -> Generator[None, None, None]:
        for _ in range(20):
            clock.now += SLICE_S / 4
            yield

    run_in_slices(clock, work(), lambda: done.append(True))
    while not done:
        slices += 1
        clock.pass_()
    assert slices in (5, 6)
    assert not clock.due


def test_works_of_one_loop_take_turns_a_slice_in_each_pass() -> None:
    clock, turns, done = WorkingClock(), [], []

    def work(name: str) -> Generator[None, None, None]:
        for _ in range(2):
            clock.now += SLICE_S
            turns.append(name)
            yield

    for name in "abc":
        run_in_slices(clock, work(name), lambda name=name: done.append(name))
    while len(done) < 3:
        before = clock.now
        clock.pass_()
        assert clock.now - before <= SLICE_S + 1e-9
    assert "".join(turns) == "abcabc"
    assert done == ["a", "b", "c"]
    assert not clock.due


def test_a_single_turn_comes_after_the_work_that_waits() -> None:
    clock, turns = WorkingClock(), []

    def work() -> Generator[None, None, None]:
        for _ in range(3):
            clock.now += SLICE_S
            turns.append("work")
            yield

    def turn() -> None:
        turns.append("turn")
        if turns.count("turn") < 3:
            in_turn(clock, turn, "turns")

    run_in_slices(clock, work(), lambda: None)
    in_turn(clock, turn, "turns")
    for number in range(1, 7):
        clock.pass_()
        assert len(turns) == number
    assert turns == ["work", "turn"] * 3


def test_a_work_that_raises_leaves_the_others_their_turns() -> None:
    clock, done = WorkingClock(), []

    def failing() -> Generator[None, None, None]:
        raise ValueError("a defect")
        yield

    def working() -> Generator[None, None, None]:
        yield

    run_in_slices(clock, failing(), lambda: done.append("failing"))
    run_in_slices(clock, working(), lambda: done.append("working"))
    with pytest.raises(ValueError, match="a defect"):
        clock.pass_()
    clock.pass_()
    assert done == ["working"]


def test_work_that_pauses_takes_no_turn_until_it_goes_on() -> None:
    clock, steps, done = WorkingClock(), [], []

    def work() -> Generator[None, None, None]:
        for step in range(3):
            clock.now += SLICE_S
            steps.append(step)
            yield

    slices = SlicedWork(clock, work(), lambda: done.append(True))
    slices.begin()
    clock.pass_()
    slices.pause()
    slices.pause()
    clock.pass_()
    assert (steps, clock.due) == ([0], deque())
    slices.resume()
    slices.resume()
    while clock.due:
        clock.pass_()
    assert (steps, done) == ([0, 1, 2], [True])
    slices.pause()
    slices.resume()
    clock.pass_()
    assert done == [True]


def test_work_that_pauses_and_goes_on_in_one_pass_keeps_its_one_turn() -> None:
    clock, steps = WorkingClock(), []

    def work() -> Generator[None, None, None]:
        while True:
            clock.now += SLICE_S
            steps.append(1)
            yield

    slices = SlicedWork(clock, work(), lambda: None)
    slices.begin()
    slices.pause()
    slices.resume()
    clock.pass_()
    assert len(steps) == 1
    clock.pass_()
    assert len(steps) == 2
    slices.cancel()


def test_cancelled_work_is_closed_and_not_done() -> None:
    clock, done, closed = WorkingClock(), [], []

    def work() -> Generator[None, None, None]:
        try:
            while True:
                clock.now += SLICE_S
                yield
        finally:
            closed.append(True)

    cancel = run_in_slices(clock, work(), lambda: done.append(True))
    clock.pass_()
    cancel()
    clock.pass_()
    assert closed
    assert not done
    assert not clock.due
