"""Restarts, checkpoints, full disks, and a node whose state differs from the others."""

import pytest

from ledger.batch import BatchHeader, Provenance, seal
from metadata.codec import encode_records
from metadata.records import RemoveTopicRecord
from runtime.simulated.process import Death
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Broker, Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, corrupt, fill


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    return cluster


def test_a_restart_replays_to_the_same_image(cluster):
    fill(cluster)
    cluster.kill(2)
    cluster.start(2)
    cluster.run(1.0)
    cluster.assert_equal()


@pytest.mark.parametrize("node_id", [1, 2])
def test_a_restart_begins_at_the_checkpoint_and_the_mark(cluster, node_id):
    fill(cluster)
    written = checkpoint(cluster, node_id)
    fill(cluster, 3, start=100)
    cluster.kill(node_id)
    cluster.start(node_id)
    cluster.run(1.0)
    if node_id == 1:
        cluster.lead(2)
    loaded = cluster.events("image_loaded")[-1]
    assert loaded["began_at"] == written.offset
    cluster.assert_equal()


def test_a_checkpoint_ahead_of_the_mark_is_compared_with_what_is_applied_again(cluster):
    fill(cluster)
    cluster.shared.nodes[2].compact = lambda mark, on_done: on_done(False)
    controller = cluster.controllers[2]
    controller._storage.snapshotting._compact = lambda mark, on_done: on_done(False)
    written = checkpoint(cluster, 2)
    assert 2 not in cluster.shared.manifests
    cluster.kill(2)
    cluster.start(2)
    cluster.run(1.0)
    assert cluster.events("image_loaded")[-1]["offset"] == written.offset
    fill(cluster, 2, start=100)
    cluster.assert_equal()


def test_checkpoints_are_written_by_themselves_after_so_many_bytes():
    cluster = Cluster(checkpoint_bytes=5_000, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    cluster.run(2.0)
    for node_id in (1, 2, 3):
        assert list_checkpoints(cluster.shared.disks[node_id])
        assert node_id in cluster.shared.manifests
    status = cluster.ask("GET", "/v1/status")[1]
    assert status["newestSnapshot"]
    cluster.assert_equal()


def test_log_before_the_newest_checkpoint_does_not_count_after_a_restart():
    """A restart may apply all of its log again. That is no reason for another checkpoint."""
    cluster = Cluster(checkpoint_bytes=5_000, **SMALL)
    cluster.online(1)
    cluster.shared.nodes[2].compact = lambda mark, on_done: on_done(False)
    snapshotting = cluster.controllers[2]._storage.snapshotting
    snapshotting._compact = lambda mark, on_done: on_done(False)
    fill(cluster, 40)
    cluster.run(2.0)
    written = list_checkpoints(cluster.shared.disks[2])[-1]
    assert snapshotting._trigger.due is False
    cluster.kill(2)
    cluster.start(2)
    cluster.run(1.0)
    fill(cluster, 1, start=100)
    cluster.run(2.0)
    assert list_checkpoints(cluster.shared.disks[2])[-1] == written
    fill(cluster, 40, start=200)
    cluster.run(2.0)
    assert list_checkpoints(cluster.shared.disks[2])[-1] != written


def test_no_checkpoint_is_written_while_the_leader_changes():
    """The election needs each pass of the loop; a checkpoint of many partitions takes seconds."""
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster, 40)
    snapshotting = cluster.controllers[2]._storage.snapshotting
    writing = []

    def write():
        assert cluster.controllers[2].write_checkpoint()
        writing.append(snapshotting._store._writing)
        snapshotting.leader_changed()

    cluster.processes[2].run(write)
    size = writing[0].size
    cluster.run(0.9)
    assert writing[0].size == size
    cluster.processes[2].run(snapshotting.leader_changed)
    cluster.run(0.9)
    assert writing[0].size == size
    assert not list_checkpoints(cluster.shared.disks[2])
    cluster.run(1.0)
    assert list_checkpoints(cluster.shared.disks[2])


