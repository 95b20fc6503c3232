"""The simulated disk and links, for the suites that all disks and all links must pass."""

from collections.abc import Callable
from pathlib import Path

from runtime.disk.interface import Disk
from runtime.links.interface import LinkHandler, Peer, PeerLinks
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


class InEvents:
    """Calls links in events of their process, as cores do."""

    def __init__(self, process: SimulatedProcess, links: PeerLinks) -> None:
        self._process = process
        self._links = links

    def start(self, handler: LinkHandler) -> None:
        self._process.run(lambda: self._links.start(handler))

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        self._process.run(lambda: self._links.set_peers(peers))

    def send(self, node_id: int, frame: bytes) -> bool:
        sent: list[bool] = []
        self._process.run(lambda: sent.append(self._links.send(node_id, frame)))
        return sent[0]

    def stop(self) -> None:
        self._process.run(self._links.stop)


class SimulatedLinkKit:
    def __init__(self) -> None:
        self._world = World(seed=2)
        self._network = SimulatedNetwork(self._world)
        self._hosts = {n: SimulatedHost(self._world, self._network, n) for n in (1, 2, 3)}

    def peers(self) -> tuple[Peer, ...]:
        return tuple(self._network.peer(node_id) for node_id in self._hosts)

    def node(self, node_id: int) -> PeerLinks:
        host = self._hosts[node_id]
        host.kill()
        process = host.boot()
        return InEvents(process, host.links())

    def kill(self, node_id: int) -> None:
        self._hosts[node_id].kill()

    def settle(self, until: Callable[[], bool]) -> None:
        assert self._world.run_for(20, until)

    def pass_time(self, seconds: float) -> None:
        self._world.run_for(seconds)

    def end(self) -> None:
        for host in self._hosts.values():
            host.kill()
