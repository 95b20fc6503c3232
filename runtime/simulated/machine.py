"""The clocks of one machine. They survive its processes.

Rule: a machine's monotonic clock starts at a random value and may run fast or slow. Its wall clock
may be wrong and may jump. So a test finds code that compares readings of two machines or boots.
"""

import math
from random import Random
from typing import Protocol

_BOOTED_AT_MOST_S = 100_000


class TrueTime(Protocol):
    """The part of `World` that a machine uses."""

    now_us: int

    def random(self, name: str) -> Random:
        """Return the stream of random numbers called `name`."""

    def move_timers(self, machine: "Machine") -> None:
        """Reschedule the timers of a machine whose clock rate has changed."""


class Machine:
    """Monotonic and wall time of one machine."""

    def __init__(self, world: TrueTime, node_id: int) -> None:
        self.node_id = node_id
        self.rate = 1.0
        """How many seconds pass here in one second of the world."""
        self.slowest = 1.0
        """The lowest rate so far."""
        self.steady_since_us = 0
        """The world's time at which the rate changed last; 0: it never did."""
        self.wall_offset_us = 0
        self.powered = False
        """True if the operating system runs.

        It resets connections to a process that doesn't run.
        """
        self._world = world
        self._random = world.random(f"machine/{node_id}")
        self._true_us = 0
        self._local_us = 0
        self.reboot()

    def reboot(self) -> None:
        """Start the monotonic clock anew. The next process that starts switches the power on."""
        self.powered = False
        self._true_us = self._world.now_us
        self._local_us = self._random.randrange(_BOOTED_AT_MOST_S * 1_000_000)

    def local_us(self) -> int:
        """Return the reading of the monotonic clock, in microseconds."""
        passed = self._world.now_us - self._true_us
        if self.rate == 1.0:
            return self._local_us + passed
        return self._local_us + int(passed * self.rate)

    def true_us(self, local_us: int) -> int:
        """Convert a duration on the monotonic clock to microseconds of the world, rounded up."""
        if self.rate == 1.0:
            return local_us
        return math.ceil(local_us / self.rate)

    def set_rate(self, rate: float) -> None:
        """Run the monotonic clock fast (above 1) or slow (below 1) from now on."""
        if rate <= 0:
            raise ValueError("a monotonic clock never goes back, nor stands still")
        self._local_us = self.local_us()
        self._true_us = self._world.now_us
        self.rate = rate
        self.slowest = min(self.slowest, rate)
        self.steady_since_us = self._world.now_us
        self._world.move_timers(self)

    def jump_wall(self, seconds: float) -> None:
        """Move the wall clock forward or back."""
        self.wall_offset_us += round(seconds * 1_000_000)