def test_no_checkpoint_begins_while_the_leader_changes():
    cluster = Cluster(checkpoint_bytes=5_000, **SMALL)
    cluster.online(1)
    snapshotting = cluster.controllers[2]._storage.snapshotting
    cluster.processes[2].run(snapshotting.leader_changed)
    fill(cluster, 40)
    assert snapshotting._trigger.due
    assert not snapshotting._store.writing
    cluster.run(2.0)
    assert list_checkpoints(cluster.shared.disks[2])


@pytest.mark.parametrize("every_s", [0.3, 0.9, 1.1], ids="every {} s".format)
def test_a_checkpoint_is_written_though_leaders_change_again_and_again(every_s):
    """As over a link that breaks again and again. The journal must be cut all the same."""
    cluster = Cluster(checkpoint_bytes=5_000, session_s=1e6, **SMALL)
    cluster.online(1)
    snapshotting = cluster.controllers[2]._storage.snapshotting

    def change_leaders(seconds):
        for _ in range(int(seconds / every_s)):
            cluster.processes[2].run(snapshotting.leader_changed)
            cluster.run(every_s)

    change_leaders(30)
    for start in (0, 100):
        before = list_checkpoints(cluster.shared.disks[2])
        cluster.processes[2].run(snapshotting.leader_changed)
        fill(cluster, 40, start=start)
        assert list_checkpoints(cluster.shared.disks[2]) == before, "it rests first"
        change_leaders(12)
        assert list_checkpoints(cluster.shared.disks[2]) != before


def test_a_half_written_checkpoint_is_finished_though_leaders_change_again_and_again():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster, 40)
    snapshotting = cluster.controllers[2]._storage.snapshotting
    cluster.processes[2].run(lambda: (snapshotting.write(), snapshotting.leader_changed()))
    for _ in range(40):
        assert snapshotting._store.writing or list_checkpoints(cluster.shared.disks[2])
        cluster.processes[2].run(snapshotting.leader_changed)
        cluster.run(0.3)
    assert list_checkpoints(cluster.shared.disks[2])


def test_a_checkpoint_is_written_after_a_while_too():
    cluster = Cluster(checkpoint_interval_s=100.0, **SMALL)
    cluster.online(1)
    cluster.run(180.0)
    assert list_checkpoints(cluster.shared.disks[1])


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_ledger_is_synced_before_the_journal_may_forget(seed):
    cluster = Cluster(seed=seed, **SMALL)
    cluster.online(1)
    fill(cluster, 30)
    cluster.processes[2].run(cluster.controllers[2].write_checkpoint)
    cluster.run_until(lambda: 2 in cluster.shared.manifests)
    cluster.kill(2, Death.POWER)
    cluster.start(2)
    cluster.run(1.0)
    assert not cluster.events("ledger_damaged")
    assert not cluster.stopped
    cluster.assert_equal()


def test_no_checkpoint_of_an_open_transaction(cluster):
    cluster.shared.cut(2, 3)
    body = {"topics": [{"name": "big", "numPartitions": 30_000, "replicationFactor": 1}]}
    cluster.send("POST", "/v1/topics", body)
    cluster.run(0.1)
    quorum = cluster.shared.nodes[1]
    half = quorum.waiting[:3]
    quorum.waiting.clear()
    cluster.shared.heal()
    cluster.shared.commit(cluster.shared.epoch, half)
    cluster.run(0.2)
    assert cluster.controllers[2].image.transaction is not None
    assert not cluster.controllers[2].write_checkpoint()


