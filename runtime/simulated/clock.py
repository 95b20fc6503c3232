"""The clock of a simulated process.

Rule: time doesn't advance within an event. Code that loops until some time has passed would never
end; `cost_us` makes each reading take time.
"""

import math
from collections.abc import Callable

from runtime.simulated.world import US, WALL_START_MS, Process, ScheduledEvent


class SimulatedClock:
    """`runtime.clock.Clock` of one process."""

    SOON_US = 0
    """Delay of a `call_soon` callback, in microseconds of the world."""

    def __init__(self, process: Process) -> None:
        self.cost_us = 0
        """The least time between two monotonic readings, in microseconds."""
        self._process = process
        self._world = process.world
        self._machine = process.machine
        self._last_us = 0

    def monotonic(self) -> float:
        local_us = self._machine.local_us()
        if self.cost_us:
            local_us = self._last_us = max(local_us, self._last_us + self.cost_us)
        return local_us / US

    def wall_ms(self) -> int:
        return WALL_START_MS + (self._world.now_us + self._machine.wall_offset_us) // 1000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> ScheduledEvent:
        event = ScheduledEvent(callback, self._process, "timer")
        if not self._process.alive:
            event.cancel()
            return event
        # Round up, so that a timer is never early and a tiny delay still advances time.
        delay_us = math.ceil(delay_s * US) if delay_s > 0 else 0
        event.due_local_us = self._machine.local_us() + delay_us
        self._world.push(event, self._world.now_us + self._machine.true_us(delay_us))
        return event

    def call_soon(self, callback: Callable[[], None]) -> None:
        if self._process.alive:
            self._process.schedule(self.SOON_US, callback, "soon")
