"""Held requests are released once each, in order, and never thousands in one pass of the loop."""

from collections import Counter
from typing import Any

import pytest

from controller.http.held_requests import CROWD, REST_S, SPREAD, HeldRequests
from runtime.randomness import seeded
from runtime.simulated.clock import SimulatedClock
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

MANY = 1_000
MOST = 60
"""In one pass: a share of 5 ms, and each reading of the clock takes 0.1 ms."""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(SimulatedClock, "SOON_US", 10_000)
    made = SimulatedProcess(World(1), 1)
    made.clock.cost_us = 100
    return made


def parked(process: Any, wait_s: float) -> tuple[HeldRequests, list[tuple[int, int]]]:
    """Hold many requests. Returns the releases: at which microsecond, which request."""
    held, released = HeldRequests(process.clock, seeded(1), 2 * MANY), list[tuple[int, int]]()

    def park() -> None:
        for number in range(MANY):
            held.park(wait_s, lambda n=number: released.append((process.world.now_us, n)))

    process.run(park)
    return held, released


def run_of(process: Any, releases: list[tuple[int, int]], until_s: float) -> list[float]:
    """Return the seconds of the releases, once that much time has passed."""
    process.world.run_for(until_s)
    return [moment / 1e6 for moment, _ in releases]


@pytest.mark.parametrize("how", ["woken", "some ended, and woken then"])
def test_a_wake_up_releases_over_several_passes_in_the_order_of_arrival(
    process: Any, how: str
) -> None:
    held, released = parked(process, 60.0 if how == "woken" else 1.0)
    process.world.run_for(0.9)
    ended = len(released)
    assert (ended == 0) == (how == "woken")
    process.run(held.wake)
    process.world.run_for(2.0)
    woken = [number for _, number in released[ended:]]
    assert how != "woken" or woken == sorted(woken)
    assert sorted(number for _, number in released) == list(range(MANY))
    assert max(Counter(moment for moment, _ in released).values()) <= MOST
    assert len(held) == 0


def test_waits_end_spread_over_the_last_fifth_and_never_late(process: Any) -> None:
    process.clock.cost_us = 0
    held, released = parked(process, 10.0)
    moments = run_of(process, released, 11.0)
    assert len(moments) == MANY
    assert min(moments) >= 10.0 * (1 - SPREAD) - 0.01
    assert max(moments) <= 10.0 + SimulatedClock.SOON_US / 1e6
    quarters = Counter(int((moment - 8.0) / 0.5) for moment in moments)
    assert all(quarters[quarter] > MANY / 8 for quarter in range(4))
    assert len(held) == 0


def test_waits_that_end_together_end_over_several_passes_the_first_due_first(process: Any) -> None:
    """They are due within a few ticks, so each tick has more than a pass may release."""
    _, released = parked(process, 0.2)
    process.world.run_for(5.0)
    assert len(released) == MANY
    assert max(Counter(moment for moment, _ in released).values()) <= MOST


def test_one_timer_serves_all_waits(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_at = list[float]()
    call_later = process.clock.call_later

    def counted(delay_s: float, callback: Any) -> Any:
        set_at.append(delay_s)
        return call_later(delay_s, callback)

    monkeypatch.setattr(process.clock, "call_later", counted)
    parked(process, 10.0)
    assert len(set_at) < 20


def test_what_was_released_leaves_nothing_behind(process: Any) -> None:
    """For hours a controller holds and wakes: neither its entries nor their order may pile up."""
    process.clock.cost_us = 0
    held = HeldRequests(process.clock, seeded(1), 2 * MANY)

    def hold_and_wake() -> None:
        for _ in range(MANY):
            held.park(0.5, lambda: None)
            held.park(60.0, lambda: None)
            held.wake_at_once()

    process.run(hold_and_wake)
    process.world.run_for(1.0)
    assert len(held) == 0
    process.run(lambda: held.park(60.0, lambda: None))
    assert len(held._arrived) == 1
    assert sum(map(len, held._ticks.values())) == 1


def test_a_crowd_that_was_woken_is_woken_again_only_after_a_rest(process: Any) -> None:
    """News that come every millisecond cost a crowd one reply for each rest, not for each news."""
    process.clock.cost_us = 0
    held, releases = HeldRequests(process.clock, seeded(1), 2 * MANY), list[float]()

    def released() -> None:
        releases.append(process.world.now)
        hold()

    def hold() -> None:
        held.park(60.0, released)

    process.run(lambda: [hold() for _ in range(MANY)])
    began = process.world.now
    for _ in range(1_000):
        process.run(held.wake)
        process.world.run_for(0.001)
    rests = (process.world.now - began) / (MANY * REST_S)
    assert sum(moment == releases[0] for moment in releases) >= MANY
    assert rests * 0.8 <= len(releases) / MANY <= rests + 1
    process.world.run_for(1.0)
    assert len(releases) / MANY <= rests + 2


def test_few_are_woken_each_time_and_the_lost_leadership_waits_for_no_rest(process: Any) -> None:
    process.clock.cost_us = 0
    for count, woken in ((CROWD, 2 * CROWD), (MANY, MANY)):
        held, releases = HeldRequests(process.clock, seeded(1), 2 * MANY), list[int]()

        def hold(held: Any = held, releases: list[int] = releases, count: int = count) -> None:
            for number in range(count):
                held.park(60.0, lambda number=number: releases.append(number))

        for _ in range(2):
            process.run(hold)
            process.run(held.wake)
        assert len(releases) == woken
        process.run(held.wake_at_once)
        assert len(releases) == 2 * count
        assert len(held) == 0


def test_what_is_held_again_waits_again(process: Any) -> None:
    held, released = parked(process, 1.0)
    again = list[int]()
    process.world.run_for(0.8)
    process.run(held.wake)
    assert len(released) < MANY
    process.run(lambda: held.park(1.0, lambda: again.append(process.world.now_us)))
    process.world.run_for(0.7)
    assert len(released) == MANY
    assert not again
    process.world.run_for(0.4)
    assert len(again) == 1
