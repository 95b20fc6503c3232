"""A small cluster that uses every simulated part under every fault, to test the simulator itself.

Each node keeps a file of numbered lines, syncs it, tells its peers what is durable, and asks one of
them by a request. There is one promise to check: a line that a peer was told of survives.
"""

from collections.abc import Callable

from runtime.disk.interface import AppendFile
from runtime.http.requests import Reply, Request, Unreachable
from runtime.links.interface import LinkEnd
from runtime.simulated.fault_schedules import WITH_FULL_DISKS, FaultSchedule
from runtime.simulated.host import SimulatedHost
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.requests import SimulatedServer
from runtime.simulated.world import Process, World

LINE = 40


class ChatterNode:
    def __init__(self, cluster: "Chatter", host: SimulatedHost) -> None:
        self.cluster = cluster
        self.host = host
        self.id = host.node_id
        self.process = host.process
        self.clock = self.process.clock
        self.links = host.links()
        self.requests = host.requests()
        self.heard: dict[int, int] = {}
        self.ups: list[int] = []
        self.syncing = False

    def start(self) -> None:
        self.disk = self.host.disk()
        self.disk.lock()
        self.file: AppendFile = self.disk.open("lines")
        self.disk.sync_folder("")
        whole = self.file.size() // LINE
        good = 0
        data = self.disk.read("lines")
        while good < whole and data[good * LINE : (good + 1) * LINE] == self.line(good):
            good += 1
        assert good >= self.cluster.told[self.id], "what was told is gone"
        self.file.truncate(good * LINE)
        SimulatedServer(self.cluster.network, self.process, f"http://{self.id}", self.answer)
        self.links.set_peers(self.cluster.peers)
        self.links.start(self)
        self.tick()

    def line(self, number: int) -> bytes:
        return f"{self.id} {number}".encode().ljust(LINE, b".")

    def tick(self) -> None:
        self.clock.call_later(0.02, self.tick)
        if not self.syncing and self.append():
            count = self.file.size() // LINE
            self.syncing = True
            self.disk.sync(self.file, lambda error: self.synced(count, error))
        target = self.cluster.ids[int(self.clock.monotonic() * 50) % len(self.cluster.ids)]
        request = Request("POST", "/", body=str(self.id).encode())
        self.requests.request(f"http://{target}", request, self.replied, 0.5)

    def append(self) -> bool:
        try:
            self.file.append(self.line(self.file.size() // LINE))
        except OSError:
            return False
        return True

    def synced(self, count: int, error: OSError | None) -> None:
        assert error is None
        self.syncing = False
        self.cluster.told[self.id] = max(count, self.cluster.told[self.id])
        for peer in self.cluster.ids:
            if peer != self.id:
                self.links.send(peer, b"%d" % count)

    def replied(self, outcome: Reply | Unreachable) -> None:
        self.cluster.outcomes[type(outcome).__name__] += 1

    def answer(self, request: Request, reply: Callable[[Reply], None]) -> None:
        reply(Reply(200, request.body))

    def greeting(self) -> bytes:
        return str(self.id).encode()

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        return int(greeting)

    def on_link_up(self, node_id: int) -> None:
        assert node_id not in self.ups
        self.ups.append(node_id)

    def on_frame(self, node_id: int, frame: bytes) -> None:
        assert node_id in self.ups
        self.heard[node_id] = int(frame)

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        if node_id in self.ups:
            self.ups.remove(node_id)
        else:
            assert end in {LinkEnd.REFUSED, LinkEnd.UNREACHABLE}


class Chatter:
    def __init__(self, seed: int, size: int = 3) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.ids = list(range(1, size + 1))
        self.peers = tuple(self.network.peer(node_id) for node_id in self.ids)
        self.hosts = {n: SimulatedHost(self.world, self.network, n) for n in self.ids}
        self.nodes: dict[int, ChatterNode] = {}
        self.told = dict.fromkeys(self.ids, 0)
        self.outcomes = {"Reply": 0, "Unreachable": 0}
        self.world.after_event(self.check)

    def check(self, process: Process | None) -> None:
        if process is not None and process.alive:
            assert self.nodes[process.node_id].process is process, "the dead speak"

    def start(self, node_id: int) -> None:
        process = self.hosts[node_id].boot()
        node = self.nodes[node_id] = ChatterNode(self, self.hosts[node_id])
        process.run(node.start)

    def leader(self) -> int | None:
        return self.ids[int(self.world.now) % len(self.ids)]

    def reset_link(self, one: int, other: int) -> None:
        self.nodes[one].links.reset(other)


def fault_schedule(
    seed: int, seconds: float = 12, which: FaultSchedule = WITH_FULL_DISKS
) -> tuple[Chatter, Nemesis]:
    """Run a cluster under the nemesis, then four seconds in peace."""
    cluster = Chatter(seed, size=3 + 2 * (seed % 2))
    for node_id in cluster.ids:
        cluster.start(node_id)
    nemesis = Nemesis(cluster, which)
    nemesis.run_until(seconds)
    cluster.world.run_until(seconds + 4)
    return cluster, nemesis


def run(seed: int) -> str:
    """Return what happened, for comparison."""
    cluster, nemesis = fault_schedule(seed)
    told = sorted(cluster.told.items())
    return f"{cluster.world.executed}-{len(nemesis.history)}-{cluster.world.digest()}-{told}"
