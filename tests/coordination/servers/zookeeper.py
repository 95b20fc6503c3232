"""A real ZooKeeper on loopback: one server or three, started, frozen, killed and started again.

Rule: the jars come by Maven through `benchmarks.peers.tools`. Where these can't be had,
`NoToolError` says why, and a test says "not run" with that reason.
"""

import shutil
import signal
import socket
import time
from pathlib import Path

from benchmarks.peers import tools
from coordination.backend import Auth
from logberg.local.child import Child, stop_all
from tests.conformance.ports import free_port

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeperServers:
    """The servers of one ensemble, each with its own files below one folder."""

    name = "zookeeper"
    user: Auth | None = None
    """Nobody needs credentials."""

    def __init__(
        self, folder: Path, count: int = 1, *, tick_ms: int = 200, most_ttl_ms: int = 40_000
    ) -> None:
        """Configure fresh servers. Raises NoToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        jars = tools.jars("zookeeper")
        # Nobody pulls the plug here: without fsync a commit takes 1 ms and not 12.
        quick = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no")
        program = (tools.java(), *quick, "-cp", f"{jars}/*")
        self.ports = [free_port() for _ in range(count)]
        members = "".join(
            f"server.{n}=127.0.0.1:{free_port()}:{free_port()}\n" for n in range(1, count + 1)
        )
        self.children: list[Child] = []
        for n, port in enumerate(self.ports, 1):
            data = folder / f"data-{n}"
            data.mkdir()
            (data / "myid").write_text(f"{n}\n")
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

    @property
    def endpoints(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def start(self, limit_s: float = 60.0) -> None:
        """Start those that don't run, and wait until all serve."""
        for child in self.children:
            child.start()
        until = time.monotonic() + limit_s
        while not all("Mode:" in self.ask(n, b"srvr") for n in range(len(self.ports))):
            if time.monotonic() > until:
                words = [child.last_words() for child in self.children]
                raise TimeoutError(f"ZooKeeper doesn't serve after {limit_s:.0f} s: {words}")
            time.sleep(0.05)

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

    def leader(self) -> int:
        """The number of the server that leads, from 0."""
        modes = [self.ask(n, b"srvr") for n in range(len(self.ports))]
        return next(n for n, mode in enumerate(modes) if "leader" in mode or "standalone" in mode)

    def wait_for_leader(self, limit_s: float = 30.0) -> None:
        """Wait until a server of several leads."""
        until = time.monotonic() + limit_s
        while not any("leader" in self.ask(n, b"srvr") for n in range(len(self.ports))):
            if time.monotonic() > until:
                raise TimeoutError(f"no server of ZooKeeper leads after {limit_s:.0f} s")
            time.sleep(0.05)

    def freeze(self) -> None:
        for child in self.children:
            child.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for child in self.children:
            child.signal(signal.SIGCONT)

    def kill(self) -> None:
        for child in self.children:
            child.kill()

    def stop(self) -> None:
        stop_all(self.children, 10)
