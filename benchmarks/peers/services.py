"""Three nodes of each service on loopback: configured, started, ended.

Rule: durability and everything else that is not named here is the service's default. A service is
used through `Service` only, so that each row treats all four alike.
"""

import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from benchmarks.instruments.bench import free_ports
from benchmarks.instruments.cluster import CLUSTER_ID
from benchmarks.instruments.memory import resident_bytes
from benchmarks.peers import tools
from logberg.local.child import Child, stop_all
from logberg.local.toml_text import to_toml

NODES: Final = 3


class Nodes(Protocol):
    """How one service's nodes are configured."""

    def children(self, folder: Path, ports: Sequence[tuple[int, int]]) -> list[Child]:
        """Write the nodes' files below `folder`. Of a node's two ports the first is for peers.

        Raises NoToolError.
        """
        ...

    def endpoint(self, port: int) -> str:
        """What clients are given for a node's port."""
        ...


class Service:
    """The nodes of one service, the leader found by the load generator."""

    def __init__(self, name: str, folder: Path) -> None:
        """Configure three fresh nodes. Raises NoToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        numbers = free_ports(2 * NODES)
        ports = list(zip(numbers[:NODES], numbers[NODES:], strict=True))
        self.name = name
        self._nodes = NODES_OF[name]
        self._children = self._nodes.children(folder, ports)
        self._endpoints = [self._nodes.endpoint(client) for _, client in ports]
        self._order = list(range(NODES))

    def start(self, find_leader: "FindLeader", limit_s: float = 120.0) -> float:
        """Start all nodes; return the seconds until one leads. Raises RuntimeError."""
        started = time.monotonic()
        for child in self._children:
            child.start()
        self.settle(find_leader, limit_s)
        return time.monotonic() - started

    def settle(self, find_leader: "FindLeader", limit_s: float = 120.0) -> None:
        """Wait until a node leads, and put it first. Raises RuntimeError."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            leader = find_leader(self.name, self._endpoints)
            if leader is not None:
                self._order.sort(key=lambda n: n != leader)
                return
            time.sleep(0.05)
        words = {child.name: child.last_words() for child in self._children}
        raise RuntimeError(f"no node of {self.name} leads after {limit_s:.0f} s: {words}")

    @property
    def endpoints(self) -> list[str]:
        """Of all nodes, the leader's first."""
        return [self._endpoints[n] for n in self._order]

    @property
    def pids(self) -> list[int]:
        """Of all nodes, the leader's first."""
        return [self._children[n].pid for n in self._order]

    def memory_mb(self) -> float:
        """Resident memory of the largest node, in MB of 10^6 bytes."""
        return max(resident_bytes(pid) for pid in self.pids) / 1e6

    def revive(self) -> None:
        """Let stopped nodes go on, and start killed ones."""
        for child in self._children:
            child.signal(signal.SIGCONT)
            child.start()

    def stop(self) -> None:
        """End all nodes in order."""
        for child in self._children:
            child.signal(signal.SIGCONT)
        stop_all(self._children, 30)


class FindLeader(Protocol):
    """Tells which endpoint leads, or None."""

    def __call__(self, service: str, endpoints: list[str]) -> int | None: ...


class _Logberg:
    def children(self, folder: Path, ports: Sequence[tuple[int, int]]) -> list[Child]:
        peers = [
            {"node_id": n, "quorum": f"127.0.0.1:{quorum}", "http": f"http://127.0.0.1:{http}"}
            for n, (quorum, http) in enumerate(ports, 1)
        ]
        children = []
        for n in range(1, len(ports) + 1):
            config = {"cluster_id": CLUSTER_ID, "node_id": n, "data": str(folder / f"data-{n}")}
            config["authorization"] = "off"
            file = folder / f"controller-{n}.toml"
            file.write_text(to_toml({**config, "controllers": peers}))
            arguments = ["controller", "--config", str(file)]
            children.append(Child(f"controller-{n}", arguments, folder / f"{n}.log"))
        return children

    def endpoint(self, port: int) -> str:
        return f"http://127.0.0.1:{port}"


