"""The simulated disk, for the suite that every disk must pass."""

from collections.abc import Callable
from pathlib import Path

from runtime.disk import Disk
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World


class SimulatedDiskKit:
    def __init__(self, folder: Path) -> None:
        self._world = World(seed=1)
        self._host = SimulatedHost(self._world, SimulatedNetwork(self._world), 1)
        self._host.boot()
        self.disk: Disk = self._host.disk()

    def settle(self, until: Callable[[], bool]) -> None:
        assert self._world.run_for(20, until)

    def another_process(self) -> Disk:
        process = SimulatedProcess(self._world, 1)
        return SimulatedDisk(process, self._host.platter, self._host.faults)

    def restart(self) -> Disk:
        self.disk.close()
        self._host.kill()
        self._host.boot()
        self.disk = self._host.disk()
        return self.disk

    def end(self) -> None:
        self._host.kill()
