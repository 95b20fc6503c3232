"""Brokers that wait for the same get the same bytes but for their epoch, encoded once."""

from typing import Any

import msgspec
import pytest

from controller.http import shared_replies
from controller.http.shared_replies import SharedReply
from metadata.messages import MetadataFetchReply, SeenState, SnapshotToLoad, StateAt
from metadata.messages.wire import JSON, MSGPACK, encode
from tests.unit.controller.cluster import Cluster

EPOCHS = (-1, 0, 1, 127, 128, 70_000, 2**40, 2**63 - 1)
"""MessagePack writes them with one to nine bytes."""
REPLIES = {
    "nothing new": MetadataFetchReply(high_watermark=0, leader_epoch=0),
    "batches": MetadataFetchReply(
        state=SeenState.ONLINE,
        caught_up=True,
        leader_id=1,
        leader_epoch=1,
        leader_url="http://one",
        high_watermark=1,
        batches=(b"\x00\x01", b"brokerEpoch"),
        state_hash=StateAt(1, bytes(32), b"\x01" * 32),
        session_timeout_ms=9_000,
    ),
    "a snapshot": MetadataFetchReply(snapshot=SnapshotToLoad("brokerEpoch", 1)),
}


@pytest.mark.parametrize("media", [JSON, MSGPACK])
@pytest.mark.parametrize("name", REPLIES)
def test_a_shared_reply_has_the_bytes_of_a_reply_of_the_broker_s_own(name: str, media: str) -> None:
    shared = SharedReply(REPLIES[name])
    for epoch in EPOCHS:
        own = msgspec.structs.replace(REPLIES[name], broker_epoch=epoch)
        assert shared.encoded(epoch, media) == encode(own, media)


def test_one_change_is_encoded_once_for_all_brokers_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster: Any = Cluster(nodes=1)
    brokers = cluster.online(*range(100, 140))
    for _ in range(2):
        for broker in brokers:
            broker.fetch()
    made = list[str]()
    around = shared_replies._around_epoch

    def counted(message: MetadataFetchReply, media: str) -> tuple[bytes, bytes]:
        made.append(media)
        return around(message, media)

    monkeypatch.setattr(shared_replies, "_around_epoch", counted)
    replies = [broker.send(max_wait_ms=2_000) for broker in brokers]
    cluster.run(0.01)
    assert not any(replies)
    cluster.create_topic("news", factor=1)
    cluster.run_until(lambda: all(replies))
    assert made == [MSGPACK]
    assert len({reply.broker_epoch for (reply,) in replies}) == len(brokers)
    assert len({reply.batches for (reply,) in replies}) == 1
    assert all(reply.state is SeenState.ONLINE for (reply,) in replies)
