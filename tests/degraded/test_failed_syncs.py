"""The node never repeats a failed sync, and never acknowledges what depended on it.

The same on real processes: tests/process/test_broken_disks.py.
"""

import errno
from typing import Any, cast

import pytest

from quorum.journal.segments import SegmentWriter
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.platter import Inode
from tests.degraded.modes import ENTER, healthy
from tests.degraded.table import DegradedMode
from tests.simulation.patches import patched

pytestmark = pytest.mark.simulation

FAILING = [by for mode, by in ENTER if mode is DegradedMode.STOPPED and "sync" in by]


class Syncs:
    """What was synced on which disk, and what failed."""

    def __init__(self) -> None:
        self.failed: list[Inode] = []
        self.again: list[Inode] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sync_inode = SimulatedDisk.sync_inode

        def watched(disk: SimulatedDisk, inode: Inode, upto: int) -> None:
            if any(inode is failed for failed in self.failed):
                self.again.append(inode)
            try:
                sync_inode(disk, inode, upto)
            except OSError:
                self.failed.append(inode)
                raise

        monkeypatch.setattr(SimulatedDisk, "sync_inode", watched)


@pytest.mark.parametrize("by", FAILING)
def test_a_sync_that_failed_is_never_repeated(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs()
    syncs.watch(monkeypatch)
    cluster, node, _ = ENTER[DegradedMode.STOPPED, by]()
    cluster.run(5.0)
    assert node in cluster.stopped
    assert len(syncs.failed) == 1
    assert syncs.again == []


def test_a_build_that_tries_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs()
    syncs.watch(monkeypatch)

    def try_again(writer: SegmentWriter, error: OSError | None) -> None:
        if error is not None:
            cast("Any", writer._file)._failed = False
            writer._disk.sync(writer._file, writer._one_done)
            return
        _one_done(writer, error)

    with patched([(SegmentWriter, "_one_done", try_again)]):
        cluster, leader, _ = healthy()
        cluster.hosts[leader].faults.fail("sync")
        ask(cluster, leader)
        cluster.run(1.0)
    assert leader not in cluster.stopped
    assert syncs.again


_one_done = SegmentWriter._one_done


def ask(cluster: Any, node: int) -> list[Any]:
    new = {"name": "rests-on-it", "numPartitions": 1, "replicationFactor": 1}
    replies: list[Any] = cluster.send("POST", "/v1/topics", {"topics": [new]}, node=node)
    return replies


@pytest.mark.parametrize("nodes", [1, 3])
def test_what_rests_on_a_sync_that_failed_is_not_acknowledged(nodes: int) -> None:
    cluster, leader, _ = healthy(nodes=nodes)
    cluster.hosts[leader].faults.fail("sync")
    replies = ask(cluster, leader)
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status == 503
    assert cluster.stopped[leader]


def test_a_vote_that_could_not_be_synced_is_never_cast() -> None:
    """A follower votes on what is durable only: here its disk fails when it is asked to."""
    cluster, leader, _ = healthy()
    one, other = (node for node in cluster.hosts if node != leader)
    cluster.hosts[one].faults.fail("sync", lasting=True)
    cluster.kill(leader)
    cluster.run(6.0)
    assert one in cluster.stopped
    assert not cluster.controllers[other].active
    assert cluster.controllers[other].quorum.status().role != "leader"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE], ids=["no room", "no descriptor"])
def test_what_refuses_a_write_whole_is_waited_for(error: int) -> None:
    """By the ledger and by checkpoints; the journal has its reserve, and then stops."""
    cluster, leader, _ = healthy()
    faults = cluster.hosts[leader].faults
    faults.fail("write", 2, error)
    replies = ask(cluster, leader)
    cluster.run(0.5)
    assert cluster.events("ledger_not_written")
    assert replies == []
    cluster.run(1.0)
    assert replies[0].status == 200
    faults.fail("rename", 0, error)
    cluster.processes[leader].run(cluster.controllers[leader].write_checkpoint)
    cluster.run(2.0)
    assert cluster.events("checkpoint_not_written")
    assert cluster.stopped == {}
    assert cluster.shared.leader == leader
