"""One run of a node's process: it runs, may be paused, and ends for good.

Rule: a dead process runs no more timers, callbacks or background work. A restarted node is another
`SimulatedProcess` on the same machine, disk and address.

A pause (SIGSTOP, a long garbage collection, a stolen CPU) holds back everything that becomes due.
When the process resumes, all of it runs at once, in the order in which it became due.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum

from runtime.simulated.clock import SimulatedClock
from runtime.simulated.world import ProcessKilledError, ScheduledEvent, World


class Death(Enum):
    """How a process ended, as far as others can tell."""

    KILLED = "killed"
    """The operating system still runs: it resets the connections and refuses new ones."""
    POWER = "power"
    """The machine is off: nothing answers."""


class SimulatedProcess:
    """One run of node `node_id`; node ids are unique in a world, over all kinds of nodes."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.machine = world.machine(node_id)
        self.machine.powered = True
        self.alive = True
        self.paused = False
        self.waiting: deque[ScheduledEvent] | None = None
        """What became due while the process could not run; None while it runs."""
        self._held_until_us = 0
        self._drain: ScheduledEvent | None = None
        self._on_death: list[Callable[[Death], None]] = []
        self.clock = SimulatedClock(self)

    def on_death(self, callback: Callable[[Death], None]) -> None:
        """Call back when the process dies; for its disk and links, not for its cores."""
        self._on_death.append(callback)

    def schedule(self, delay_us: int, callback: Callable[[], None], label: str) -> ScheduledEvent:
        """Let something happen in this process, `delay_us` true microseconds from now."""
        return self.world.schedule(delay_us, callback, self, label)

    def run(self, callback: Callable[[], None], label: str = "run") -> None:
        """Run code of this process now, as one event: for a harness that calls into a node.

        It may kill itself on the way; other exceptions fail the run, as those of any event.
        """
        self.ensure_alive()
        self.world.execute(ScheduledEvent(callback, self, label))

    def ensure_alive(self) -> None:
        """Raise ProcessKilledError in code that goes on after its process was killed."""
        if not self.alive:
            raise ProcessKilledError

    def kill(self, how: Death = Death.KILLED) -> None:
        """Die, in the middle of an event too; a dead one's machine may still lose its power."""
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
        """Freeze: what becomes due waits. Harmless when paused or dead."""
        if self.alive and not self.paused:
            self.paused = True
            self._freeze()
            self.world.note("pause", self.node_id)

    def resume(self) -> None:
        """Go on: what waited happens now, in order. Harmless when not paused."""
        if self.alive and self.paused:
            self.paused = False
            self.world.note("resume", self.node_id)
            self._go_on()

    def hold(self, delay_us: int) -> None:
        """Keep the loop busy for so long from now: a blocking call takes its time."""
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
        """Run one waiting event, so that hooks and other nodes come between them."""
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
