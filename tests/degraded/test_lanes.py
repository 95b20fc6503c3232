"""The two lanes of requests: their order, their refusals, their pace."""

from typing import cast

import pytest

import runtime.clock
from controller.leader.lanes import WAIT_MAX_S, Lanes


class Clock:
    """A clock by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lanes(clock: Clock) -> Lanes[str]:
    return Lanes(cast("runtime.clock.Clock", clock), 100)


def crowd(lanes: Lanes[str], clock: Clock, count: int, pace_s: float) -> None:
    """Take so many that waited for one another."""
    assert all(lanes.add("one", first=False) for _ in range(2))
    for _ in range(count):
        clock.now += pace_s
        lanes.take()
        lanes.add("one", first=False)
    lanes.take_all()


def test_the_first_lane_is_empty_before_the_other_moves(lanes: Lanes[str]) -> None:
    for item, first in (("a", False), ("B", True), ("c", False), ("D", True)):
        assert lanes.add(item, first=first)
    assert [lanes.take() for _ in range(4)] == ["B", "D", "a", "c"]
    assert not lanes


def test_so_many_may_wait_and_the_first_lane_knows_no_bound(lanes: Lanes[str]) -> None:
    assert all(lanes.add("one", first=False) for _ in range(100))
    assert lanes.overloaded
    assert not lanes.add("too many", first=False)
    assert all(lanes.add("ours", first=True) for _ in range(200))
    assert len(lanes) == 300
    lanes.take_all()
    assert not lanes.overloaded


def test_nobody_is_let_in_behind_one_who_has_waited_for_long(
    lanes: Lanes[str], clock: Clock
) -> None:
    lanes.add("one", first=False)
    clock.now += WAIT_MAX_S
    assert lanes.add("just", first=False)
    clock.now += 0.001
    assert not lanes.add("too late", first=False)
    lanes.take()
    assert lanes.add("again", first=False)


def test_a_burst_is_judged_by_the_pace_of_the_crowd_before(lanes: Lanes[str], clock: Clock) -> None:
    crowd(lanes, clock, 200, 0.05)
    let_in = sum(lanes.add("one", first=False) for _ in range(100))
    assert 0.9 <= let_in * 0.05 / WAIT_MAX_S <= 1.1
    lanes.take_all()
    crowd(lanes, clock, 200, 0.001)
    assert sum(lanes.add("one", first=False) for _ in range(100)) == 100


def test_calm_says_nothing_of_the_pace_of_a_crowd(lanes: Lanes[str], clock: Clock) -> None:
    crowd(lanes, clock, 200, 0.05)
    for _ in range(1000):
        clock.now += 1.0
        lanes.add("alone", first=False)
        lanes.take()
    let_in = sum(lanes.add("one", first=False) for _ in range(100))
    assert let_in * 0.05 / WAIT_MAX_S <= 1.1


def test_one_that_takes_long_does_not_shut_the_door(lanes: Lanes[str], clock: Clock) -> None:
    assert all(lanes.add("one", first=False) for _ in range(2))
    lanes.take()
    clock.now += 0.9
    lanes.take()
    assert sum(lanes.add("one", first=False) for _ in range(100)) == 100


def test_a_group_is_not_taken_for_one_that_takes_long(clock: Clock) -> None:
    """The leader decides 64 at a time, and then waits for their commit (ADR 0045)."""
    lanes: Lanes[str] = Lanes(cast("runtime.clock.Clock", clock), 1000)
    assert all(lanes.add("one", first=False) for _ in range(512))
    for group in range(100):
        clock.now += 0.3 if group % 10 == 9 else 0.03
        for _ in range(64):
            lanes.take()
            assert lanes.add("one", first=False), f"refused in group {group}"
