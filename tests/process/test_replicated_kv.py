"""The replicated key-value example keeps what it acknowledged, whatever happens to its nodes.

Two clients write while the nodes are restarted one after another, killed, and stopped for longer
than a session. After each step every partition must have a leader and a full ISR within 30 seconds.
At the end every acknowledged value is read back.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
NODES = (1, 2, 3)
PARTITIONS = 4
FULL_WITHIN_S = 30.0


class Service:
    """The example's three nodes on a cluster of three controllers."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.cluster = cluster
        base = cluster.local.file.port_base + 290
        self.ports = {n: base + n for n in NODES}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, n: int) -> None:
        with (self.cluster.folder / f"kv-{n}.output").open("ab") as output:
            arguments = ["-m", "examples.replicated_kv", str(n), str(self.ports[n])]
            self.processes[n] = subprocess.Popen(
                [sys.executable, *arguments, str(self.cluster.folder)],
                cwd=ROOT,
                stdout=output,
                stderr=output,
            )

    def signal(self, n: int, number: int) -> None:
        self.processes[n].send_signal(number)

    def end(self, n: int, number: int) -> None:
        """End a node and wait for its process."""
        self.signal(n, number)
        code = self.processes[n].wait(30.0)
        assert number == signal.SIGKILL or code == 0, self.output(n)

    def stop_all(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
                process.wait(30.0)

    def output(self, n: int) -> str:
        return (self.cluster.folder / f"kv-{n}.output").read_text(errors="replace")[-3_000:]

    def partitions(self) -> list[dict[str, Any]]:
        answer = self.cluster.ask(self.cluster.url(self.cluster.leader()), "GET", "/v1/topics/kv")
        assert answer.status == 200, answer
        found: list[dict[str, Any]] = answer.body["topics"][0]["partitions"]
        return found

    def is_full(self) -> bool:
        parts = self.partitions()
        return all(len(part["isr"]) == len(NODES) and part["leader"] in NODES for part in parts)

    def until_full(self, step: str) -> None:
        what = f"every ISR is full after {step}\n{self.output(1)}"
        self.cluster.until(self.is_full, what, FULL_WITHIN_S)

    def call(self, method: str, n: int, key: str, value: str | None = None) -> str:
        """Ask one node, and follow it to the leader. Raises OSError."""
        url = f"http://127.0.0.1:{self.ports[n]}/{key}"
        for _ in range(3):
            data = None if value is None else value.encode()
            request = urllib.request.Request(url, data, method=method)
            try:
                with _NO_REDIRECTS.open(request, timeout=12.0) as answer:
                    text: str = answer.read().decode()
                    return text
            except urllib.error.HTTPError as error:
                if error.code != 307:
                    raise
                url = error.headers["Location"]
        raise OSError("the nodes send the client in circles")


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Let `call` follow: this class would turn a PUT into a GET."""


_NO_REDIRECTS = urllib.request.build_opener(_StayHere)


class Writer(threading.Thread):
    """Writes new keys, each until it is acknowledged, until told to end."""

    def __init__(self, service: Service, number: int) -> None:
        super().__init__(daemon=True)
        self.service = service
        self.number = number
        self.acknowledged: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.ended.is_set():
            count += 1
            if self._write(f"{self.number}-{count}"):
                self.acknowledged.append(f"{self.number}-{count}")
            time.sleep(0.01)

    def _write(self, key: str) -> bool:
        attempt = 0
        while not self.ended.is_set():
            attempt += 1
            try:
                self.service.call("PUT", NODES[attempt % 3], key, f"value of {key}")
            except OSError:
                time.sleep(0.1)
            else:
                return True
        return False


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with running(tmp_path, brokers=0) as cluster:
        service = Service(cluster)
        try:
            for n in NODES:
                service.start(n)
            cluster.until(
                lambda: (
                    len(cluster.broker_states()) == len(NODES)
                    and set(cluster.broker_states().values()) == {"online"}
                ),
                "the nodes are online",
            )
            yield service
        finally:
            service.stop_all()


def test_no_acknowledged_write_is_lost_and_every_isr_grows_again(service: Service) -> None:
    service.cluster.create("kv", partitions=PARTITIONS, replication_factor=3)
    writers = [Writer(service, number) for number in (1, 2)]
    for writer in writers:
        writer.start()
    service.until_full("the start")
    for n in NODES:
        service.end(n, signal.SIGTERM)
        service.start(n)
        service.until_full(f"the restart of node {n}")
    for n in NODES:
        service.end(n, signal.SIGKILL)
        time.sleep(0.5)
        service.start(n)
        service.until_full(f"the kill of node {n}")
    for n in NODES[:2]:
        # Longer than a session: the node is fenced, and finds its lease gone when it goes on.
        service.signal(n, signal.SIGSTOP)
        time.sleep(5.0)
        assert any(len(part["isr"]) < len(NODES) for part in service.partitions())
        service.signal(n, signal.SIGCONT)
        service.until_full(f"the pause of node {n}")
    for writer in writers:
        writer.ended.set()
    for writer in writers:
        writer.join(60.0)
    keys = [key for writer in writers for key in writer.acknowledged]
    assert len(keys) > 100
    lost = [key for key in keys if service.call("GET", 1, key) != f"value of {key}"]
    assert not lost
