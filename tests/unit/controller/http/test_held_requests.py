"""Held requests are released once each, in order, and never thousands in one pass of the loop."""

from collections import Counter
from typing import Any

import pytest

from controller.http.held_requests import HeldRequests
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
    held, released = HeldRequests(process.clock, 2 * MANY), list[tuple[int, int]]()

    def park() -> None:
        for number in range(MANY):
            held.park(wait_s, lambda n=number: released.append((process.world.now_us, n)))

    process.run(park)
    return held, released


@pytest.mark.parametrize("how", ["woken", "ended", "ended, and woken then"])
def test_many_are_released_over_several_passes_in_the_order_of_their_arrival(
    process: Any, how: str
) -> None:
    held, released = parked(process, 60.0 if how == "woken" else 1.0)
    process.world.run_for(1.01 if how == "ended, and woken then" else 0.99)
    if how != "ended":
        process.run(held.wake)
    process.world.run_for(2.0)
    assert [number for _, number in released] == list(range(MANY))
    assert max(Counter(moment for moment, _ in released).values()) <= MOST
    assert len(held) == 0


def test_what_is_held_again_waits_again(process: Any) -> None:
    held, released = parked(process, 1.0)
    again = list[int]()
    process.world.run_for(1.005)
    assert len(released) <= MOST
    process.run(lambda: held.park(1.0, lambda: again.append(process.world.now_us)))
    process.world.run_for(0.9)
    assert len(released) == MANY
    assert not again
    process.world.run_for(0.2)
    assert len(again) == 1
