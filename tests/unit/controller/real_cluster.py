"""Controllers over the real quorum, on a simulated network and disks. They elect their leader."""

import random

import structlog

from controller.config import ControllerConfig
from controller.controller import Controller
from quorum.config import QuorumConfig
from quorum.node import QuorumNode
from runtime.simulated.archive import SimulatedArchive
from runtime.simulated.disk_faults import FAST
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import Death
from runtime.simulated.world import World
from tests.unit.controller.cluster import CLUSTER_ID, Cluster, raise_it


class _Shared:
    """The attributes of the in-memory quorum that `Cluster` reads."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.node_ids = ()

    @property
    def leader(self):
        active = [n for n, c in self.cluster.controllers.items() if c.active]
        return max(active, key=lambda n: self.cluster.controllers[n].image.epoch, default=None)


class RealCluster(Cluster):
    """Like `Cluster`, with elections."""

    def __init__(self, nodes=3, seed=1, tail_bytes=20_000, archived=False, **config):
        self.world = World(seed)
        self.archive = SimulatedArchive(self.world) if archived else None
        self.network = SimulatedNetwork(self.world)
        self.hosts = {n: SimulatedHost(self.world, self.network, n) for n in range(1, nodes + 1)}
        self.peers = tuple(self.network.peer(n) for n in self.hosts)
        self.shared = _Shared(self)
        self.shared.node_ids = tuple(self.hosts)
        self.tail_bytes = tail_bytes
        self.processes, self.controllers, self.stopped, self.disks = {}, {}, {}, {}
        self.config = config
        self.logs = structlog.testing.LogCapture()
        for node_id in self.hosts:
            self.hosts[node_id].faults.set_profile(FAST)
            self.start(node_id)
        self.run_until(lambda: self.shared.leader is not None)

    def start(self, node_id):
        host = self.hosts[node_id]
        process = self.processes[node_id] = host.boot()
        log = structlog.wrap_logger(
            None, processors=[self.logs], wrapper_class=structlog.BoundLogger
        )
        config = ControllerConfig(
            cluster_id=CLUSTER_ID,
            node_id=node_id,
            compare_records=True,
            controller_urls={i: f"http://controller-{i}" for i in self.hosts},
            **self._config_of(node_id),
        )

        def make():
            disk = self.disks[node_id] = host.disk()
            stream = self.world.random(f"node/{node_id}")
            quorum_config = QuorumConfig(
                cluster_id=CLUSTER_ID,
                node_id=node_id,
                peers=self.peers,
                tail_bytes=self.tail_bytes,
                segment_bytes=32_000,
            )
            controller = Controller(
                config,
                clock=process.clock,
                random=random.Random(stream.getrandbits(64)),
                disk=disk,
                quorum_factory=lambda listener: QuorumNode(
                    quorum_config,
                    clock=process.clock,
                    random=random.Random(stream.getrandbits(64)),
                    disk=disk,
                    links=host.links(),
                    listener=listener,
                    log=log,
                ),
                log=log,
                archive=None if self.archive is None else self.archive.of(process),
                on_stopped=lambda reason: self.stopped.__setitem__(node_id, reason),
                on_defect=raise_it,
            )
            self.controllers[node_id] = controller
            controller.start()

        process.run(make)

    def kill(self, node_id, how=Death.KILLED):
        self.processes[node_id].kill(how)
        if how is Death.POWER:
            self.hosts[node_id].platter.lose_power()
        self.controllers.pop(node_id)

    def settle(self):
        """Wait until all controllers have the same offset."""
        self.run_until(
            lambda: (
                self.shared.leader is not None
                and len(self.controllers) == len(self.hosts)
                and len({c.image.offset for c in self.controllers.values()}) == 1
            )
        )
