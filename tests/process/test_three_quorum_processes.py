"""Three real processes agree on bytes: real files, real sockets, real kills."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.ports import free_port

pytestmark = pytest.mark.process

PATIENCE_S = 20.0
COMMAND = (sys.executable, "-m", "tests.process.quorum_process")


class Node:
    """One process, and all that it said."""

    def __init__(self, folder: Path, node_id: int, ports: list[int]) -> None:
        self.folder, self.node_id, self.ports = folder, node_id, ports
        self.said: list[dict[str, Any]] = []
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.start()

    def start(self) -> None:
        self.said = []
        self._lines = queue.Queue()
        ports = ",".join(map(str, self.ports))
        self.process = subprocess.Popen(
            [*COMMAND, str(self.folder), str(self.node_id), ports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, args=(self._lines,), daemon=True).start()

    def _read(self, lines: "queue.Queue[dict[str, Any]]") -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.put(json.loads(line))

    def send(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def wait_for(
        self, wanted: Callable[[dict[str, Any]], bool], patience_s: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Return the next line, from where we read last, that is wanted."""
        until = time.monotonic() + patience_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"node {self.node_id} never said it; it said {self.said[-20:]}"
                ) from None
            self.said.append(line)
            if wanted(line):
                return line

    def ask(self, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return self.wait_for(lambda line: "answer" in line)

    def status(self) -> dict[str, Any]:
        return self.ask(do="status")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> None:
        self.process.wait(timeout=PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


class Trio:
    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        self.nodes = {n: Node(folder / f"node-{n}", n, ports) for n in (1, 2, 3)}

    def leader(self) -> Node:
        """Wait until a process leads and has reported it."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for node in self.nodes.values():
                alive = node.process.poll() is None
                if alive and node.status()["role"] == "leader" and node.ask(do="read")["ready"]:
                    return node
            time.sleep(0.02)
        raise AssertionError(f"nobody leads: {[n.status() for n in self.nodes.values()]}")

    def propose(self, payloads: list[str]) -> Node:
        leader = self.leader()
        leader.send(do="propose", payloads=payloads)
        leader.wait_for(lambda line: line.get("payload") == payloads[-1])
        return leader

    def agree(self, count: int) -> str:
        """Wait until all have delivered `count` payloads, and return their common digest."""
        until = time.monotonic() + PATIENCE_S
        while True:
            states = {n: node.status() for n, node in self.nodes.items()}
            if all(state["count"] >= count for state in states.values()):
                digests = {state["digest"] for state in states.values()}
                assert len(digests) == 1, states
                return digests.pop()
            assert time.monotonic() < until, states
            time.sleep(0.05)


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    trio = Trio(tmp_path)
    try:
        yield trio
    finally:
        for node in trio.nodes.values():
            if node.process.poll() is None:
                node.kill()


def test_they_agree_and_outlive_a_killed_leader(trio: Trio) -> None:
    leader = trio.propose([f"first {number}" for number in range(200)])
    trio.agree(200)

    leader.kill()
    second = trio.propose([f"second {number}" for number in range(200)])
    assert second is not leader

    leader.start()
    before = trio.agree(400)

    for node in trio.nodes.values():
        node.kill()
    for node in trio.nodes.values():
        node.start()
    trio.leader()
    assert trio.agree(400) == before


def test_a_leader_that_stops_in_order_hands_over(trio: Trio) -> None:
    leader = trio.propose(["one"])
    began = time.monotonic()
    leader.send(do="stop")
    leader.wait_for(lambda line: line.get("event") == "stopped_in_order")
    leader.end()
    assert leader.process.returncode == 0
    trio.leader()
    # No silence was waited out: the successor was told.
    assert time.monotonic() - began < PATIENCE_S
    leader.start()
    trio.propose(["two"])
    trio.agree(2)


def test_a_wiped_disk_comes_back_as_an_observer_and_holds_everything(
    trio: Trio, tmp_path: Path
) -> None:
    trio.propose([f"kept {number}" for number in range(50)])
    victim = next(n for n in trio.nodes.values() if n is not trio.leader())
    victim.kill()
    victim.folder = tmp_path / "a-new-disk"
    victim.start()
    trio.propose(["more"])
    trio.agree(51)
    assert victim.status()["role"] == "observer"


def test_a_second_process_on_one_folder_is_refused(trio: Trio) -> None:
    first = trio.leader()
    second = subprocess.run(
        [*COMMAND, str(first.folder), "1", ",".join(str(free_port()) for _ in range(3))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert second.returncode != 0
    assert "in use" in second.stderr
