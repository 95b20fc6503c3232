"""A cluster of real processes of which each is a controller and a broker's agent at once."""

import datetime as dt
import signal
from pathlib import Path
from typing import Any

from logberg.local.local_ca import LocalCertificateAuthority
from logberg.local.ports import AGENT_PORT
from tests.process.running_cluster import RunningCluster

_BROKER = """
[broker]
data = "{data}"
http = "127.0.0.1:{port}"
holds_no_data = true
stop_silence_ms = 8000

[[broker.endpoints]]
name = "PLAINTEXT"
host = "127.0.0.1"
port = {port}

[broker.tls]
cert = "{cert}"
key = "{key}"
ca = "{ca}"
"""


class CombinedCluster(RunningCluster):
    """Node n is controller n and broker n."""

    def __init__(self, folder: Path, nodes: int = 3, **settings: Any) -> None:
        super().__init__(folder, nodes, **settings)
        authority = LocalCertificateAuthority(
            self.folder / "certs", self.local.cluster_id, dt.datetime.now(dt.UTC)
        )
        for n in self.local.controllers:
            cert, key = authority.issue(f"broker-{n}", f"broker://{self.local.cluster_id}/{n}")
            path = self.folder / "config" / f"controller-{n}.toml"
            more = _BROKER.format(
                data=self.folder / f"broker-{n}",
                port=self.agent_port(n),
                cert=cert,
                key=key,
                ca=self.local.file.ca,
            )
            path.write_text(path.read_text() + more)

    def agent_port(self, n: int) -> int:
        """The port of a node's agent."""
        return self.local.file.port_base + AGENT_PORT + n - 1

    def settled(self) -> bool:
        """All controllers answer, one leads, and every agent is online."""
        states = self.broker_states()
        return super().settled() and all(states.get(n) == "online" for n in self.local.controllers)

    def list_partitions(self, condition: str) -> list[dict[str, Any]]:
        """The partitions of which a condition holds: leaderless or underReplicated."""
        path = f"/v1/partitions?{condition}=true"
        answer = self.ask(self.url(self.leader()), "GET", path)
        assert answer.status == 200, answer
        found: list[dict[str, Any]] = answer.body["partitions"]
        return found

    def stop_node(self, n: int, limit_s: float = 30.0) -> int | None:
        """Ask a node to stop, wait for its end, and return its exit code; None: it still runs."""
        child = self.controller(n)
        child.signal(signal.SIGTERM)
        return child.exit_code if child.wait(limit_s) else None

    def events(self, n: int, *names: str) -> list[str]:
        """Which of these events a node logged, in their order."""
        return [
            name
            for line in self.output(f"controller-{n}").splitlines()
            for name in names
            if f'"event": "{name}"' in line
        ]
