"""A checkpoint rests while leaders change, but not for ever."""

import pytest

from controller.storage.checkpoint_rest import ALL_RESTS_S, REST_S, CheckpointRest
from runtime.simulated.clock import SimulatedClock
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World


class Resting:
    """A rest, and how long it has run in all."""

    def __init__(self, *, waits):
        self.world = World(1)
        self.process = SimulatedProcess(self.world, 1)
        self.rested = 0.0
        self.waits = waits
        clock = SimulatedClock(self.process)
        self.rest = CheckpointRest(clock, lambda: self.waits, lambda: None)

    def change_leaders(self, every_ms, times):
        for _ in range(times):
            self.process.run(self.rest.begin)
            self.wait(every_ms)

    def wait(self, ms):
        for _ in range(ms // 10):
            self.rested += 0.01 * self.rest.running
            self.world.run_for(0.01)


@pytest.mark.parametrize(
    ("every_ms", "times", "rested"),
    [
        (5_000, 1, REST_S),
        (500, 4, 3 * 0.5 + REST_S),
        (300, 100, ALL_RESTS_S),
        (1_500, 20, ALL_RESTS_S),
        (700, 100, ALL_RESTS_S),
    ],
)
def test_all_rests_of_a_checkpoint_together_have_an_end(every_ms, times, rested):
    resting = Resting(waits=True)
    resting.change_leaders(every_ms, times)
    resting.wait(2_000)
    assert resting.rested == pytest.approx(rested, abs=0.05)
    resting.rest.checkpoint_ended()
    resting.change_leaders(5_000, 1)
    assert resting.rested == pytest.approx(rested + REST_S, abs=0.05)


def test_a_rest_without_a_checkpoint_does_not_count():
    resting = Resting(waits=False)
    resting.change_leaders(300, 100)
    resting.wait(2_000)
    resting.waits, resting.rested = True, 0.0
    resting.change_leaders(300, 100)
    assert resting.rested == pytest.approx(ALL_RESTS_S, abs=0.05)
