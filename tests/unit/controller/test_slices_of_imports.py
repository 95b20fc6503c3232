"""Imports, the bridge and large records: how much work is done between two yields."""

from base64 import b64encode
from collections.abc import Generator
from typing import Any

import pytest

from controller.leader import batch_writer
from controller.leader.proposer import Proposer
from metadata.codec import decode_records, encode_records
from metadata.messages import FollowSourceRequest, ImportRequest
from metadata.records import KeyRecord, PartitionRecord, Record, TopicRecord
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.slice_counter import LIMIT, Counter, counting, sliced


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return counting(monkeypatch)


def test_imports_and_the_bridge_look_at_little_in_one_slice(counter: Counter) -> None:
    """Topics with few partitions each: the slices end between topics too."""
    records: list[Record] = []
    for topic in range(400):
        topic_id = topic.to_bytes(16, "big")
        records.append(TopicRecord(f"brought-{topic}", topic_id))
        records += (
            PartitionRecord(number, topic_id, (7, 8), (7, 8), (), (), 7, 5, 7)
            for number in range(50)
        )
    cluster: Any = Cluster(nodes=1)
    encoded, leader = encode_records(records), cluster.leader._leader
    imported = ImportRequest(encoded, "zookeeper://a:2181", 1)
    followed = FollowSourceRequest("zookeeper://a:2181", "c", -1, 1, encoded)
    for decision in (
        leader.imports.decide(cluster.image, imported, (encoded,)),
        leader.bridge.follow(cluster.image, followed, "a"),
    ):
        counter.now = counter.most = counter.total = 0
        result = sliced(counter, decision)
        assert len(result.records) >= len(records)
        assert counter.most <= LIMIT / 10
        assert counter.total >= 20_000, "the counter doesn't see what is looked at"


def test_batches_of_few_large_records_are_written_one_in_a_slice(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Proposer._contained

    def contained(*args: Any) -> Generator[None, None, None]:
        for _ in inner(*args):
            counter.slice_ends()
            yield
        counter.slice_ends()

    def decoded(records: bytes) -> Any:
        counter.now += 1_000_000
        return decode_records(records)

    monkeypatch.setattr(Proposer, "_contained", contained)
    monkeypatch.setattr(batch_writer, "decode_records", decoded)
    keys = [KeyRecord(f"k/{number}", bytes(4_000), 0, 0, 1) for number in range(400)]
    body = {
        "records": b64encode(encode_records(keys)).decode(),
        "source": "etcd+http://a:2379",
        "revision": 1,
    }
    status, reply = Cluster(nodes=1).ask("POST", "/v1/import", body)
    assert (status, reply["written"]) == (200, 400)
    assert counter.total > 10_000_000, "the records weren't divided into batches"
    assert counter.most < 2_000_000
