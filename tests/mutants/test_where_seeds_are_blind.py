"""Directed tests for protections that seeds reach too rarely, or never.

Rule: each test kills a mutant of the table. A mutant that other tests kill needs no test here.
"""

import contextlib
import itertools
from hashlib import sha256

import msgspec
import pytest

from runtime.http.content_digest import content_digest, is_content
from runtime.links.frames import BadFrameError, LinkFrameReader, framed
from runtime.simulated.process import Death
from runtime.simulated.world import ProcessKilledError
from snapshots.checkpoint import Footer, encode_footer, encode_header, parse_header
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.quorum.bench import Bench
from tests.unit.quorum.journal.rig import Rig, entries, fill

pytestmark = pytest.mark.simulation


def test_a_new_leader_grants_no_read_before_its_first_commit():
    bench = Bench()
    bench.win()
    granted = []
    bench.call(bench.node.read_index, granted.append)
    assert granted == [False]


def test_an_entry_is_handed_up_once():
    bench = Bench()
    bench.lead()
    proposed = [b"%d" % number for number in range(12)]
    for payload in proposed:
        bench.call(bench.node.propose, payload)
        bench.synced()
        bench.ack(3)
    assert bench.heard.payloads() == proposed


def test_what_is_written_behind_a_torn_tail_is_read_again():
    for cut in range(1, 60):
        rig = Rig(cut)
        journal = rig.open()
        fill(journal, 1, 4)
        journal.sync()
        rig.settle()
        fill(journal, 5, 6)
        journal.note_synced()
        rig.kill()
        inode = next(i for name, i in rig.platter.names.items() if name.endswith(".wal"))
        del inode.content[-cut:]
        journal = rig.open()
        fill(journal, len(journal) + 1, 9)
        journal.sync()
        rig.settle()
        held = entries(journal)
        rig.kill()
        assert entries(rig.open()) == held


def test_a_name_that_a_killed_process_gave_is_durable_before_it_is_relied_on():
    """Killed at any step of writing its tail anew; then a good life; then the power goes."""
    for step, seed in itertools.product(range(12), range(8)):
        rig = Rig(seed)
        journal = rig.open()
        fill(journal, 1, 4)
        journal.note_synced()
        rig.kill()
        rig.faults.kill_at(step, 0.0)
        with contextlib.suppress(ProcessKilledError):
            rig.open()
        rig.faults.spare()
        rig.kill()
        journal = rig.open()
        fill(journal, len(journal) + 1, 9)
        journal.sync()
        rig.settle()
        held = entries(journal)
        rig.lose_power()
        journal = rig.open()
        assert journal.damage == ""
        assert entries(journal) == held


def test_a_broker_gets_nothing_that_is_not_committed():
    cluster = Cluster(nodes=1)
    (broker,) = cluster.online(2)
    topic = {"name": "x", "numPartitions": 1, "replicationFactor": 1}
    proposed = cluster.send("POST", "/v1/topics", {"topics": [topic]})
    [reply] = broker.send(max_wait_ms=0)
    assert not proposed
    assert reply.batches == ()
    assert reply.high_watermark == broker.offset


def test_nobody_reads_what_is_only_proposed():
    cluster = Cluster(nodes=1)
    cluster.online(2)
    topic = {"name": "x", "numPartitions": 1, "replicationFactor": 1}
    cluster.send("POST", "/v1/topics", {"topics": [topic]})
    status, reply = cluster.ask("GET", "/v1/topics", query={"consistency": "stale"})
    assert (status, reply["topics"]) == (200, [])


def test_an_answer_names_the_offset_behind_its_change():
    cluster = Cluster(nodes=1)
    cluster.online(2)
    reply = cluster.create_topic("x", factor=1)
    assert reply["offset"] == cluster.leader.ledger.log_end


def checkpointed(cluster, node_id):
    """Write a checkpoint on a node; its journal may be cut there."""
    controller = cluster.controllers[node_id]
    cluster.processes[node_id].run(controller.write_checkpoint)
    cluster.run(1.0)
    return list_checkpoints(cluster.shared.disks[node_id])[-1]


def with_another_state(content):
    """A checkpoint that is right in every byte, and says another state hash."""
    header, length = parse_header(content)
    encoded = encode_header(msgspec.structs.replace(header, state_hash=bytes(64)))
    footer_at = content.rindex(b"QRTF")
    body = encoded + content[length:footer_at]
    blocks, records = (
        int.from_bytes(content[footer_at + at : footer_at + end], "big")
        for at, end in ((12, 16), (16, 24))
    )
    return body + encode_footer(Footer(blocks, records, sha256(body).digest()), header.format)


def test_a_checkpoint_whose_records_are_another_state_is_put_aside():
    cluster = Cluster()
    cluster.online(1)
    cluster.create_topic("x", factor=1)
    written = checkpointed(cluster, 2)
    cluster.kill(2)
    inode = cluster.platters[2].names[f"checkpoints/{written.name}"]
    inode.content[:] = with_another_state(bytes(inode.content))
    cluster.start(2)
    cluster.run(1.0)
    [event] = cluster.events("checkpoint_damaged")
    assert "state hash" in event["reason"]
    cluster.assert_equal()


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_stands_before_a_jump_is_durable_when_the_jump_is(seed):
    cluster = Cluster(seed=seed, ledger_segment_bytes=2048, catch_up_chunk_bytes=1000)
    cluster.online(1)
    for number in range(12):
        cluster.create_topic(f"early-{number}", factor=1)
    cluster.shared.cut(3)
    for number in range(20):
        cluster.create_topic(f"late-{number}", factor=1)
    written = checkpointed(cluster, 1)
    cluster.shared.disks[1].unlink(f"checkpoints/{written.name}")
    cluster.shared.compacted = cluster.shared.manifests[1].index
    cluster.shared.heal()
    cluster.run(3.0)
    assert cluster.events("catch_up_ready")
    cluster.kill(3, Death.POWER)
    cluster.start(3)
    cluster.run(1.0)
    assert not cluster.events("ledger_damaged")
    cluster.assert_equal()


def flipped(content):
    """Every single bit of it, wrong once."""
    for bit in range(len(content) * 8):
        harmed = bytearray(content)
        harmed[bit // 8] ^= 1 << bit % 8
        yield bytes(harmed)


def test_no_frame_with_a_flipped_bit_is_taken_from_the_wire():
    for harmed in flipped(framed(b"a vote")):
        with pytest.raises(BadFrameError):
            # A length that has grown must not make it wait for the rest.
            list(LinkFrameReader(cap=1 << 31).feed(harmed))


def test_no_body_with_a_flipped_bit_is_taken_for_what_was_sent():
    body = b"create topic"
    assert is_content(body, content_digest(body))
    assert not any(is_content(harmed, content_digest(body)) for harmed in flipped(body))
