"""Causes of alerts: disks, clocks, releases; damage, and a state that differs."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from logberg.local.child import Child
from quorum.journal.frames import JournalFrameKind
from tests.deploy.alert_bench import FiredAlert, alert_bench
from tests.deploy.altered_build import altered_build, run_with
from tests.process.faulty_disk import FaultyDisk
from tests.process.running_cluster import RunningCluster
from tests.process.test_damaged_files import flip, frame_of

CLOCK = Path(__file__).with_name("other_clock.c")
AHEAD_S = 5
DISK_MIB = 256
LEFT_BYTES = 8 * 2**20
SLOW_MS, SLOWER_MS = 150, 700
CLIENTS = 16
ELECTION_MS = 4_000
"""The controllers elect a leader also while each sync takes 700 ms."""


def of_machines(folder: Path) -> list[FiredAlert]:
    """A full disk, slow disks, a wrong clock, an old release."""
    cluster = RunningCluster(folder / "cluster", brokers=1, election_timeout_ms=ELECTION_MS)
    disk = FaultyDisk(folder, cluster.folder / "controller-")
    for child in cluster.local.controllers.values():
        preload(child, disk.environment)
    with small_disk(cluster.data(3)), alert_bench(folder, cluster) as bench:
        other = altered_build(folder / "build", ("logberg/version.py", '"0.2.0"', '"0.2.1"'))
        bench.fire(
            "run a broker's agent as a build of another version",
            lambda: restart_by(cluster, cluster.local.brokers[1], other),
            "LogbergVersionsDiffer",
        )
        ahead = preload_library(folder)
        standby = cluster.controller(cluster.standby())
        bench.fire(
            f"let the clock of a standby be {AHEAD_S} s ahead",
            lambda: _restart_with_clock(standby, ahead, disk),
            "LogbergClockDiffers",
        )
        bench.fire(
            f"let each sync of the controllers take {SLOW_MS} ms longer",
            lambda: disk.fail(f"slow {SLOW_MS}"),
            "LogbergSlowSyncs",
            again=lambda: cluster.create(f"slow-{len(cluster.acknowledged)}"),
        )
        bench.fire(
            f"let each take {SLOWER_MS} ms longer",
            lambda: disk.fail(f"slow {SLOWER_MS}"),
            "LogbergRequestsSlow",
            again=lambda: _create_at_once(cluster),
        )
        disk.fail("")
        bench.fire(
            f"fill a controller's disk of {DISK_MIB} MiB but for {LEFT_BYTES // 2**20}",
            lambda: _fill(cluster.data(3)),
            "LogbergDiskAlmostFull",
        )
    return bench.fired


def of_data(folder: Path) -> list[FiredAlert]:
    """Flipped bits in a journal and in a checkpoint, and a state that is computed wrongly."""
    cluster = RunningCluster(folder / "cluster", brokers=1, checkpoint_bytes=8192)
    with alert_bench(folder, cluster) as bench:
        cluster.create("before")
        bench.fire(
            "flip a bit in a controller's journal while all are stopped, and start that one alone",
            lambda: _damage_journal(cluster),
            "LogbergJournalDamaged",
        )
        for child in cluster.local.controllers.values():
            child.start()
        cluster.until(cluster.settled, "the journal is repaired")
        cluster.until(lambda: _has_checkpoint(cluster, 1), "a checkpoint is written")
        bench.fire(
            "flip a bit in a controller's checkpoint while it is stopped",
            lambda: _damage_checkpoint(cluster),
            "LogbergDamageFound",
        )
        wrong = altered_build(
            folder / "build",
            (
                "metadata/image/configs.py",
                "values[record.name] = record.value",
                'values[record.name] = record.value + " "',
            ),
        )

        def diverge() -> None:
            restart_by(cluster, cluster.controller(cluster.standby()), wrong)
            changed = {"configs": [{"name": "retention.ms", "value": "1000"}]}
            answer = cluster.ask(
                cluster.url(cluster.leader()), "PATCH", "/v1/configs/topic/before", changed
            )
            assert answer.status == 200, answer

        bench.fire(
            "let a standby run a build that replays a config wrongly, and change a config",
            diverge,
            "LogbergStateDiverged",
            "LogbergControllerNotServing",
        )
    return bench.fired


def preload(child: Child, environment: dict[str, str]) -> None:
    """Let a process start with these variables."""
    words = [f"{key}={value}" for key, value in environment.items()]
    child._arguments = ["/usr/bin/env", *words, *child._arguments]


def preload_library(folder: Path) -> Path:
    """Compile the clock that is ahead."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: what is preloaded into a process can't be made")
    library = folder / "other_clock.so"
    make = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(CLOCK)]
    subprocess.run(make, check=True, capture_output=True)
    return library


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Let a controller's folder be a file system of its own, in memory."""
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _create_at_once(cluster: RunningCluster) -> None:
    """Several clients wait for one sync. The alert counts the slow ones among all requests."""
    first = len(cluster.acknowledged)
    with ThreadPoolExecutor(CLIENTS) as clients:
        names = [f"slower-{first}-{number}" for number in range(CLIENTS)]
        for done in [clients.submit(cluster.create, name) for name in names]:
            done.result()


def _fill(folder: Path) -> None:
    figures = os.statvfs(folder)
    with (folder / "ballast").open("wb") as file:
        file.write(bytes(figures.f_bavail * figures.f_frsize - LEFT_BYTES))


def stop(child: Child) -> None:
    child.signal(signal.SIGTERM)
    assert child.wait(20.0), f"{child.name} did not stop"


def restart_by(cluster: RunningCluster, child: Child, command: list[str]) -> None:
    stop(child)
    run_with(child, command)
    child.start()
    cluster.until(cluster.settled, f"{child.name} is back")


def _restart_with_clock(child: Child, library: Path, disk: FaultyDisk) -> None:
    stop(child)
    both = f"{library}:{disk.environment['LD_PRELOAD']}"
    # The later one of two variables of one name counts.
    at = child._arguments.index("-m") - 1
    more = [f"LD_PRELOAD={both}", f"OTHER_CLOCK_S={AHEAD_S}"]
    child._arguments = [*child._arguments[:at], *more, *child._arguments[at:]]
    child.start()


def _has_checkpoint(cluster: RunningCluster, n: int) -> bool:
    """Make changes until there is one."""
    cluster.create(f"grown-{len(cluster.acknowledged)}")
    return any(cluster.data(n).glob("checkpoints/*.checkpoint"))


def _damage_checkpoint(cluster: RunningCluster) -> None:
    child = cluster.controller(1)
    stop(child)
    newest = max(cluster.data(1).glob("checkpoints/*.checkpoint"))
    flip(newest, newest.stat().st_size // 3)
    child.start()
    cluster.until(cluster.settled, "it is back")


def _damage_journal(cluster: RunningCluster) -> None:
    for child in cluster.local.controllers.values():
        stop(child)
    wal = min(cluster.data(1).glob("journal/*.wal"))
    flip(wal, frame_of(wal, JournalFrameKind.VOTE))
    cluster.controller(1).start()
