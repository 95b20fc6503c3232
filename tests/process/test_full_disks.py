"""Disks without room, and disks that refuse writes: on one controller, and on all.

A node notices an almost full disk while it still has room. It then neither leads nor takes changes,
but follows, and recovers by itself. A write that fails ends the process with exit code 74 and a
sentence. After a start with room, the node holds all that it promised.

Small file systems in memory stand in for disks; only root may mount them. Limits of file size need
no privileges.
"""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logberg.local.child import Child
from tests.process.running_cluster import RunningCluster

pytestmark = pytest.mark.process

MEBIBYTES = 72
"""A node keeps 64 in reserve."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with small_disks(tmp_path_factory.mktemp("full")) as cluster:
        cluster.start()
        cluster.create("before")
        yield cluster


@contextmanager
def small_disks(folder: Path) -> Iterator[RunningCluster]:
    """A cluster in which each controller's folder is a file system of its own."""
    cluster = RunningCluster(folder, brokers=1)
    folders = [cluster.data(n) for n in cluster.local.controllers]
    mounted: list[Path] = []
    try:
        for folder in folders:
            folder.mkdir(mode=0o700)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", str(folder)]
            done = subprocess.run(mount, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
            mounted.append(folder)
        yield cluster
    finally:
        cluster.kill()
        for folder in mounted:
            subprocess.run(["umount", str(folder)], check=True)


def fill(cluster: RunningCluster, n: int, leave: int) -> None:
    """Take a controller's room away, but for so many bytes."""
    figures = os.statvfs(cluster.data(n))
    with (cluster.data(n) / "ballast").open("wb") as file:
        file.write(bytes(max(0, figures.f_bavail * figures.f_frsize - leave)))


def empty(cluster: RunningCluster, n: int) -> None:
    (cluster.data(n) / "ballast").unlink()


def note(cluster: RunningCluster, n: int) -> str:
    return str((cluster.status(n) or {}).get("note", ""))


def test_a_leader_whose_disk_is_almost_full_hands_over_and_goes_on_following(
    cluster: RunningCluster,
) -> None:
    full = cluster.leader()
    fill(cluster, full, 1_000_000)
    assert cluster.leader(but=full) != full
    cluster.create("while-one-is-full")
    cluster.until(lambda: "disk is almost full" in note(cluster, full), "it says so")
    cluster.until(cluster.caught_up, "it goes on following")
    assert cluster.broker_states() == {1: "online"}
    ready = cluster.ask(cluster.url(full), "GET", "/health/ready", token=None)
    assert ready.status == 503
    assert "disk" in ready.body["reason"]
    empty(cluster, full)
    cluster.until(lambda: not note(cluster, full), "it has room again")


def test_where_all_disks_are_almost_full_changes_are_refused_until_there_is_room(
    cluster: RunningCluster,
) -> None:
    cluster.until(cluster.settled, "the cluster is settled")
    pids = [child.pid for child in cluster.local.children]
    for n in cluster.local.controllers:
        fill(cluster, n, 500_000)
    tried: list[str] = []

    def refused() -> dict[str, str] | None:
        for n in cluster.local.controllers:
            tried.append(f"try-{len(tried)}")
            body = {"topics": [{"name": tried[-1], "numPartitions": 1, "replicationFactor": 1}]}
            answer = cluster.ask(cluster.url(n), "POST", "/v1/topics", body)
            if answer.status == 507:
                found: dict[str, str] = answer.body
                return found
            if answer.status == 200:
                # Nobody had looked yet: the reserve is there for this.
                cluster.acknowledged.append(tried[-1])
        return None

    answer = cluster.until(refused, "a change is refused with 507")
    assert answer["code"] == "DISK_FULL"
    assert "free" in answer["message"].lower()
    assert answer["retriable"]
    assert answer["whoseFault"] == "server"
    for n in cluster.local.controllers:
        empty(cluster, n)
    cluster.create("with-room-again")
    assert tried[-1] not in cluster.topics()
    assert [child.pid for child in cluster.local.children if child.running] == pids
    cluster.until(cluster.settled, "every broker is online")
    cluster.until(cluster.caught_up, "all hold the same")


def test_a_write_that_finds_no_room_ends_the_process_with_74_and_loses_nothing(
    cluster: RunningCluster,
) -> None:
    cluster.until(cluster.settled, "the cluster is settled")
    full = cluster.standby()
    fill(cluster, full, 0)
    child = cluster.controller(full)
    for number in range(200):
        if not child.running:
            break
        cluster.create(f"to-the-brim-{number}", partitions=200)
    stopped_with_74(cluster, child, "the disk is full", "free space and start the node again")
    empty(cluster, full)
    child.start()
    cluster.until(cluster.settled, "it is back")
    cluster.until(cluster.caught_up, "it caught up")


def test_a_write_that_fails_ends_the_process_with_74_and_loses_nothing(
    cluster: RunningCluster,
) -> None:
    cluster.until(cluster.settled, "the cluster is settled")
    victim = cluster.leader()
    child = cluster.controller(victim)
    largest = max(path.stat().st_size for path in cluster.data(victim).rglob("*.wal"))
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (largest + 2000, largest + 2000))
    for number in range(200):
        if not child.running:
            break
        cluster.create(f"until-it-fails-{number}", partitions=50)
    stopped_with_74(cluster, child, "File too large", "check the disk and start it again")
    cluster.create("without-it")
    child.start()
    cluster.until(cluster.settled, "it is back")
    cluster.until(cluster.caught_up, "it caught up")


def stopped_with_74(cluster: RunningCluster, child: Child, *words: str) -> None:
    assert child.wait(20.0), "it went on"
    assert child.exit_code == 74
    said = cluster.output(child.name)
    assert "Traceback" not in said
    last = next(line for line in reversed(said.splitlines()) if line.startswith("logberg "))
    for word in words:
        assert word in last, last


def test_nothing_of_it_was_lost(cluster: RunningCluster) -> None:
    cluster.check_nothing_lost()
