"""One run of a node's process: it runs, may be paused, and ends for good.

Rule: a process that was killed runs no more timers, callbacks or background work. A restarted node
is another `SimulatedProcess` on the same machine, disk and address.

A pause (SIGSTOP, a long garbage collection, a busy processor) delays everything that becomes due.
When the process resumes, all of it runs at once, in the order in which it became due.
"""

import math
from collections import deque
from collections.abc import Callable
from enum import Enum

from runtime.simulated.clock import SimulatedClock
from runtime.simulated.world import ProcessKilledError, ScheduledEvent, World


class Death(Enum):
    """How a process ended, as other nodes see it."""

    KILLED = "killed"
    """The operating system still runs. It resets the connections and refuses new ones."""
    POWER = "power"
    """The machine is off. Nothing answers."""


class SimulatedProcess:
    """One process of node `node_id`. Node ids are unique in a world, over all kinds of nodes."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.machine = world.machine(node_id)
        self.machine.powered = True
        self.alive = True
        self.paused = False
        self.resumed_us = -math.inf
        """The world's time at the end of the last pause; -inf: it was never paused."""
        self.waiting: deque[ScheduledEvent] | None = None
        """The events that became due while the process could not run; None while it can."""
        self._held_until_us = 0
        self._drain: ScheduledEvent | None = None
        self._on_death: list[Callable[[Death], None]] = []
        self.clock = SimulatedClock(self)

    def on_death(self, callback: Callable[[Death], None]) -> None:
        """Call back when the process ends. For its disk and links, not for its cores."""
        self._on_death.append(callback)

    def schedule(self, delay_us: int, callback: Callable[[], None], label: str) -> ScheduledEvent:
        """Call back in this process, `delay_us` microseconds of the world from now."""
        return self.world.schedule(delay_us, callback, self, label)

    def run(self, callback: Callable[[], None], label: str = "run") -> None:
        """Run code of this process now, as one event: for a harness that calls into a node.

        The code may kill this process. Any exception fails the run, as in every event.
        """
        self.ensure_alive()
        self.world.execute(ScheduledEvent(callback, self, label))

    def ensure_alive(self) -> None:
        """Raise ProcessKilledError if the process was killed while its code was running."""
        if not self.alive:
            raise ProcessKilledError

    def kill(self, how: Death = Death.KILLED) -> None:
        """End the process, even in the middle of an event.

        A loss of power also reboots the machine of a process that has ended already.
        """
        if not self.alive:
            if how is Death.POWER:
                self.machine.reboot()
            return
        self.alive = False
        self.paused = False
        self.waiting = None
        self.world.note(f"die-{how.value}", self.node_id)
        for callback in self._on_death:
            callback(how)
        if how is Death.POWER:
            self.machine.reboot()

    def pause(self) -> None:
        """Pause: events that become due wait. Do nothing if it is paused or has ended."""
        if self.alive and not self.paused:
            self.paused = True
            self._freeze()
            self.world.note("pause", self.node_id)

    def resume(self) -> None:
        """Continue: events that waited happen now, in order. Do nothing if it is not paused."""
        if self.alive and self.paused:
            self.paused = False
            self.resumed_us = self.world.now_us
            self.world.note("resume", self.node_id)
            self._go_on()

    def hold(self, delay_us: int) -> None:
        """Keep the loop busy for so long from now, as a blocking call does."""
        if not self.alive or delay_us <= 0:
            return
        self._held_until_us = max(self._held_until_us, self.world.now_us) + delay_us
        self._freeze()
        if not self.paused:
            self._go_on()

    def _may_run(self) -> bool:
        return self.alive and not self.paused

    def _freeze(self) -> None:
        if self.waiting is None:
            self.waiting = deque()

    def _go_on(self) -> None:
        if self._drain is not None:
            self._drain.cancel()
        # An event of no process: an event of this process would wait behind itself.
        wait_us = self._held_until_us - self.world.now_us
        self._drain = self.world.schedule(wait_us, self._run_waiting, None, "go-on")

    def _run_waiting(self) -> None:
        """Run one waiting event. Hooks and events of other nodes can come before the next."""
        self._drain = None
        waiting = self.waiting
        if not self._may_run() or waiting is None:
            return
        while waiting and waiting[0].callback is None:
            waiting.popleft()
        if waiting:
            self.world.execute(waiting.popleft())
        if not self._may_run():
            return
        if waiting or self._held_until_us > self.world.now_us:
            self._go_on()
        else:
            self.waiting = None
