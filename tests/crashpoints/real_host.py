"""A simulated machine whose disk is a real folder, used by the product's own `RealDisk`.

Rule: time, network and random numbers are simulated; every byte and every file name is real. Only
the disk's thread is replaced. Its work happens in virtual time, in order, one piece at a time, and
each callback is an event of its own, as on the simulated disk.
"""

from collections import deque
from pathlib import Path

from runtime.disk.real import RealDisk
from runtime.disk.thread import OnDone, Work
from runtime.simulated.disk_faults import FAST, UNLIMITED_BYTES
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import World
from tests.crashpoints.steps import Step, Steps


class RealHost(SimulatedHost):
    """The machine of node `node_id`, with its files in `steps.root`."""

    def __init__(self, world: World, network: SimulatedNetwork, node_id: int, steps: Steps) -> None:
        super().__init__(world, network, node_id)
        self.steps = steps
        self.free_bytes = UNLIMITED_BYTES
        """How full this machine is must not decide who leads, so the disk says this."""
        self._disks: list[_WorldDisk] = []

    def boot(self) -> SimulatedProcess:
        # Only now: what the dead process's code did while it was unwound still had its files.
        self.steps.close_left_open()
        self._disks.clear()
        return super().boot()

    # RealDisk keeps the same promises as the SimulatedDisk that it replaces.
    def disk(self) -> RealDisk:  # type: ignore[override]
        self._disks.append(_WorldDisk(self))
        return self._disks[-1]

    def files(self) -> RealDisk:  # type: ignore[override]
        return RealDisk(self.steps.root)

    def move(self, folder: Path) -> None:
        """Go on in a copy of the folder, with the files that are open."""
        self.steps.move(folder)
        for disk in self._disks:
            disk.move(folder)

    def refuse_the_dead(self, step: Step) -> None:
        """Raise in code that is being unwound: a killed process changes nothing any more."""
        self.process.ensure_alive()


class _WorldDisk(RealDisk):
    def __init__(self, host: RealHost) -> None:
        super().__init__(host.steps.root)
        self._host = host
        self._thread = _WorldThread(host.process)

    def free_bytes(self) -> int:
        return self._host.free_bytes

    def move(self, folder: Path) -> None:
        """Take up the files in another place."""
        self._root = folder


class _WorldThread:
    """What `runtime.disk.thread.DiskThread` promises, as events of the world."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self._random = process.world.random(f"disk/{process.node_id}")
        self._jobs: deque[tuple[Work, OnDone | None]] = deque()
        self._busy = False
        process.on_death(self._die)

    def submit(self, work: Work, on_done: OnDone | None) -> None:
        self._jobs.append((work, on_done))
        self._start_next()

    def close(self) -> None:
        while self._jobs:
            self._finish(*self._jobs.popleft())

    def _start_next(self) -> None:
        if self._busy or not self._jobs:
            return
        self._busy = True
        delay_us = FAST.draw_us(self._random) or 0
        self._process.schedule(delay_us, self._finish_first, "disk")

    def _finish_first(self) -> None:
        self._busy = False
        if self._jobs:
            self._finish(*self._jobs.popleft())
            self._start_next()

    def _finish(self, work: Work, on_done: OnDone | None) -> None:
        result: object = None
        failure: OSError | None = None
        try:
            result = work()
        except OSError as error:
            failure = error
        if on_done is not None:
            self._process.schedule(0, lambda: on_done(result, failure), "disk-done")

    def _die(self, how: Death) -> None:
        self._jobs.clear()
