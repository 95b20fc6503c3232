"""Reports to a service manager: readiness once, beats in time, nothing where nobody listens."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from runtime.service_manager import NotifySocket, ServiceProgress, Supervised, notify_socket
from runtime.simulated.clock import SimulatedClock
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World


class Listening:
    """A service manager's end of the socket."""

    def __init__(self, path: str | bytes) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setblocking(False)
        self.others: list[Any] = []
        """The processes' ends."""

    def close(self) -> None:
        for each in (*self.others, self.socket):
            each.close()

    def heard(self) -> list[str]:
        """All lines that have come."""
        lines: list[str] = []
        while True:
            try:
                lines += self.socket.recv(65536).decode().split("\n")
            except BlockingIOError:
                return lines


class Node:
    """A process on a simulated clock that reports every thing it is."""

    def __init__(self, listening: Listening, watchdog_s: float | None) -> None:
        self._listening = listening
        self.world = World(1)
        self.progress = ServiceProgress(ready=False, stopping=False, status="loading")
        notify = NotifySocket(listening.path, watchdog_s)
        listening.others.append(notify)
        self.supervised = Supervised(
            notify,
            SimulatedClock(SimulatedProcess(self.world, 1)),
            lambda: self.progress,
            structlog.get_logger(),
        )

    def run(self, seconds: int) -> list[str]:
        """Let time pass, and return what was heard; a socket holds ten reports only."""
        lines: list[str] = []
        for _ in range(seconds):
            self.world.run_for(1.0)
            lines += self._listening.heard()
        return lines

    def be(self, *, ready: bool = True, stopping: bool = False, status: str = "it leads") -> None:
        self.progress = ServiceProgress(ready, stopping, status)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    found = Listening(str(tmp_path / "notify"))
    yield found
    found.close()


def test_readiness_is_reported_once_and_each_status_when_it_changes(listening: Listening) -> None:
    node = Node(listening, None)
    node.supervised.begin()
    assert listening.heard() == ["STATUS=loading", "EXTEND_TIMEOUT_USEC=30000000"]
    node.be(status="no leader\nis known")
    assert node.run(1) == ["READY=1", "STATUS=no leader is known"]
    assert node.run(60) == []
    node.be()
    assert node.run(1) == ["STATUS=it leads"]
    node.supervised.end()
    assert listening.heard() == ["STOPPING=1"]


def test_a_start_that_goes_on_gets_more_time(listening: Listening) -> None:
    node = Node(listening, None)
    node.supervised.begin()
    listening.heard()
    assert node.run(29).count("EXTEND_TIMEOUT_USEC=30000000") == 5
    node.be()
    node.run(1)
    node.be(stopping=True, status="stopping")
    heard = node.run(6)
    assert heard.count("STOPPING=1") == 1
    assert heard.count("EXTEND_TIMEOUT_USEC=30000000") == 2


def test_beats_come_three_times_in_the_watchdogs_limit(listening: Listening) -> None:
    node = Node(listening, 3.0)
    node.be()
    node.supervised.begin()
    assert 24 <= node.run(30).count("WATCHDOG=1") <= 31
    node.supervised.end()
    assert listening.heard() == ["STOPPING=1"]
    assert node.run(10) == []


def test_a_reload_says_when_it_begins_and_ends(listening: Listening) -> None:
    node = Node(listening, None)
    node.be()
    node.supervised.begin()
    listening.heard()
    done: list[list[str]] = []
    node.supervised.reload(lambda: done.append(listening.heard()))
    begin, moment = done[0]
    assert begin == "RELOADING=1"
    assert moment.startswith("MONOTONIC_USEC=")
    assert listening.heard() == ["READY=1"]


def test_a_reload_before_readiness_does_not_report_readiness(listening: Listening) -> None:
    node = Node(listening, None)
    node.supervised.begin()
    listening.heard()
    done: list[int] = []
    node.supervised.reload(lambda: done.append(1))
    assert done == [1]
    assert listening.heard() == []


def test_what_a_service_manager_missed_is_sent_again(tmp_path: Path) -> None:
    listening = Listening(str(tmp_path / "notify"))
    node = Node(listening, None)
    node.be()
    listening.socket.close()
    with capture_logs() as logs:
        node.supervised.begin()
        node.world.run_for(2.0)
    assert [line["event"] for line in logs] == ["service_manager_not_told"]
    (tmp_path / "notify").unlink()
    back = Listening(str(tmp_path / "notify"))
    node.world.run_for(1.0)
    assert back.heard() == ["READY=1", "STATUS=it leads"]
    back.close()
    listening.close()


def test_the_environment_names_the_socket_and_children_do_not_inherit_it(tmp_path: Path) -> None:
    listening = Listening(str(tmp_path / "notify"))
    environment = {
        "NOTIFY_SOCKET": str(listening.path),
        "WATCHDOG_USEC": "20000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    found = notify_socket(environment)
    assert found is not None
    assert found.watchdog_s == 20.0
    assert environment == {"HOME": "/"}
    found.send("READY=1")
    assert listening.heard() == ["READY=1"]
    found.close()
    listening.socket.close()


def test_an_abstract_socket_is_found() -> None:
    name = f"logberg-test-{os.getpid()}"
    listening = Listening(b"\0" + name.encode())
    found = notify_socket({"NOTIFY_SOCKET": f"@{name}"})
    assert found is not None
    assert found.watchdog_s is None
    found.send("READY=1")
    assert listening.heard() == ["READY=1"]
    found.close()
    listening.socket.close()


@pytest.mark.parametrize(
    "environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}]
)
def test_without_a_socket_there_is_nobody_to_report_to(environment: dict[str, str]) -> None:
    assert notify_socket(environment) is None


@pytest.mark.parametrize("limit", ["", "0", "-1", "soon"])
def test_a_limit_that_is_no_number_is_none(limit: str) -> None:
    found = notify_socket({"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": limit})
    assert found is not None
    assert found.watchdog_s is None
    found.close()


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    found = notify_socket(
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}
    )
    assert found is not None
    assert found.watchdog_s is None
    found.close()
