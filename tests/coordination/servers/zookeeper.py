"""A real ZooKeeper on loopback: one server or three, started, frozen, killed and started again.

Rule: the jars come by Maven through `benchmarks.peers.tools`. Where these can't be had,
`NoToolError` says why, and a test says "not run" with that reason.
"""

import shutil
import socket
from pathlib import Path

from benchmarks.peers import tools
from coordination.backend import Auth
from logberg.local.child import Child
from tests.conformance.ports import free_port
from tests.coordination.servers.peer_gate import PeerGate
from tests.coordination.servers.server_group import ServerGroup

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeperServers(ServerGroup):
    """The servers of one ensemble, each with its own files below one folder."""

    name = "zookeeper"
    stop_s = 10.0
    user: Auth | None = None
    """Nobody needs credentials."""

    def __init__(
        self,
        folder: Path,
        count: int = 1,
        *,
        tick_ms: int = 200,
        most_ttl_ms: int = 40_000,
        gate: PeerGate | None = None,
    ) -> None:
        """Configure fresh servers, which reach each other through a gate. Raises NoToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        jars = tools.jars("zookeeper")
        # Nobody pulls the plug here: without fsync a commit takes 1 ms and not 12.
        quick = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no")
        program = (tools.java(), *quick, "-cp", f"{jars}/*")
        self.ports = [free_port() for _ in range(count)]
        own = [(free_port(), free_port()) for _ in self.ports]
        """For the leader's followers, and for elections."""
        others = own
        if gate is not None:
            others = [(gate.before(a, n), gate.before(b, n)) for n, (a, b) in enumerate(own)]
        self.children: list[Child] = []
        for n, port in enumerate(self.ports, 1):
            data = folder / f"data-{n}"
            data.mkdir()
            (data / "myid").write_text(f"{n}\n")
            # A server listens where its own file says that it is.
            told = [*others[: n - 1], own[n - 1], *others[n:]]
            members = "".join(f"server.{m}=127.0.0.1:{a}:{b}\n" for m, (a, b) in enumerate(told, 1))
            config = folder / f"zoo-{n}.cfg"
            config.write_text(
                f"tickTime={tick_ms}\ninitLimit=50\nsyncLimit=25\nmaxClientCnxns=0\ndataDir={data}\n"
                f"minSessionTimeout={2 * tick_ms}\nmaxSessionTimeout={most_ttl_ms}\n"
                f"clientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                f"4lw.commands.whitelist=*\n{members if count > 1 else ''}"
            )
            self.children.append(
                Child(f"zookeeper-{n}", [MAIN, str(config)], folder / f"{n}.log", program)
            )

    def serves(self, n: int) -> bool:
        return "Mode:" in self.ask(n, b"srvr")

    def leads(self, n: int) -> bool:
        """Also a server that is alone."""
        mode = self.ask(n, b"srvr")
        return "leader" in mode or "standalone" in mode

    def ask(self, server: int, command: bytes) -> str:
        """Send one of ZooKeeper's words of four letters; empty when nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.ports[server]), 2) as link:
                link.sendall(command)
                answer = b""
                while piece := link.recv(65536):
                    answer += piece
        except OSError:
            return ""
        return answer.decode()

    def watches(self) -> int:
        """How many watches all servers hold."""
        return sum(
            int(line.split()[1])
            for n in range(len(self.ports))
            for line in self.ask(n, b"mntr").splitlines()
            if line.startswith("zk_watch_count")
        )
