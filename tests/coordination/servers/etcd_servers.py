"""A real etcd on loopback: one server or three, started, frozen, killed and started again.

Rule: the program is etcd's own, built from its Go module by `benchmarks.peers.tools`. Where it
can't be built, `NoToolError` says why, and a test says "not run" with that reason.
"""

import shutil
import urllib.request
from pathlib import Path

import msgspec

from benchmarks.peers import tools
from logberg.local.child import Child
from tests.conformance.ports import free_port
from tests.coordination.servers.peer_gate import PeerGate
from tests.coordination.servers.server_group import ServerGroup


class EtcdServers(ServerGroup):
    """The servers of one cluster, each with its own files below one folder."""

    name = "etcd"

    def __init__(self, folder: Path, count: int = 1, gate: PeerGate | None = None) -> None:
        """Configure fresh servers, which reach each other through a gate. Raises NoToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program = (str(tools.go_program("etcd")),)
        self.ports = [free_port() for _ in range(count)]
        self.root_password: str | None = None
        peers = [free_port() for _ in range(count)]
        told = [gate.before(peer, n) if gate else peer for n, peer in enumerate(peers)]
        urls = [f"http://127.0.0.1:{port}" for port in told]
        cluster = ",".join(f"n{n}={url}" for n, url in enumerate(urls))
        self.children = [
            Child(
                f"etcd-{n}",
                [
                    *("--name", f"n{n}", "--data-dir", str(folder / f"data-{n}")),
                    *("--listen-peer-urls", f"http://127.0.0.1:{peers[n]}"),
                    *("--initial-advertise-peer-urls", urls[n]),
                    *("--listen-client-urls", f"http://127.0.0.1:{port}"),
                    *("--advertise-client-urls", f"http://127.0.0.1:{port}"),
                    *("--initial-cluster", cluster, "--initial-cluster-state", "new"),
                    *("--log-level", "error", "--bcrypt-cost", "4"),
                    # Nobody pulls the plug here, and a killed process loses nothing that it wrote.
                    "--unsafe-no-fsync",
                ],
                folder / f"{n}.log",
                program,
            )
            for n, port in enumerate(self.ports)
        ]

    def serves(self, n: int) -> bool:
        """Whether it knows a leader, and reads with it."""
        return self.ask(n, "/v3/kv/range", {"key": "AA==", "keys_only": True}) is not None

    def leads(self, n: int) -> bool:
        status = self.ask(n, "/v3/maintenance/status", {})
        return bool(status) and status["header"]["member_id"] == status.get("leader")

    def ask(self, n: int, path: str, request: dict, limit_s: float = 2.0) -> dict | None:
        """Send one server a request; None: it gave no good answer."""
        headers = {"Content-Type": "application/json"}
        if self.root_password is not None and path != "/v3/auth/authenticate":
            login = {"name": "root", "password": self.root_password}
            answer = self.ask(n, "/v3/auth/authenticate", login, limit_s)
            headers["Authorization"] = answer["token"] if answer else ""
        try:
            asked = urllib.request.Request(
                f"http://127.0.0.1:{self.ports[n]}{path}", msgspec.json.encode(request), headers
            )
            with urllib.request.urlopen(asked, timeout=limit_s) as response:
                return msgspec.json.decode(response.read())
        except OSError:
            return None

    def watches(self) -> int:
        """Count the watches of all servers."""
        total = 0
        for port in self.ports:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
                for line in page.read().decode().splitlines():
                    if line.startswith("etcd_debugging_mvcc_watcher_total "):
                        total += int(float(line.split()[1]))
        return total

    def ask_for_logins(self, password: str) -> None:
        """Make a user `root` with this password, and ask everybody to log in from now on."""
        user = {"name": "root", "password": password}
        assert self.ask(0, "/v3/auth/user/add", user) is not None
        assert self.ask(0, "/v3/auth/role/add", {"name": "root"}) is not None
        assert self.ask(0, "/v3/auth/user/grant", {"user": "root", "role": "root"}) is not None
        assert self.ask(0, "/v3/auth/enable", {}) is not None
        self.root_password = password