class _Etcd:
    def children(self, folder: Path, ports: Sequence[tuple[int, int]]) -> list[Child]:
        program = str(tools.go_program("etcd"))
        cluster = ",".join(f"n{n}=http://127.0.0.1:{peer}" for n, (peer, _) in enumerate(ports, 1))
        return [
            Child(
                f"etcd-{n}",
                [
                    *("--name", f"n{n}", "--data-dir", str(folder / f"data-{n}")),
                    *("--listen-peer-urls", f"http://127.0.0.1:{peer}"),
                    *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"),
                    *("--listen-client-urls", f"http://127.0.0.1:{client}"),
                    *("--advertise-client-urls", f"http://127.0.0.1:{client}"),
                    *("--initial-cluster", cluster, "--initial-cluster-state", "new"),
                    # The default of 2 GB would end the run with a million entries.
                    *("--quota-backend-bytes", str(8 * 2**30), "--log-level", "error"),
                ],
                folder / f"{n}.log",
                (program,),
            )
            for n, (peer, client) in enumerate(ports, 1)
        ]

    def endpoint(self, port: int) -> str:
        return f"127.0.0.1:{port}"


class _ZooKeeper:
    def children(self, folder: Path, ports: Sequence[tuple[int, int]]) -> list[Child]:
        jars = tools.jars("zookeeper")
        elections = free_ports(len(ports))
        servers = "".join(
            f"server.{n}=127.0.0.1:{peer}:{election}\n"
            for n, ((peer, _), election) in enumerate(zip(ports, elections, strict=True), 1)
        )
        children = []
        for n, (_, client) in enumerate(ports, 1):
            data = folder / f"data-{n}"
            data.mkdir()
            (data / "myid").write_text(f"{n}\n")
            config = folder / f"zoo-{n}.cfg"
            config.write_text(
                f"tickTime=2000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0\ndataDir={data}\n"
                f"clientPort={client}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                f"4lw.commands.whitelist=srvr\n{servers}"
            )
            program = (tools.java(), "-Xmx2g", "-cp", f"{jars}/*")
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            children.append(
                Child(f"zookeeper-{n}", [main, str(config)], folder / f"{n}.log", program)
            )
        return children

    def endpoint(self, port: int) -> str:
        return f"127.0.0.1:{port}"


class _KRaft:
    _CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
    """A cluster id as Kafka's tools print it: 22 characters of base64."""

    def children(self, folder: Path, ports: Sequence[tuple[int, int]]) -> list[Child]:
        jars = tools.jars("kafka")
        program = (tools.java(), "-Xmx2g", "-Dlog4j2.level=ERROR", "-cp", f"{jars}/*")
        voters = ",".join(f"{n}@127.0.0.1:{client}" for n, (_, client) in enumerate(ports, 1))
        children = []
        for n, (_, client) in enumerate(ports, 1):
            config = folder / f"controller-{n}.properties"
            config.write_text(
                f"process.roles=controller\nnode.id={n}\ncontroller.quorum.voters={voters}\n"
                f"listeners=CONTROLLER://127.0.0.1:{client}\ncontroller.listener.names=CONTROLLER\n"
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
                # No records without content: they would look like changes to those who watch.
                f"metadata.max.idle.interval.ms=0\nlog.dirs={folder / f'data-{n}'}\n"
            )
            format_it = [
                "kafka.tools.StorageTool",
                "format",
                "-t",
                self._CLUSTER,
                "-c",
                str(config),
            ]
            done = subprocess.run(
                [*program, *format_it], capture_output=True, text=True, check=False, timeout=120
            )
            if done.returncode != 0:
                raise tools.NoToolError(
                    f"StorageTool failed: {(done.stdout + done.stderr)[-2000:]}"
                )
            arguments = ["kafka.Kafka", str(config)]
            children.append(Child(f"kraft-{n}", arguments, folder / f"{n}.log", program))
        return children

    def endpoint(self, port: int) -> str:
        return f"127.0.0.1:{port}"


NODES_OF: Final[dict[str, Nodes]] = {
    "logberg": _Logberg(),
    "etcd": _Etcd(),
    "zookeeper": _ZooKeeper(),
    "kraft": _KRaft(),
}
