"""`logberg coordination lock` and `elect` on real controllers: who runs when, and what ends it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process
LOGBERG = (sys.executable, "-m", "logberg", "coordination")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(tmp_path_factory.mktemp("held")) as started:
        yield started


class Holder:
    """One `logberg coordination lock` or `elect`, which runs beside the test."""

    def __init__(self, cluster: RunningCluster, *arguments: str) -> None:
        # Options go before the command that is run.
        kind, name, *rest = arguments
        self.process = subprocess.Popen(
            [*LOGBERG, kind, name, "--data", str(cluster.folder), "--ttl", "5", *rest],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self) -> tuple[int, str, str]:
        """Wait, and return exit code, stdout and stderr."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def hold(cluster: RunningCluster) -> Iterator[type[Holder]]:
    started: list[Holder] = []

    class Started(Holder):
        def __init__(self, *arguments: str) -> None:
            super().__init__(cluster, *arguments)
            started.append(self)

    yield Started
    for holder in started:
        if holder.process.poll() is None:
            holder.process.kill()
        holder.process.communicate()


def until(condition, what: str, limit_s: float = 30.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def runs(file: Path) -> bool:
    """Whether the process whose id stands in a file is there."""
    try:
        os.kill(int(file.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


SLEEPS = ["sh", "-c", 'echo $$ > "$0"; exec sleep 100']

CODES = [
    (["sh", "-c", "exit 7"], 7, ""),
    (["sh", "-c", "kill -9 $$"], 137, ""),
    (["true"], 0, ""),
    (["/nowhere/nothing"], 127, "/nowhere/nothing can't be started"),
    (["/etc/passwd"], 126, "/etc/passwd can't be started"),
]


@pytest.mark.parametrize(("command", "code", "said"), CODES)
@pytest.mark.parametrize("kind", ["lock", "elect"])
def test_the_exit_code_is_the_commands(hold, kind, command, code, said) -> None:
    found, out, err = hold(kind, "codes", "--", *command).ended()
    assert (found, out) == (code, ""), err
    assert said in err


def test_the_command_finds_its_token_and_one_runs_after_the_other(hold, tmp_path) -> None:
    script = "test ! -e busy && touch busy && sleep 0.3 && rm busy && echo $LOGBERG_FENCING_TOKEN"
    holders = [hold("lock", "turns", "--", "sh", "-c", f"cd {tmp_path} && {script}") for _ in "123"]
    said = [holder.ended() for holder in holders]
    assert [code for code, _, _ in said] == [0, 0, 0], said
    assert len({int(out) for _, out, _ in said}) == 3


def test_a_broken_lock_ends_its_command_and_the_next_one_runs(cluster, hold, tmp_path) -> None:
    pid = tmp_path / "pid"
    first = hold("lock", "broken", "--", *SLEEPS, str(pid))
    until(lambda: runs(pid), "the first command runs")
    waits = hold("lock", "broken", "--wait", "0", "--", "true").ended()
    assert waits[0] == 1
    assert "is taken [DeadlineExceeded]" in waits[2]
    second = hold("lock", "broken", "--", "true")
    said = cluster.command(
        "coordination",
        "locks",
        "break",
        "broken",
        "--reason",
        "a test",
        "--data",
        str(cluster.folder),
    )
    assert "has lost it" in said.out, said
    code, _, err = first.ended()
    assert (code, "the command was ended" in err) == (1, True), err
    assert not runs(pid)
    assert second.ended()[0] == 0


def test_a_session_that_is_ended_or_cut_off_ends_the_command_in_time(
    cluster, hold, tmp_path
) -> None:
    pid = tmp_path / "pid"
    holder = hold("elect", "ended", "--id", "a", "--grace", "1", "--", *SLEEPS, str(pid))
    until(lambda: runs(pid), "the command runs")
    described = cluster.command(
        "coordination",
        "elections",
        "describe",
        "ended",
        "-o",
        "json",
        "--data",
        str(cluster.folder),
    )
    session = json.loads(described.out)["entries"][0]["sessionId"]
    cluster.command("coordination", "sessions", "end", session, "--data", str(cluster.folder))
    code, _, err = holder.ended()
    assert (code, "the command was ended" in err) == (1, True), err
    assert not runs(pid)

    holder = hold("elect", "cut", "--grace", "1", "--", *SLEEPS, str(pid))
    until(lambda: runs(pid), "the command runs")
    children = list(cluster.local.controllers.values())
    for child in children:
        child.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        code, _, err = holder.ended()
        # The process itself takes some time to close; the command must not.
        assert (code, "no heartbeat was acknowledged" in err) == (1, True), err
        assert not runs(pid)
        assert time.monotonic() - began > 1
    finally:
        for child in children:
            child.signal(signal.SIGCONT)
    cluster.until(cluster.settled, "the cluster goes on")


def described(cluster: RunningCluster, things: str, name: str) -> str:
    where = ("--data", str(cluster.folder))
    return cluster.command("coordination", things, "describe", name, *where).out


def test_signals_reach_the_command_and_a_killed_holder_leaves_none(cluster, hold, tmp_path) -> None:
    pid = tmp_path / "pid"
    traps = 'trap "exit 9" TERM; echo $$ > "$0"; while :; do sleep 0.05; done'
    holder = hold("lock", "signals", "--", "sh", "-c", traps, str(pid))
    until(lambda: runs(pid), "the command runs")
    holder.process.send_signal(signal.SIGTERM)
    assert holder.ended()[0] == 9
    assert hold("lock", "signals", "--wait", "0", "--", "true").ended()[0] == 0, "given back"

    holder = hold("lock", "killed", "--", *SLEEPS, str(pid))
    until(lambda: runs(pid), "the command runs")
    waiter = hold("lock", "killed")
    until(lambda: "waits" in described(cluster, "locks", "killed"), "the second one waits")
    waiter.process.send_signal(signal.SIGTERM)
    assert waiter.ended()[0] == 128 + signal.SIGTERM
    holder.process.kill()
    until(lambda: not runs(pid), "the kernel ended the command")


def test_without_a_command_it_holds_until_ctrl_c(cluster, hold) -> None:
    holder = hold("elect", "held", "--id", "me", "--as-data", "here", "-o", "json")
    line = json.loads(holder.process.stdout.readline())
    assert (line["election"], line["id"]) == ("held", "me")
    shown = cluster.command(
        "coordination", "elections", "describe", "held", "--data", str(cluster.folder)
    )
    assert f"{line['token']}" in shown.out
    assert "here" in shown.out
    holder.process.send_signal(signal.SIGINT)
    assert holder.ended()[0] == 0
    shown = cluster.command("coordination", "elections", "list", "--data", str(cluster.folder))
    assert "held" not in shown.out


def test_keys_are_watched_from_a_revision_on(cluster) -> None:
    def asked(*arguments: str) -> str:
        said = cluster.command("coordination", "keys", *arguments, "--data", str(cluster.folder))
        assert said.code == 0, said
        return said.out

    asked("put", "w/1", "one")
    first = json.loads(asked("watch", "w/", "--prefix", "--once", "-o", "json"))
    assert (first["kind"], [r["key"] for r in first["records"]]) == ("snapshot", ["w/1"])
    asked("put", "w/2", "two")
    asked("delete", "w/1")
    lines = asked("watch", "w/", "--prefix", "--once", "--after", str(first["revision"]))
    assert [line.split("  ")[1:] for line in lines.splitlines()] == [
        ["w/2", "two"],
        ["w/1", "(deleted)"],
    ]


def test_a_client_of_wrong_credentials_is_refused_at_once(cluster, tmp_path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("lbt-nonsense")
    began = time.monotonic()
    done = subprocess.run(
        [
            *LOGBERG,
            "lock",
            "l",
            "--data",
            str(cluster.folder),
            "--token-file",
            str(wrong),
            "--",
            "true",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "[AuthFailed]" in done.stderr
    assert time.monotonic() - began < 20
