"""What is on disk: restarts, checkpoints, jumps and backfill, damage and full disks."""

import json
from functools import partial

import msgspec
import pytest

from ledger.batch import BatchHeader, Provenance, seal
from metadata.codec import encode_records
from metadata.records import RemoveTopicRecord
from quorum.api import Mark
from runtime.requests import Caller
from runtime.simulated.platter import Platter
from runtime.simulated.process import Death
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Broker, Cluster

SMALL = {"ledger_segment_bytes": 4096, "catch_up_chunk_bytes": 1000}


def fill(cluster, topics=20, partitions=5, start=0):
    for number in range(start, start + topics):
        cluster.create_topic(f"topic-{number:04d}", partitions=partitions, factor=1)


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    return cluster


def checkpoint(cluster, node_id):
    """Write a checkpoint on a node, and let its journal be cut there."""
    written = []
    controller = cluster.controllers[node_id]
    cluster.processes[node_id].run(lambda: written.append(controller.write_checkpoint()))
    assert written == [True]
    cluster.run(1.0)
    return list_checkpoints(cluster.shared.disks[node_id])[-1]


def forget_journal(cluster):
    """No journal holds what lies before the leader's mark: who lacks it must jump."""
    cluster.shared.compacted = cluster.shared.manifests[cluster.shared.leader].index


def wipe(cluster, node_id):
    cluster.platters[node_id] = Platter(cluster.world.random(f"another-{node_id}"))
    cluster.shared.manifests.pop(node_id, None)


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
    controller._snapshotting._compact = lambda mark, on_done: on_done(False)
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


# -- jumps -----------------------------------------------------------------------------------------


def test_a_laggard_catches_up_by_ledger_segments(cluster):
    fill(cluster, 3)
    cluster.shared.cut(3)
    fill(cluster, 30, start=10)
    checkpoint(cluster, 1)
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
    cluster.shared.cut(3)
    fill(cluster, 40, start=10)
    checkpoint(cluster, 1)
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
    cluster.shared.cut(3)
    fill(cluster, 40, start=10)
    checkpoint(cluster, 1)
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
    cluster.shared.cut(3)
    fill(cluster, 40, start=10)
    checkpoint(cluster, 1)
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
    cluster.shared.cut(3)
    fill(cluster, 40, start=10)
    checkpoint(cluster, 1)
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


# -- damage and full disks -------------------------------------------------------------------------


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


def damage(cluster, node_id, which, position=2500):
    """Flip a byte of a segment; returns its name."""
    name = sorted(n for n in cluster.platters[node_id].names if n.startswith("log/"))[which]
    inode = cluster.platters[node_id].names[name]
    inode.content[min(position, len(inode.content) - 10)] ^= 1
    return name


@pytest.mark.parametrize("which", [0, 2, -2])
@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_a_damaged_segment_is_fetched_again_at_start(cluster, which, how):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.shared.disks[3].unlink(
        f"checkpoints/{list_checkpoints(cluster.shared.disks[3])[-1].name}"
    )
    whole = cluster.ledger_files(3)
    cluster.kill(3)
    name = damage(cluster, 3, which)
    if how == "gone":
        del cluster.platters[3].names[name]
    cluster.start(3)
    cluster.run(5.0)
    backfilled = which == 0 and how == "gone"
    assert cluster.events("history_backfilled" if backfilled else "ledger_mended")
    assert cluster.holds(3, whole)
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()


@pytest.mark.parametrize("gone", [[1, 2], [-3, -2], [1, 3], [0, 1, 2, 3, 4]])
def test_several_segments_that_are_gone_are_fetched_again(cluster, gone):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.shared.disks[3].unlink(
        f"checkpoints/{list_checkpoints(cluster.shared.disks[3])[-1].name}"
    )
    whole = cluster.ledger_files(3)
    cluster.kill(3)
    names = sorted(n for n in cluster.platters[3].names if n.startswith("log/"))
    for which in gone:
        del cluster.platters[3].names[names[which]]
    cluster.start(3)
    cluster.run(5.0)
    assert cluster.holds(3, whole)
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()


def test_segments_that_go_while_the_node_runs_are_served_again(cluster):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    whole = cluster.ledger_files(3)
    cluster.kill(3)
    names = sorted(n for n in cluster.platters[3].names if n.startswith("log/"))
    for name in names[1:3]:
        del cluster.platters[3].names[name]
    cluster.start(3)
    cluster.run(1.0)
    query = {"offset": str(int(names[1][4:24])), "maxBytes": "1"}
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 503
    cluster.run(3.0)
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 200
    assert cluster.holds(3, whole)
    cluster.assert_equal()


