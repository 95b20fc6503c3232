"""A real Consul on loopback: one server or three, started, frozen, killed and started again.

Rule: the program is Consul's own, built from its Go module by `benchmarks.peers.tools`. Where it
can't be built, `NoToolError` says why, and a test says "not run" with that reason.
"""

import shutil
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import msgspec

from benchmarks.peers import tools
from logberg.local.child import Child, stop_all
from tests.conformance.ports import free_port

_ABOVE = 9_000
TOKEN = "5ec7e7aa-0000-4000-8000-000000000001"
"""May do everything; without it nothing is allowed."""


class ConsulServers:
    """The servers of one datacenter, each with its own files below one folder."""

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

    @property
    def endpoints(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def start(self, limit_s: float = 60.0) -> None:
        """Start those that don't run, and wait until all serve."""
        for child in self.children:
            child.start()
        until = time.monotonic() + limit_s
        for n in range(len(self.children)):
            while not self._serves(n):
                if time.monotonic() > until:
                    words = {child.name: child.last_words() for child in self.children}
                    raise RuntimeError(f"Consul doesn't serve after {limit_s:.0f} s: {words}")
                time.sleep(0.1)

    def stop(self) -> None:
        """End all."""
        for child in self.children:
            child.signal(signal.SIGCONT)
        stop_all(self.children, 5)

    def kill(self, n: int) -> None:
        """End one at once."""
        self.children[n].kill()

    def leader(self, limit_s: float = 30.0) -> int:
        """Return the number of the server that leads."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            for n in range(len(self.children)):
                stats = self.ask(n, "GET", "/v1/agent/self") or {}
                if stats.get("Stats", {}).get("consul", {}).get("leader") == "true":
                    return n
            time.sleep(0.1)
        raise RuntimeError("no server of Consul leads")

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

    def _serves(self, n: int) -> bool:
        """Whether it knows a leader, and sessions can be made on its node."""
        made = self.ask(n, "PUT", "/v1/session/create")
        return made is not None and self.ask(n, "PUT", f"/v1/session/destroy/{made['ID']}") is True
