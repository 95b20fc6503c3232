"""Disks that fail and disks that become read-only, under real processes.

The node never repeats a failed sync: it acknowledges nothing more, and ends with exit code 74 and a
sentence. On a disk that became read-only it ends in the same way, at each start again. The other
nodes go on, and lose nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from logberg.local.child import Child
from tests.process.faulty_disk import FaultyDisk
from tests.process.running_cluster import RunningCluster

pytestmark = pytest.mark.process
VICTIM = 1


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


class WithFaultyDisk(RunningCluster):
    """A cluster of which one controller has a disk that fails on command."""

    def __init__(self, place: Path) -> None:
        super().__init__(place / "cluster", brokers=1)
        self.disk = FaultyDisk(place, self.data(VICTIM))


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[WithFaultyDisk]:
    cluster = WithFaultyDisk(place)
    patch = pytest.MonkeyPatch()
    try:
        for name, value in cluster.disk.environment.items():
            patch.setenv(name, value)
        cluster.start()
        cluster.create("before")
        yield cluster
    finally:
        patch.undo()
        cluster.kill()


@pytest.fixture
def disk(cluster: WithFaultyDisk) -> Iterator[FaultyDisk]:
    yield cluster.disk
    cluster.disk.fail("")


def lead(cluster: RunningCluster, wanted: bool) -> None:
    """Let the victim lead, or another."""

    def stands() -> bool:
        leader = cluster.leader()
        if (leader == VICTIM) == wanted:
            return True
        child = cluster.controller(leader)
        child.kill()
        child.start()
        cluster.until(cluster.settled, "it is back")
        return False

    cluster.until(stands, "the right one leads", 120.0)


def ended(cluster: RunningCluster, child: Child, *words: str) -> None:
    assert child.wait(20.0), "it went on"
    said = cluster.output(child.name)
    last = next(line for line in reversed(said.splitlines()) if line.startswith("logberg "))
    assert child.exit_code == 74, last
    assert "Traceback" not in said
    for word in words:
        assert word in last, last


def change_until_it_ends(cluster: RunningCluster, child: Child, name: str) -> None:
    for number in range(100):
        if not child.running:
            return
        cluster.create(f"{name}-{number}")


def test_after_a_sync_has_failed_nothing_is_synced_or_acknowledged(
    cluster: RunningCluster, disk: FaultyDisk
) -> None:
    lead(cluster, wanted=True)
    child = cluster.controller(VICTIM)
    disk.fail("eio")
    new = {"topics": [{"name": "never-acknowledged", "numPartitions": 1, "replicationFactor": 1}]}
    try:
        answer = cluster.ask(cluster.url(VICTIM), "POST", "/v1/topics", new)
    except OSError:
        answer = None
    assert answer is None or answer.status == 503, answer
    ended(cluster, child, "Input/output error", "check the disk and start it again")
    assert len(disk.syncs_asked_for()) == 1, disk.syncs_asked_for()
    assert "journal/" in disk.syncs_asked_for()[0]
    cluster.create("without-it")
    disk.fail("")
    child.start()
    cluster.until(cluster.settled, "it is back")
    cluster.until(cluster.caught_up, "it caught up")


@pytest.mark.parametrize("leads", [True, False], ids=["the leader", "a follower"])
def test_on_a_disk_that_became_read_only_a_controller_ends_and_says_so(
    cluster: RunningCluster, disk: FaultyDisk, leads: bool
) -> None:
    lead(cluster, wanted=leads)
    child = cluster.controller(VICTIM)
    disk.fail("erofs")
    change_until_it_ends(cluster, child, f"read-only-{leads}")
    ended(cluster, child, "read-only", "make it writable and start the node again")
    assert cluster.leader(but=VICTIM)
    assert cluster.broker_states() == {1: "online"}
    for _ in range(2):
        child.start()
        ended(cluster, child, "read-only", "make it writable and start the node again")
    disk.fail("")
    child.start()
    cluster.until(cluster.settled, "it is back")
    cluster.until(cluster.caught_up, "it caught up")


def test_nothing_of_it_was_lost(cluster: RunningCluster) -> None:
    cluster.check_nothing_lost()