def test_a_byte_that_flips_while_the_node_runs_is_mended_and_never_served(cluster):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)  # so that nothing old is in memory
    cluster.run(0.5)
    name = damage(cluster, 3, 1)
    query = {"offset": "50", "maxBytes": "100000"}
    status, reply = cluster.ask("GET", "/v1/log", node=3, query=query)
    assert (status, reply["code"]) == (503, "STORAGE_ERROR")
    assert name in reply["message"]
    cluster.run(1.0)
    assert cluster.events("ledger_mended")
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 200
    cluster.assert_equal()


def test_a_damaged_ledger_without_peers_is_an_error_that_says_what_to_do():
    cluster = Cluster(nodes=1, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    written = checkpoint(cluster, 1)
    cluster.shared.disks[1].unlink(f"checkpoints/{written.name}")
    cluster.kill(1)
    name = damage(cluster, 1, -2)
    cluster.start(1)
    cluster.run(1.0)
    assert name in cluster.stopped[1]
    assert "restore the file" in cluster.stopped[1]


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


def corrupt(cluster, node_id):
    """Let a node's memory rot: its image is not what its log says."""
    applier = cluster.controllers[node_id]._applier
    for holder in filter(None, (applier, applier.pending)):
        wrong = holder.image.state_hash.plus(1, 0)
        holder.image = msgspec.structs.replace(holder.image, state_hash=wrong)


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


# -- what fetchers get -----------------------------------------------------------------------------


def test_a_fetcher_with_nothing_gets_the_snapshot_when_it_is_smaller(cluster):
    for _ in range(60):
        cluster.create_topic("again", factor=1)
        cluster.ask("DELETE", "/v1/topics/again")
    written = checkpoint(cluster, 1)
    broker = Broker(cluster, 2).register()
    assert broker.last.snapshot.id == str(written)
    assert broker.last.batches == ()
    data, size = b"", broker.last.snapshot.size
    while len(data) < size:
        replies = cluster.send(
            "GET",
            f"/v1/snapshots/{written}",
            headers={"range": f"bytes={len(data)}-{len(data) + 999}"},
            query={"brokerId": "2", "brokerEpoch": str(broker.epoch)},
        )
        assert replies[0].status == 206
        data += replies[0].body
    inode = cluster.platters[1].names[f"checkpoints/{written.name}"]
    assert data == bytes(inode.content)
    broker.offset = broker.applied = written.offset
    broker.fetched_epoch = written.epoch
    behind = broker.fetch()
    assert behind.batches
    assert broker.offset == cluster.image.offset


def test_a_fetcher_that_would_save_nothing_gets_batches(cluster):
    (broker,) = cluster.online(2)
    fill(cluster, 1)
    checkpoint(cluster, 1)
    broker.fetch()
    assert broker.last.snapshot is None
    assert broker.offset == cluster.image.offset


def test_loading_a_snapshot_counts_as_contact(cluster):
    (broker,) = cluster.online(2)
    written = checkpoint(cluster, 1)
    for _ in range(12):
        cluster.run(1.0)
        cluster.send(
            "GET",
            f"/v1/snapshots/{written}",
            query={"brokerId": "2", "brokerEpoch": str(broker.epoch)},
        )
    assert not cluster.broker(2).fenced
    assert cluster.broker(1).fenced


def test_another_brokers_certificate_keeps_nobodys_session_alive_by_loading(cluster):
    (broker,) = cluster.online(2)
    written = checkpoint(cluster, 1)
    query = {"brokerId": "2", "brokerEpoch": str(broker.epoch)}
    for _ in range(12):
        cluster.run(1.0)
        caller = Caller("Broker:3", "certificate", "10.0.0.3")
        replies = cluster.send("GET", f"/v1/snapshots/{written}", query=query, caller=caller)
        assert replies[0].status == 403
    assert cluster.broker(2).fenced


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("00000000000000000007-0000000001", {}, 404, "SNAPSHOT_NOT_FOUND"),
        ("../../etc/passwd", {}, 404, "NOT_FOUND"),
        ("%2e%2e%2fjournal", {}, 404, "SNAPSHOT_NOT_FOUND"),
        ("ID", {"range": "bytes=99999999-"}, 416, "POSITION_OUT_OF_RANGE"),
        ("ID", {"range": "bytes=5-1"}, 400, "INVALID_REQUEST"),
        ("ID", {"range": "lines=1-2"}, 400, "INVALID_REQUEST"),
    ],
)
def test_wrong_ranges(cluster, path, headers, status, code):
    written = checkpoint(cluster, 1)
    path = path.replace("ID", str(written))
    replies = cluster.send("GET", f"/v1/snapshots/{path}", headers=headers)
    assert (replies[0].status, json.loads(replies[0].body)["code"]) == (status, code)


