"""Real processes under a service manager of the test's own: ready, beats, stopping, a stuck loop.

The test stands for systemd: it has the notify socket, and aborts the process that misses a beat.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from logberg.local.ports import free_port_base

pytestmark = pytest.mark.process

PATIENCE_S = 40.0
WATCHDOG_S = 1.5
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
CONTROLLER = """
cluster_id = "{cluster}"
node_id = {node}
data = "data-{node}"
authorization = "off"
alter_config_policy = "stuck_policy:Stuck"

[[controllers]]
node_id = 1
quorum = "127.0.0.1:{quorum}"
http = "http://127.0.0.1:{http}"
{more}
"""
TWO_MORE = """
[[controllers]]
node_id = 2
quorum = "127.0.0.1:{second}"
http = "http://127.0.0.1:{second_http}"

[[controllers]]
node_id = 3
quorum = "127.0.0.1:{third}"
http = "http://127.0.0.1:{third_http}"
"""
BROKER = """
cluster_id = "{cluster}"
broker_id = 7
data = "broker"
authorization = "off"
http = "127.0.0.1:{agent}"
controllers = ["http://127.0.0.1:{http}"]

[[endpoints]]
name = "HTTP"
host = "127.0.0.1"
port = {agent}
"""
STUCK = """
import time


class Stuck:
    def validate(self, configs):
        while configs.configs.get("log.retention.ms") == "4711":
            time.sleep(0.01)
"""


class Manager:
    """A service manager's side: one process, its socket, and what the process reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "stuck_policy.py").write_text(STUCK)
        base = free_port_base()
        self.ports = {
            "quorum": base + 91,
            "http": base + 191,
            "agent": base + 291,
            "second": base + 92,
            "second_http": base + 192,
            "third": base + 93,
            "third_http": base + 193,
        }
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(PATIENCE_S)
        self.lines: list[str] = []
        self._passed = 0

    def write(self, role: str, *, more: str = "") -> None:
        text = CONTROLLER if role == "controller" else BROKER
        more = more.format(**self.ports)
        filled = text.format(cluster=CLUSTER, node=1, more=more, **self.ports)
        (self.folder / f"{role}.toml").write_text(filled)

    @contextmanager
    def running(self, role: str, watchdog_s: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
        with (self.folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "logberg", role, "--config", f"{self.folder}/{role}.toml"],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{self.folder}:{Path.cwd()}",
                    "NOTIFY_SOCKET": str(self.path),
                    "WATCHDOG_USEC": str(int(watchdog_s * 1_000_000)),
                },
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE_S)

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def wait_for(self, start: str) -> str:
        """Return the next line that starts so; what came before it is passed over."""
        until = time.monotonic() + PATIENCE_S
        # `watch` leaves a time that only fits it.
        self.socket.settimeout(PATIENCE_S)
        while time.monotonic() < until:
            while self._passed < len(self.lines):
                self._passed += 1
                if self.lines[self._passed - 1].startswith(start):
                    return self.lines[self._passed - 1]
            self.lines += self.socket.recv(65536).decode().split("\n")
        raise AssertionError(f"never: {start}; {self.lines}\n{self.stderr}")

    def watch(self, process: subprocess.Popen[bytes], limit_s: float) -> None:
        """Abort the process as soon as no beat comes within the limit, as systemd does."""
        last = time.monotonic()
        while process.poll() is None:
            self.socket.settimeout(max(0.01, last + limit_s - time.monotonic()))
            try:
                if "WATCHDOG=1" in self.socket.recv(65536).decode().split("\n"):
                    last = time.monotonic()
            except TimeoutError:
                process.send_signal(signal.SIGABRT)
                return

    def change(self, value: str, timeout_s: float) -> int:
        """Change a config, which the policy judges on the loop. Returns the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=timeout_s)
        body = {
            "resources": [
                {
                    "resourceType": "broker",
                    "resourceName": "default",
                    "configs": [{"name": "log.retention.ms", "value": value}],
                }
            ]
        }
        connection.request(
            "PATCH", "/v1/configs", json.dumps(body), {"content-type": "application/json"}
        )
        try:
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        return answer.status


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(tmp_path)
    yield found
    found.socket.close()


def test_a_controller_reports_ready_beats_reloads_and_stops(manager: Manager) -> None:
    manager.write("controller")
    with manager.running("controller", WATCHDOG_S) as process:
        manager.wait_for("READY=1")
        manager.wait_for("STATUS=it leads")
        for _ in range(4):
            manager.wait_for("WATCHDOG=1")
        process.send_signal(signal.SIGHUP)
        manager.wait_for("RELOADING=1")
        manager.wait_for("READY=1")
        process.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING=1")
        assert process.wait(PATIENCE_S) == 0


def test_a_controller_without_a_majority_is_ready_and_says_what_it_waits_for(
    manager: Manager,
) -> None:
    manager.write("controller", more=TWO_MORE)
    with manager.running("controller") as process:
        manager.wait_for("READY=1")
        status = next(line for line in reversed(manager.lines) if line.startswith("STATUS="))
        assert "waits for every configured controller" in status, manager.lines
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_an_agent_reports_ready_beats_and_stops_without_a_controller(manager: Manager) -> None:
    manager.write("broker")
    with manager.running("broker", WATCHDOG_S) as process:
        manager.wait_for("READY=1")
        assert any(line.startswith("STATUS=offline: ") for line in manager.lines), manager.lines
        for _ in range(4):
            manager.wait_for("WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING=1")
        assert process.wait(PATIENCE_S) == 0


def test_a_loop_that_is_stuck_is_aborted_and_the_log_says_in_what(manager: Manager) -> None:
    manager.write("controller")
    with manager.running("controller", WATCHDOG_S) as process:
        manager.wait_for("READY=1")
        manager.wait_for("STATUS=it leads")
        assert manager.change("4712", PATIENCE_S) == 200, manager.stderr
        stuck = threading.Thread(target=_ask_in_vain, args=(manager,))
        stuck.start()
        began = time.monotonic()
        manager.watch(process, WATCHDOG_S)
        assert process.wait(PATIENCE_S) == -signal.SIGABRT
        stuck.join()
        assert time.monotonic() - began < PATIENCE_S / 2
    assert "stuck_policy.py" in manager.stderr
    assert "in validate" in manager.stderr
    # What was acknowledged before is there after the restart.
    with manager.running("controller") as process:
        manager.wait_for("STATUS=it leads")
        assert manager.change("4712", PATIENCE_S) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def _ask_in_vain(manager: Manager) -> None:
    with suppress(OSError, http.client.HTTPException):
        manager.change("4711", PATIENCE_S)
