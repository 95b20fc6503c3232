"""A controller that is too far behind for entries fetches files, and history after that."""

from functools import partial

import pytest

from quorum.api import Mark
from snapshots.store import list_checkpoints
from snapshots.writing import CheckpointWriting
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    fill,
    forget_journal,
    leave_behind,
    wipe,
)


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    return cluster


@pytest.mark.parametrize(
    "data", [b"", b"junk", bytes(57), b"\2" + bytes(56)], ids=["empty", "junk", "0", "format 2"]
)
def test_a_mark_that_a_peer_made_up_is_refused_and_stops_nobody(cluster, data):
    quorum = cluster.shared.nodes[2]
    cluster.processes[2].run(partial(quorum.listener.on_catch_up, Mark(9, 1, data), 1))
    cluster.run(0.1)
    assert cluster.events("catch_up_refused")
    cluster.processes[2].run(quorum.listener.on_catch_up_dropped)
    fill(cluster, 3)
    cluster.run(1.0)
    assert not cluster.stopped
    cluster.assert_equal()


def test_a_laggard_catches_up_by_ledger_segments(cluster):
    fill(cluster, 3)
    leave_behind(cluster, 30)
    cluster.shared.disks[1].unlink(
        f"checkpoints/{list_checkpoints(cluster.shared.disks[1])[-1].name}"
    )
    forget_journal(cluster)
    cluster.shared.heal()
    cluster.run(3.0)
    assert cluster.events("catch_up_ready")
    assert cluster.controllers[3].ledger.log_start == 0
    fill(cluster, 2, start=100)
    cluster.assert_equal()


def test_a_checkpoint_that_is_being_written_ends_with_its_ledger(cluster, monkeypatch):
    """Its file was removed while it was written, and the controller reported a failing disk."""
    fill(cluster, 3)
    leave_behind(cluster, 30)
    forget_journal(cluster)
    held = []
    with monkeypatch.context() as patched:
        patched.setattr(CheckpointWriting, "_written", lambda self: held.append(self))  # noqa: PLW0108 - it binds
        cluster.processes[3].run(cluster.controllers[3]._storage.snapshotting.write)
        cluster.run(0.5)
    assert len(held) == 1
    cluster.shared.heal()
    cluster.run(3.0)
    assert cluster.events("catch_up_ready")
    cluster.processes[3].run(held[0]._written)
    cluster.run(1.0)
    assert not cluster.events("checkpoint_failed")
    assert not cluster.stopped
    fill(cluster, 2, start=100)
    cluster.assert_equal()


def test_a_wiped_node_loads_a_checkpoint_and_backfills_history(cluster):
    fill(cluster, 10)
    for _ in range(60):
        cluster.create_topic("again", factor=1)
        cluster.ask("DELETE", "/v1/topics/again")
    checkpoint(cluster, 1)
    forget_journal(cluster)
    fill(cluster, 2, start=50)
    cluster.kill(3)
    wipe(cluster, 3)
    cluster.start(3)
    cluster.run(0.5)
    loaded = list_checkpoints(cluster.shared.disks[3])
    assert loaded, "the checkpoint was worth loading"
    cluster.run(5.0)
    assert cluster.events("history_backfilled")
    assert cluster.controllers[3].ledger.log_start == 0
    fill(cluster, 2, start=100)
    cluster.assert_equal()
    mine = [b.encoded for b in cluster.batches(3)]
    assert mine == [b.encoded for b in cluster.batches(1)]


def test_a_jump_is_taken_up_again_after_a_restart(cluster):
    fill(cluster, 3)
    leave_behind(cluster, 40)
    forget_journal(cluster)
    cluster.shared.heal()
    cluster.run(0.03)
    assert not cluster.events("catch_up_ready")
    cluster.kill(3)
    cluster.start(3)
    cluster.run(4.0)
    assert cluster.events("catch_up_ready")
    fill(cluster, 2, start=100)
    cluster.assert_equal()


def test_a_jump_goes_on_when_the_peer_answers_again(cluster):
    fill(cluster, 3)
    leave_behind(cluster, 40)
    forget_journal(cluster)
    cluster.shared.heal()
    cluster.run(0.02)
    cluster.shared.cut(3)
    cluster.run(3.0)
    cluster.shared.heal()
    cluster.run(4.0)
    assert cluster.events("catch_up_ready")
    cluster.assert_equal()


def test_bad_bytes_of_a_peer_are_refused(cluster):
    fill(cluster, 3)
    leave_behind(cluster, 40)
    name = f"checkpoints/{list_checkpoints(cluster.shared.disks[1])[-1].name}"
    cluster.shared.disks[1].unlink(name)
    forget_journal(cluster)
    segment = sorted(n for n in cluster.platters[1].names if n.startswith("log/"))[2]
    inodes = [cluster.platters[n].names[segment] for n in (1, 2)]
    for inode in inodes:
        inode.content[2000] ^= 1
    cluster.shared.heal()
    cluster.run(3.0)
    assert {e["source"] for e in cluster.events("catch_up_refused")} == {1, 2}
    assert not cluster.events("catch_up_ready")
    for inode in inodes:
        inode.content[2000] ^= 1
    cluster.run(3.0)
    assert cluster.events("catch_up_ready")
    cluster.assert_equal()


def test_a_jump_that_is_not_needed_any_more_is_dropped(cluster):
    fill(cluster, 3)
    leave_behind(cluster, 40)
    forget_journal(cluster)
    cluster.shared.heal()
    cluster.run(0.02)
    quorum = cluster.shared.nodes[3]

    def overtake():
        cluster.shared.compacted = 0
        quorum.catching_up = None
        quorum.listener.on_catch_up_dropped()
        quorum.deliver()

    cluster.processes[3].run(overtake)
    cluster.run(1.0)
    assert cluster.events("catch_up_dropped")
    assert cluster.shared.disks[3].list("incoming") == []
    cluster.assert_equal()
