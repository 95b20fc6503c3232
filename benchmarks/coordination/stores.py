"""The stores that are compared: three nodes each, on loopback and on a real disk.

Rule: durability and all other settings are the store's defaults, as in `benchmarks.peers`. Clients
get all nodes, the leader first.
"""

import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.instruments.cluster import cpu_s
from benchmarks.peers.services import Service

_ASK_S: Final = 2.0
STORES: Final = ("logberg", "etcd", "zookeeper")
_URLS: Final = {
    "logberg": "quorum+http://{}",
    "etcd": "etcd+http://{}/benchmark",
    "zookeeper": "zookeeper://{}/benchmark",
}


class RunningStore:
    """One store that serves."""

    def __init__(self, name: str, service: Service) -> None:
        self.name = name
        self._service = service

    @property
    def url(self) -> str:
        """What `connect` takes."""
        hosts = ",".join(one.removeprefix("http://") for one in self._service.endpoints)
        return _URLS[self.name].format(hosts)

    def cpu_s(self) -> float:
        """Processor time that all nodes have used, in seconds."""
        return sum(cpu_s(pid) for pid in self._service.pids)


@contextmanager
def running_store(name: str, folder: Path) -> Iterator[RunningStore]:
    """Start three fresh nodes, and end them. Raises NoToolError, RuntimeError."""
    service = Service(name, folder / name)
    try:
        service.start(find_leader)
        yield RunningStore(name, service)
    finally:
        service.stop()


def find_leader(service: str, endpoints: list[str]) -> int | None:
    """Return the number of the endpoint that leads, or None."""
    for number, endpoint in enumerate(endpoints):
        try:
            if _LEADS[service](endpoint):
                return number
        except (OSError, msgspec.DecodeError, KeyError):
            continue
    return None


def _controller_leads(endpoint: str) -> bool:
    return bool(_json(f"{endpoint}/v1/status", None)["active"])


def _etcd_leads(endpoint: str) -> bool:
    status = _json(f"http://{endpoint}/v3/maintenance/status", b"{}")
    return bool(status["header"]["member_id"] == status["leader"])


def _zookeeper_leads(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    with socket.create_connection((host, int(port)), _ASK_S) as link:
        link.sendall(b"srvr")
        answer = b""
        while piece := link.recv(65536):
            answer += piece
    return b"Mode: leader" in answer


def _json(url: str, body: bytes | None) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=_ASK_S) as answer:
        return msgspec.json.decode(answer.read())


_LEADS: Final[dict[str, Callable[[str], bool]]] = {
    "logberg": _controller_leads,
    "etcd": _etcd_leads,
    "zookeeper": _zookeeper_leads,
}
