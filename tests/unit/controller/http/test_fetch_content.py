"""What a broker gets when it fetches: a snapshot, batches, or the offset where histories part."""

import json

import pytest

from controller.http.held_requests import SPREAD
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Broker, Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    fill,
)


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    return cluster


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


def test_the_list_of_snapshots_names_those_that_are_served(cluster):
    written = []
    for number in range(3):
        cluster.create_topic(f"s-{number}", factor=1)
        written.insert(0, checkpoint(cluster, 1))

    def listed(**query):
        status, answer = cluster.ask("GET", "/v1/snapshots", query=query, node=1)
        assert status == 200, answer
        return [each["id"] for each in answer["snapshots"]], answer["more"]

    names = [str(each) for each in written]
    assert listed() == (names, False)
    assert listed(limit="2") == (names[:2], True)
    assert listed(upTo=str(written[0].offset - 1)) == (names[1:], False)
    assert listed(upTo=str(written[1].offset), limit="1") == (names[1:2], True)
    assert listed(upTo="0") == ([], False)
    _, answer = cluster.ask("GET", "/v1/snapshots", node=1)
    newest = answer["snapshots"][0]
    inode = cluster.platters[1].names[f"checkpoints/{written[0].name}"]
    assert (newest["offset"], newest["epoch"]) == written[0]
    assert newest["size"] == len(inode.content)


@pytest.mark.parametrize("query", [{"upTo": "x"}, {"limit": "0"}, {"limit": "-1"}])
def test_a_bad_list_of_snapshots_is_refused(cluster, query):
    status, answer = cluster.ask("GET", "/v1/snapshots", query=query)
    assert (status, answer["code"]) == (400, "INVALID_REQUEST")
    assert next(iter(query)) in answer["message"]


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
    assert 1.5 * (1 - SPREAD) <= cluster.world.now - at <= 1.5
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
