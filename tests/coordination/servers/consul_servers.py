"""A real Consul on loopback: one server or three, started, frozen, killed and started again.

Rule: the program is Consul's own, built from its Go module by `benchmarks.peers.tools`. Where it
can't be built, `NoToolError` says why, and a test says "not run" with that reason.
"""

import shutil
import urllib.error
import urllib.request
from pathlib import Path

import msgspec

from benchmarks.peers import tools
from logberg.local.child import Child
from tests.conformance.ports import free_port
from tests.coordination.servers.server_group import ServerGroup

_ABOVE = 9_000
TOKEN = "5ec7e7aa-0000-4000-8000-000000000001"
"""May do everything; without it nothing is allowed."""


class ConsulServers(ServerGroup):
    """The servers of one datacenter, each with its own files below one folder."""

    name = "consul"
    stop_s = 5.0

    def __init__(self, folder: Path, count: int = 1, *, least_ttl_s: float = 2.0) -> None:
        """Configure fresh servers. Raises NoToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program = (str(tools.go_program("consul")),)
        self.ports = [free_port() for _ in range(count)]
        # Serf listens on UDP too, and `free_port` keeps the UDP port of its number.
        serfs = [free_port() + _ABOVE for _ in range(count)]
        self.children = []
        for n, (port, serf) in enumerate(zip(self.ports, serfs, strict=True)):
            none = dict.fromkeys(("dns", "grpc", "https", "serf_wan"), -1)
            config = {
                "node_name": f"n{n}",
                "datacenter": "tests",
                "server": True,
                "bootstrap_expect": count,
                "data_dir": str(folder / f"data-{n}"),
                "bind_addr": "127.0.0.1",
                "client_addr": "127.0.0.1",
                "ports": {**none, "http": port, "serf_lan": serf, "server": free_port()},
                "retry_join": [f"127.0.0.1:{each}" for each in serfs if each != serf],
                "retry_interval": "100ms",
                "session_ttl_min": f"{least_ttl_s}s",
                # As Consul advises for production; its default is for slow machines.
                "performance": {"raft_multiplier": 1},
                # A killed server stays a voter, and votes again as soon as it is back.
                "autopilot": {
                    "cleanup_dead_servers": False,
                    "server_stabilization_time": "100ms",
                },
                "limits": {"http_max_conns_per_client": 10_000},
                "disable_update_check": True,
                "log_level": "ERROR",
                "acl": {
                    "enabled": True,
                    "default_policy": "deny",
                    "tokens": {"initial_management": TOKEN, "agent": TOKEN, "default": ""},
                },
            }
            file = folder / f"consul-{n}.json"
            file.write_bytes(msgspec.json.encode(config))
            arguments = ["agent", "-config-file", str(file)]
            self.children.append(Child(f"consul-{n}", arguments, folder / f"{n}.log", program))

    def serves(self, n: int) -> bool:
        """Whether it knows a leader, and sessions can be made on its node."""
        made = self.ask(n, "PUT", "/v1/session/create")
        return made is not None and self.ask(n, "PUT", f"/v1/session/destroy/{made['ID']}") is True

    def leads(self, n: int) -> bool:
        stats = self.ask(n, "GET", "/v1/agent/self") or {}
        told: str | None = stats.get("Stats", {}).get("consul", {}).get("leader")
        return told == "true"

    def ask(self, n: int, method: str, path: str, limit_s: float = 5.0):
        """Send one server a request; None: it gave no good answer."""
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[n]}{path}",
            method=method,
            headers={"X-Consul-Token": TOKEN},
        )
        try:
            with urllib.request.urlopen(asked, timeout=limit_s) as response:
                return msgspec.json.decode(response.read())
        except OSError:
            return None

    def revision(self) -> int:
        """Return the index of the keys, by the server that answers first."""
        for port in self.ports:
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/kv/?keys&consistent",
                headers={"X-Consul-Token": TOKEN},
            )
            try:
                with urllib.request.urlopen(asked, timeout=5) as response:
                    return int(response.headers["X-Consul-Index"])
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return int(error.headers["X-Consul-Index"])
            except OSError:
                continue
        raise RuntimeError("no server of Consul answers")