def test_a_damaged_checkpoint_is_put_aside_and_the_log_is_replayed(cluster):
    fill(cluster)
    written = checkpoint(cluster, 2)
    cluster.kill(2)
    inode = cluster.platters[2].names[f"checkpoints/{written.name}"]
    inode.content[len(inode.content) // 2] ^= 1
    cluster.start(2)
    cluster.run(1.0)
    assert cluster.events("checkpoint_damaged")
    cluster.assert_equal()


def test_a_full_disk_stops_applying_and_is_told_until_there_is_room(cluster):
    fill(cluster, 3)
    cluster.faults[1].capacity_bytes = 1
    replies = cluster.send(
        "POST", "/v1/topics", {"topics": [{"name": "x", "replicationFactor": 1}]}
    )
    cluster.run(0.5)
    assert not replies
    status, reply = cluster.ask("DELETE", "/v1/topics/topic-0000")
    assert (status, reply["code"]) == (507, "DISK_FULL")
    one = Broker(cluster, 1, incarnation=cluster.broker(1).incarnation_id)
    one.epoch, one.offset = cluster.broker(1).broker_epoch, cluster.image.offset
    assert one.fetch(fetched_epoch=1).error is None  # brokers are still heard
    assert cluster.ask("GET", "/health/ready")[0] == 503
    assert cluster.ask("GET", "/v1/topics")[0] == 507  # what is committed can't be shown yet
    cluster.faults[1].capacity_bytes = None
    cluster.run(2.0)
    assert replies[0].status == 200
    cluster.assert_equal()


def test_a_committed_batch_that_cannot_be_replayed_stops_the_node_and_says_why(cluster):
    mark = cluster.leader.ledger.mark()
    header = BatchHeader(
        mark.log_end, 1, cluster.shared.epoch, mark.timestamp_ms, Provenance(), mark.head
    )
    batch = seal(header, encode_records([RemoveTopicRecord(b"x" * 16)]))
    end = cluster.controllers[2].ledger.log_end
    cluster.shared.commit(cluster.shared.epoch, [batch.encoded])
    cluster.run(0.1)
    assert "no topic" in cluster.stopped[2]
    assert cluster.controllers[2].ledger.log_end == end
    status, reply = cluster.ask("GET", "/v1/topics", node=2)
    assert (status, reply["code"]) == (503, "SHUTTING_DOWN")
    assert "no topic" in reply["message"]


def test_what_the_fence_skips_is_skipped_everywhere_and_the_leader_resigns(cluster):
    fill(cluster, 2)
    stale = cluster.batches()[-1].encoded
    cluster.shared.commit(cluster.shared.epoch, [stale])
    cluster.run(0.1)
    assert len(cluster.events("batch_skipped")) == 3
    assert cluster.shared.nodes[1].resigned
    cluster.lead(2)
    fill(cluster, 2, start=10)
    cluster.assert_equal()


# -- diverged states -------------------------------------------------------------------------------


def test_the_one_whose_state_differs_stops_serving_and_the_others_go_on(cluster):
    corrupt(cluster, 3)
    fill(cluster, 3)
    cluster.run(0.5)
    status, reply = cluster.ask("GET", "/v1/topics", node=3, query={"consistency": "stale"})
    assert (status, reply["code"]) == (503, "STATE_DIVERGED")
    assert "majority" in cluster.ask("GET", "/v1/status", node=3)[1]["note"]
    assert cluster.ask("GET", "/health/ready", node=3)[0] == 503
    assert cluster.ask("GET", "/v1/topics")[0] == 200


def test_a_leader_whose_state_differs_resigns(cluster):
    corrupt(cluster, 1)
    cluster.send("POST", "/v1/topics", {"topics": [{"name": "x", "replicationFactor": 1}]})
    cluster.run(0.5)
    assert cluster.shared.nodes[1].resigned.pop()
    cluster.lead(2)
    assert cluster.ask("GET", "/v1/topics", node=1, query={"consistency": "stale"})[0] == 503
    assert cluster.ask("GET", "/v1/topics")[0] == 200
    cluster.processes[1].run(lambda: cluster.shared.lead(1))
    cluster.run(0.5)
    assert cluster.shared.nodes[1].resigned
