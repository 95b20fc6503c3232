"""`logberg up`: piped and in a terminal, resumed, stopped, killed, and with a leader killed."""

import fcntl
import json
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from logberg.commands.shown_cluster import print_ended
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from tests.process.leftovers import nothing_is_left, processes_of
from tests.process.running_cluster import PATIENCE_S, POLL_S, Said, logberg

pytestmark = pytest.mark.process

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Up:
    """A running `logberg up`, and all that it has written."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]", output: int) -> None:
        self.folder = folder
        self.process = process
        self._said = b""
        self._output = output
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        # A terminal whose other end is closed is an error, a pipe's is its end.
        with suppress(OSError):
            while piece := os.read(self._output, 65536):
                self._said += piece

    def kill(self) -> None:
        """End it, and read to the end: a reader of a closed descriptor reads another's output."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)

    @property
    def said(self) -> str:
        return _ESCAPES.sub("", self._said.decode(errors="replace"))

    def says(self, pattern: str, since: int = 0) -> "re.Match[str]":
        """Wait for words in what it writes behind `since` characters."""
        until = time.monotonic() + PATIENCE_S + 20.0
        while (found := re.search(pattern, self.said[since:])) is None:
            assert time.monotonic() < until, f"never {pattern!r}; it said {self.said[-3000:]}"
            assert self.process.poll() is None or time.monotonic() < until, self.said[-3000:]
            time.sleep(POLL_S)
        return found

    def ends(self, code: int) -> None:
        assert self.process.wait(PATIENCE_S) == code, self.said
        assert "Traceback" not in self.said
        nothing_is_left(self.folder)

    @property
    def file(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "cluster.json").read_bytes())
        return found

    def pid(self, role: str, number: int) -> int:
        return next(
            node["pid"]
            for node in self.file["nodes"]
            if (node["role"], node["id"]) == (role, number)
        )

    def command(self, *arguments: str) -> Said:
        said = logberg(*arguments, "--data", str(self.folder))
        assert said.code == 0, said
        return said

    def create(self, topic: str) -> None:
        self.command("topics", "create", topic, "--replication-factor", "1")

    def asked(self, *arguments: str) -> Any:
        return json.loads(self.command(*arguments, "--output", "json").out)


def _command(folder: Path, arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "logberg", "up", "--data", str(folder), *arguments]


@contextmanager
def piped(folder: Path, *arguments: str) -> Iterator[Up]:
    """`up` with its output in a pipe."""
    with subprocess.Popen(
        _command(folder, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        up = Up(folder, process, process.stdout.fileno())
        try:
            yield up
        finally:
            up.kill()


@contextmanager
def in_a_terminal(folder: Path, *arguments: str) -> Iterator[tuple[Up, int]]:
    """`up` in a terminal of 50 lines of 180 characters; also yields the keyboard."""
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 180, 0, 0))

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        _command(folder, arguments),
        stdin=screen,
        stdout=screen,
        stderr=screen,
        preexec_fn=take_terminal,  # noqa: PLW1509 - as a terminal does it
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(screen)
    up = Up(folder, process, keyboard)
    try:
        yield up, keyboard
    finally:
        up.kill()
        os.close(keyboard)


def ports() -> tuple[str, str]:
    return "--port-base", str(free_port_base())


def test_piped_resumed_in_a_terminal_and_a_leader_killed_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with piped(folder, *ports(), "--brokers", "2") as up:
        says_where_everything_is(up)
        up.create("kept")
        up.process.send_signal(signal.SIGINT)
        up.says("stopping brokers, then controllers")
        up.says("stopped cleanly")
        up.ends(0)
        assert {node["pid"] for node in up.file["nodes"]} == {None}
    brokers_ended_before_controllers(folder)

    with in_a_terminal(folder) as (up, keyboard):
        up.says("resuming cluster")
        active = int(up.says(r"active controller (\d)").group(1))
        up.says(r"broker +state +epoch")
        up.says(r"(?s)1 +online.*2 +online")
        assert [topic["name"] for topic in up.asked("topics", "list")["topics"]] == ["kept"]

        pid, since = up.pid("controller", active), len(up.said)
        os.kill(pid, signal.SIGKILL)
        up.says(rf"controller-{active} \(process {pid}\) ended with signal SIGKILL", since)
        other = int(up.says(rf"active controller ([^{active}])", since).group(1))
        up.says(r"\bdown\b", since)
        assert up.process.poll() is None
        assert up.pid("controller", active) is None
        up.create("without-it")
        states = {broker["brokerId"]: broker["state"] for broker in up.asked("status")["brokers"]}
        assert states == {1: "online", 2: "online"}
        assert up.asked("quorum", "status")["leaderId"] == other

        os.write(keyboard, b"\x03")
        up.says("stopped cleanly")
        up.ends(0)

    with piped(folder) as up:
        up.says("ready: 3 controllers, 2 brokers")
        names = {topic["name"] for topic in up.asked("topics", "list")["topics"]}
        assert names == {"kept", "without-it"}
        up.process.terminate()
        up.ends(0)
    verified = logberg("log", "verify", str(folder))
    assert verified.code == 0, verified
    assert "3 logs agree" in verified.out


