"""`logberg demo`, as a newcomer runs it: every claim holds, and nothing is left running."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.process.leftovers import nothing_is_left, processes_of

pytestmark = pytest.mark.process

CLAIMS = 13


@contextmanager
def demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "logberg", "demo", "--data", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Read the output up to the line with these words."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"it never said {words!r}; it said {said}")


def test_every_claim_holds(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(folder) as process:
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert said.count("✓") == CLAIMS, said
    assert "✗" not in said
    assert re.search(r"committed the next change \d+ ms after the kill", said)
    assert "proved: 3 logs" in said
    assert "one state hash" in said
    commands = [
        line.strip() for line in said.splitlines() if line.startswith("  ") and "✓" not in line
    ]
    assert len(commands) == 4, said
    assert all(str(folder) in command for command in commands)
    assert re.search("its intruder first: CRITICAL User:connect made privileged changes", said)
    for place in (folder, folder / "made-up-week"):
        report = place / "audit-report.html"
        assert f"report: {report}" in said
        assert ("User:connect made privileged changes" in report.read_text()) == (place != folder)
    nothing_is_left(folder)


def test_ctrl_c_in_the_middle_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(folder) as process:
        read_until(process, "topic 'orders' created")
        assert len(processes_of(folder, "--config")) >= 5
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted; stopping everything" in said
    assert "Traceback" not in said
    assert "proved" not in said
    nothing_is_left(folder)


def test_killing_the_demo_itself_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(folder) as process:
        read_until(process, "three controllers agree")
        process.kill()
        process.communicate(timeout=60)
    nothing_is_left(folder)


def test_a_claim_that_does_not_hold_ends_the_demo_with_exit_code_1(tmp_path: Path) -> None:
    """Somebody kills the broker that shall stop cleanly."""
    folder = tmp_path / "demo"
    with demo(folder) as process:
        read_until(process, "topic 'orders' created")
        (victim,) = processes_of(folder, "broker-3.toml")
        os.kill(victim, signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert "✗" in said
    assert "did not hold" in said
    assert str(folder / "output") in said
    assert "Traceback" not in said
    assert "proved" not in said
    nothing_is_left(folder)
