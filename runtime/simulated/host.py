"""A simulated machine: its disk, its clocks, its address, and its current process.

Rule: the host owns what outlives a process. A test harness keeps one host for each node. After each
`boot` it gets the disk, links and requests of the new process from the host, and builds the node's
core from them.
"""

from runtime.http.requests import Caller
from runtime.links.interface import OnRejected
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.disk_faults import DiskFaults
from runtime.simulated.links import SimulatedLinks
from runtime.simulated.machine import Machine
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.platter import Platter
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.requests import SimulatedRequests
from runtime.simulated.world import World


class SimulatedHost:
    """The machine of node `node_id`."""

    def __init__(self, world: World, network: SimulatedNetwork, node_id: int) -> None:
        self.world = world
        self.network = network
        self.node_id = node_id
        self.platter = Platter(world.random(f"platter/{node_id}"))
        self._folders: dict[str, tuple[Platter, DiskFaults]] = {}
        """Further folders, each on a device of its own."""
        self.faults = DiskFaults()
        self.address: tuple[str, int] | None = None
        """Where later processes listen for links; None: at the network's address of the node."""
        self.incarnations = 0
        """The number of processes that have run here."""
        self._process: SimulatedProcess | None = None

    @property
    def machine(self) -> Machine:
        """The clocks."""
        return self.world.machine(self.node_id)

    @property
    def process(self) -> SimulatedProcess:
        """The newest process, alive or not."""
        assert self._process is not None, f"node {self.node_id} was never booted"
        return self._process

    @property
    def running(self) -> bool:
        """True if a process is alive here, paused or not."""
        return self._process is not None and self._process.alive

    def boot(self) -> SimulatedProcess:
        """Start a new process."""
        assert not self.running, f"node {self.node_id} is running"
        self.incarnations += 1
        self._process = SimulatedProcess(self.world, self.node_id)
        return self._process

    def disk(self, folder: str = "") -> SimulatedDisk:
        """Return the disk of the process that runs now: the host's own folder, or another one.

        `platter` and `faults` are those of the host's own folder. A loss of power hits all folders.
        """
        platter, faults = self.platter, self.faults
        if folder:
            if folder not in self._folders:
                stream = self.world.random(f"platter/{self.node_id}/{folder}")
                self._folders[folder] = Platter(stream), DiskFaults()
            platter, faults = self._folders[folder]
        return SimulatedDisk(self.process, platter, faults)

    def files(self) -> SimulatedDisk:
        """Return the host's own folder for who only looks: no fault of the disk strikes there."""
        return SimulatedDisk(self.process, self.platter, DiskFaults())

    def links(self, on_rejected: OnRejected | None = None) -> SimulatedLinks:
        """Return links for the process that runs now, at the host's own address."""
        host, port = self.address or (None, None)
        return SimulatedLinks(
            self.network, self.process, host=host, port=port, on_rejected=on_rejected
        )

    def requests(self, caller: Caller | None = None) -> SimulatedRequests:
        """Return a requester for the process that runs now; servers see `caller`."""
        return SimulatedRequests(self.network, self.process, caller)

    def kill(self) -> None:
        """Kill the process, as SIGKILL does. Do nothing if none runs."""
        if self.running:
            self.process.kill()

    def lose_power(self) -> None:
        """Kill the process, if one runs, and lose what was not synced."""
        if self._process is not None:
            self._process.kill(Death.POWER)
        self.platter.lose_power()
        for platter, _ in self._folders.values():
            platter.lose_power()

    def pause(self) -> None:
        """Pause the process, as SIGSTOP does. Do nothing if none runs."""
        if self.running:
            self.process.pause()

    def resume(self) -> None:
        """Continue the process, as SIGCONT does. Do nothing if it is not paused."""
        if self._process is not None:
            self._process.resume()