def says_where_everything_is(up: Up) -> None:
    up.says("starting cluster")
    up.says("ready: 3 controllers, 2 brokers")
    up.says(r"epoch \d+; controllers: .*active.*; brokers: 1 online, 2 online")
    file = up.file
    assert (file["controllers"], file["brokers"]) == (3, 2)
    for node in file["nodes"]:
        os.kill(node["pid"], 0)
        assert Path(node["folder"]).is_dir()
        assert f"{node['role']}-{node['id']}" in processes_of(up.folder)[node["pid"]]
    assert stat.S_IMODE(Path(file["tokenFile"]).stat().st_mode) == 0o600
    status = up.asked("status")
    assert status["active"] in {1, 2, 3}
    assert status["clusterId"] == file["clusterId"]


def brokers_ended_before_controllers(folder: Path) -> None:
    def times(pattern: str, event: str) -> list[str]:
        found = []
        for path in (folder / "output").glob(pattern):
            lines = path.read_text().splitlines()
            found += [json.loads(line)["timestamp"] for line in lines if f'"{event}"' in line]
        return found

    brokers, controllers = (
        times("broker-*", "agent_ended"),
        times("controller-*", "controller_ended"),
    )
    assert len(brokers) == 2
    assert len(controllers) == 3
    assert max(brokers) <= min(controllers)


def test_one_controller_and_a_killed_up(tmp_path: Path) -> None:
    """The single-node mode; `up` itself is killed, and the next one resumes."""
    folder = tmp_path / "cluster"
    with piped(folder, *ports(), "--controllers", "1", "--brokers", "1") as up:
        up.says("ready: 1 controllers?, 1 brokers?")
        up.create("kept")
        up.process.kill()
        up.process.wait()
        nothing_is_left(folder)
    with piped(folder) as up:
        up.says("resuming cluster")
        up.says("ready: 1 controllers?, 1 brokers?")
        assert [topic["name"] for topic in up.asked("topics", "list")["topics"]] == ["kept"]
        os.kill(up.pid("broker", 1), signal.SIGKILL)
        up.says(r"broker-1 \(process \d+\) ended with signal SIGKILL")
        up.process.send_signal(signal.SIGINT)
        up.says("stopped cleanly")
        up.ends(0)


def test_who_hears_of_an_end_finds_it_in_the_file(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "cluster", 1, 0, free_port_base())
    cluster.prepare()
    child = cluster.controllers[1]
    child.start()
    cluster.write_cluster_file()
    child.kill()
    found = []

    def say(text: str) -> None:
        assert "controller-1" in text
        found.append(json.loads((cluster.folder / "cluster.json").read_bytes())["nodes"][0]["pid"])

    print_ended(cluster, set(), say)
    assert found == [None]


def test_ctrl_c_while_it_starts(tmp_path: Path) -> None:
    """Nothing says that the cluster is there before it is, nor names a process afterwards."""
    folder = tmp_path / "cluster"
    with piped(folder, *ports()) as up:
        up.says("starting cluster")
        assert not (folder / "cluster.json").exists()
        up.process.send_signal(signal.SIGINT)
        up.says("stopped cleanly")
        assert "ready" not in up.said
        up.ends(0)
        assert {node["pid"] for node in up.file["nodes"]} == {None}
    # The identity was there from the start: the next `up` resumes this very cluster.
    cluster = LocalCluster(folder)
    assert cluster.resumed
    assert cluster.cluster_id == up.file["clusterId"]
    cluster.prepare()
    assert not (folder / "cluster.json").exists()


def test_a_folder_of_the_first_release_is_resumed(tmp_path: Path) -> None:
    """Release 0.1 kept the identity in cluster.json only, and wrote pid 0 for what had ended."""
    first = LocalCluster(tmp_path / "cluster", 1, 0, free_port_base())
    first.prepare()
    first.write_cluster_file()
    path = first.folder / "cluster.json"
    shown = json.loads(path.read_bytes())
    for node in shown["nodes"]:
        node["pid"] = 0
        del node["kafka"]  # It is younger than the first release.
    path.write_text(json.dumps(shown))
    (first.folder / "config" / "identity.json").unlink()
    assert LocalCluster(first.folder).cluster_id == first.cluster_id


def test_when_nobody_reads_its_output_any_more_it_stops_everything_in_order(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "cluster"
    command = _command(folder, (*ports(), "--controllers", "1", "--brokers", "1"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        while b"ready" not in process.stdout.readline():
            assert process.poll() is None
        process.stdout.close()
        # Something to say: a broker that ends.
        (broker,) = processes_of(folder, "broker-1.toml")
        os.kill(broker, signal.SIGKILL)
        # Whoever read our output had enough: that is no failure.
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
        nothing_is_left(folder)
        assert "asked to stop" in (folder / "output" / "controller-1.log").read_text()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
