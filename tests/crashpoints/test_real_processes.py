"""Real controllers that die at a change of their files, and the launcher that lets them."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.crashpoints.processes import Victims, run
from tests.process.running_cluster import RunningCluster

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
SYSTEM_CALLS = {
    "write": "write",
    "pwrite64": "write",
    "ftruncate": "truncate",
    "rename": "rename",
    "unlink": "unlink",
    "mkdir": "make_folder",
}


def test_processes_that_die_at_a_change_come_back_with_all_they_promised(tmp_path: Path) -> None:
    died, acknowledged = run(tmp_path / "cluster", 3)
    assert died.total() == 3
    assert acknowledged > 0


def test_the_launcher_sees_every_system_call_that_strace_sees(tmp_path: Path) -> None:
    """Else there would be points at which nobody was ever killed."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    cluster = Victims(tmp_path / "cluster")
    child, trace = cluster.controller(1), tmp_path / "trace"
    child._arguments = [
        *("strace", "-D", "-f", "-qq", "-y", "-s", "0", "-o", str(trace)),
        *("-e", "trace=file,desc"),
        *child._arguments,
    ]
    try:
        probe = subprocess.run(
            ["strace", "-D", "-qq", "-o", str(trace), "true"], check=False, capture_output=True
        )
        if probe.returncode != 0:
            pytest.skip(f"strace may not trace here: {probe.stderr.decode()}")
        cluster.start()
        for number in range(20):
            cluster.create(f"topic-{number}")
        cluster.stop()
    finally:
        cluster.kill()
    *_, said = re.findall(r"changes (\{.*\})", cluster.output(child.name))
    counted = Counter(json.loads(said))
    seen = changes_in(trace.read_text(), cluster.data(1))
    assert seen.total() > 100
    assert counted == seen


def changes_in(trace: str, folder: Path) -> Counter[str]:
    """Count the system calls that change what is in the folder."""
    seen: Counter[str] = Counter()
    made: set[str] = set()
    for line in trace.splitlines():
        # What another thread interrupted is told in two lines; the first has the arguments.
        found = re.match(r"\d+ +(\w+)\((.*)", line)
        if found is None or str(folder) not in found[2]:
            continue
        name, arguments = found.groups()
        if name in ("fsync", "fdatasync"):
            path = arguments.partition("<")[2].partition(">")[0]
            seen["sync_folder" if Path(path).is_dir() else "sync"] += 1
        elif name == "openat" and "O_CREAT" in arguments:
            path = arguments.split('"')[1]
            if path not in made:
                seen["create"] += 1
            made.add(path)
        elif name in SYSTEM_CALLS:
            seen[SYSTEM_CALLS[name]] += 1
            for gone in re.findall(r'"([^"]*)"', arguments)[:1]:
                made.discard(gone)
            made.update(re.findall(r'"([^"]*)"', arguments)[1:2] if name == "rename" else ())
        elif re.match(r"(p?writev|rename|unlink|mkdir|truncate|fallocate|link|symlink)", name):
            seen[f"{name}, which nobody counts"] += 1
    return seen


LAST_SYNC_FAILS = """
import errno, os
from logberg.cli.main import main
from quorum.journal.journal import RaftJournal

def close(journal):
    raise OSError(errno.EIO, os.strerror(errno.EIO))

RaftJournal.close = close
main()
"""


def test_a_disk_that_refuses_the_last_sync_is_told_like_any_other(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path / "cluster", 1)
    child = cluster.controller(1)
    child._arguments = [sys.executable, "-c", LAST_SYNC_FAILS, *child._arguments[3:]]
    try:
        cluster.start()
        child.signal(signal.SIGTERM)
        assert child.wait(20.0)
    finally:
        cluster.kill()
    assert child.exit_code == 74, child.obituary()
    assert "Input/output error" in child.last_words(5)


def test_arguments(tmp_path: Path) -> None:
    """The launcher runs what `logberg` runs."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crashpoints.victim", str(tmp_path), "none", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert "logberg" in done.stdout