def test_a_history_that_is_not_ours_diverges(cluster):
    cluster.lead(2)
    fill(cluster, 2)
    broker = Broker(cluster, 2).register()
    end = cluster.image.offset
    beyond = broker.fetch(fetched_offset=end + 10, fetched_epoch=2, apply=False)
    assert (beyond.diverging.epoch, beyond.diverging.end_offset) == (2, end)
    first_of_two = next(b.header.base_offset for b in cluster.batches() if b.header.epoch == 2)
    lost = broker.fetch(fetched_offset=first_of_two + 1, fetched_epoch=1, apply=False)
    assert (lost.diverging.epoch, lost.diverging.end_offset) == (1, first_of_two)
    broker.offset, broker.fetched_epoch = first_of_two, 1
    assert broker.fetch().batches


def test_an_epoch_that_we_never_had_diverges_where_the_one_before_it_ends(cluster):
    cluster.shared.cut(2)
    cluster.processes[2].run(lambda: cluster.shared.lead(2))  # leads epoch 2 and commits nothing
    cluster.run(0.1)
    cluster.shared.heal()
    cluster.lead(3)
    broker = Broker(cluster, 2).register()
    end_of_one = next(b.header.base_offset for b in cluster.batches() if b.header.epoch == 3)
    lost = broker.fetch(fetched_offset=end_of_one - 1, fetched_epoch=2, apply=False)
    assert (lost.diverging.epoch, lost.diverging.end_offset) == (1, end_of_one - 1)


def test_what_brokers_share_is_what_each_asked_for(cluster):
    fill(cluster, 5)
    (two,) = cluster.online(2)
    end = cluster.image.offset
    fill(cluster, 5, start=20)
    one_batch = two.fetch(max_bytes=1, fetched_offset=end, apply=False)
    assert len(one_batch.batches) == 1
    two.offset, two.fetched_epoch = end, 1
    assert len(two.fetch(apply=False).batches) == 5
    cluster.create_topic("more", factor=1)
    two.offset, two.fetched_epoch = end, 1
    assert len(two.fetch(apply=False).batches) == 6


def test_at_least_one_batch_goes_whatever_max_bytes_says(cluster):
    fill(cluster, 3)
    broker = Broker(cluster, 2)
    reply = broker.fetch(max_bytes=1)
    assert len(reply.batches) == 1
    assert reply.high_watermark > broker.offset


def test_a_reply_carries_the_state_hash_at_its_last_batch(cluster):
    fill(cluster, 3)
    broker = Broker(cluster, 2).register()
    mark = broker.last.state_hash
    assert mark.offset == broker.offset == cluster.image.offset
    assert mark.state_hash == cluster.image.state_hash.shared_bytes()
    assert mark.chain_hash == cluster.leader.ledger.head


def test_a_fetch_is_held_until_something_is_committed_or_its_wait_is_over(cluster):
    (broker,) = cluster.online(2)
    at = cluster.world.now
    replies = broker.send(max_wait_ms=1500)
    cluster.run_until(lambda: bool(replies))
    assert 1.5 <= cluster.world.now - at < 1.6
    assert replies[0].batches == ()
    replies = broker.send(max_wait_ms=1500)
    at = cluster.world.now
    cluster.create_topic("x", factor=1)
    cluster.run(0.01)
    assert replies[0].batches
    assert cluster.world.now - at < 0.1


def test_no_fetch_is_held_longer_than_a_heartbeat_interval(cluster):
    (broker,) = cluster.online(2)
    replies = broker.send(max_wait_ms=60_000)
    cluster.run(2.1)
    assert replies


def test_a_held_fetch_is_told_when_leadership_is_lost(cluster):
    (broker,) = cluster.online(2)
    replies = broker.send(max_wait_ms=2000)
    cluster.run(0.1)
    cluster.lead(2)
    cluster.run(0.1)
    assert replies[0].error.code == "NO_QUORUM"
    assert replies[0].leader_id in (None, 2)  # never back to the one that was deposed
