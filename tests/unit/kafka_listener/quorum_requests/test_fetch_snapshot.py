"""Snapshots: whom they are offered to, what is in them, and how they are fetched."""

from typing import Any

import pytest

from kafka_listener.projection.projected_snapshots import FOLDER
from kafka_listener.wire.messages import decode_message, decode_metadata_record
from kafka_listener.wire.record_batches import RecordBatch, decode_batches
from metadata.records import (
    ConfigRecord,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from metadata.sealed_places import scram_place
from metadata.sealing import ClusterKey
from tests.kafka_quorum import KafkaCluster, batches_of

KEY = ClusterKey(bytes(32))


def checkpointed(cluster: KafkaCluster, times: int = 3) -> KafkaCluster:
    """Write checkpoints on every controller, with a record between them."""
    for number in range(times):
        cluster.decide(NoOpRecord(), ConfigRecord(4, "1", f"key.{number}", "value"))
        cluster.run(1.0)
        for node_id, controller in cluster.controllers.items():
            cluster.processes[node_id].run(controller.write_checkpoint)
        cluster.run(2.0)
    cluster.decide(NoOpRecord())
    cluster.run(1.0)
    return cluster


def offered(cluster: KafkaCluster, node_id: int = 1) -> tuple[int, int]:
    """Fetch from the log's beginning until a snapshot is offered."""
    for _ in range(10):
        said = cluster.fetched(node_id, wait_ms=2_000)
        if said["SnapshotId"]["EndOffset"] >= 0:
            assert said["Records"] == b""
            return said["SnapshotId"]["EndOffset"], said["SnapshotId"]["Epoch"]
    raise AssertionError("no snapshot was offered")


def loaded(cluster: KafkaCluster, node_id: int = 1, piece: int = 100) -> bytes:
    """Fetch the offered snapshot, in pieces."""
    offset, epoch = offered(cluster, node_id)
    data = b""
    while True:
        said = cluster.fetch_snapshot(
            node_id, offset=offset, of_epoch=epoch, position=len(data), max_bytes=piece
        )
        assert (said["ErrorCode"], said["Position"]) == (0, len(data))
        data += said["UnalignedRecords"]
        if len(data) == said["Size"]:
            return data


def shown(batch: RecordBatch) -> list[tuple[str, int, Any]]:
    return [decode_metadata_record(value or b"") for _, value in batch.records]


def test_a_log_that_begins_at_zero_needs_no_snapshot() -> None:
    cluster = checkpointed(KafkaCluster(nodes=1), times=2)
    assert batches_of(cluster.fetched())[0].base_offset == 0
    assert cluster.fetched()["LogStartOffset"] == 0


def test_after_three_checkpoints_a_new_broker_loads_a_snapshot_and_goes_on_behind_it() -> None:
    cluster = checkpointed(KafkaCluster())
    data = loaded(cluster)
    offset, epoch = offered(cluster)
    first, *middle, last = list(decode_batches(data))
    assert (first.base_offset, first.control, last.control) == (0, True, True)
    assert [key and key[3] for key, _ in first.records] == [3, 5, 6]
    assert [key and key[3] for key, _ in last.records] == [4]
    assert first.records[0][1] is not None
    header = decode_message("SnapshotHeaderRecord", 0, first.records[0][1])
    assert header["LastContainedLogTimestamp"] > 0
    assert {batch.epoch for batch in (first, *middle, last)} == {epoch}
    records = [row for batch in middle for row in shown(batch)]
    assert records[0][0] == "FeatureLevelRecord"
    assert records[0][2] == {"Name": "metadata.version", "FeatureLevel": 30}
    names = {name for name, _, _ in records}
    assert names == {"FeatureLevelRecord", "RegisterControllerRecord", "ConfigRecord"}
    behind = cluster.fetched(offset=offset, last_epoch=epoch)
    assert batches_of(behind)[0].base_offset == offset
    assert 0 < behind["LogStartOffset"] <= offset


def test_the_snapshot_is_the_same_on_every_controller_and_after_a_restart() -> None:
    cluster = checkpointed(KafkaCluster())
    first = loaded(cluster)
    cluster.kill(1)
    cluster.start(1)
    cluster.run(1.0)
    for node_id in (2, 1):
        cluster.lead(node_id)
        assert loaded(cluster, node_id, piece=1 << 20) == first


def test_at_the_log_s_start_another_epoch_gets_a_snapshot() -> None:
    cluster = checkpointed(KafkaCluster(nodes=1))
    start = cluster.quorum_requests[1].log.start
    assert cluster.fetched(offset=start, last_epoch=1)["Records"]
    said = cluster.fetched(offset=start, last_epoch=0, wait_ms=3_000)
    assert said["SnapshotId"]["EndOffset"] >= start


@pytest.mark.parametrize(
    ("said", "code"),
    [({"offset": 1}, 98), ({"position": 10**9}, 99), ({"position": -1}, 99), ({"epoch": 9}, 75)],
)
def test_what_is_asked_wrongly_has_its_code(said: dict[str, int], code: int) -> None:
    cluster = checkpointed(KafkaCluster(nodes=1))
    offset, epoch = offered(cluster)
    answer = cluster.fetch_snapshot(**{"offset": offset, "of_epoch": epoch, **said})
    assert answer["ErrorCode"] == code
    assert answer["UnalignedRecords"] == b""


def test_secrets_are_in_the_snapshot_but_never_on_the_disk() -> None:
    cluster = KafkaCluster(nodes=1, cluster_key=KEY)
    block = KEY.seal(scram_place("al", 1, "storedKey"), b"the stored key", bytes(16)).block
    cluster.decide(
        TopicRecord("orders", bytes(15) + b"t"),
        UserScramCredentialRecord("al", 1, b"salt", block, b"the server key", 4096),
    )
    data = loaded(checkpointed(cluster), piece=7)
    assert b"the stored key" in data
    disk = cluster.shared.disks[1]
    [name] = disk.list(FOLDER)
    on_disk = disk.read(f"{FOLDER}/{name}")
    assert data.startswith(on_disk)
    assert b"orders" in on_disk
    assert b"stored key" not in on_disk
    assert b"server key" not in on_disk


def test_two_snapshots_are_kept() -> None:
    cluster = checkpointed(KafkaCluster(nodes=1))
    ids = [offered(cluster)]
    for _ in range(2):
        checkpointed(cluster)
        ids.append(offered(cluster))
    assert len(set(ids)) == 3
    codes = [cluster.fetch_snapshot(offset=o, of_epoch=e)["ErrorCode"] for o, e in ids]
    assert codes == [98, 0, 0]
    assert len(cluster.shared.disks[1].list(FOLDER)) == 2


def test_a_full_disk_delays_a_snapshot() -> None:
    cluster = checkpointed(KafkaCluster(nodes=1))
    cluster.faults[1].capacity_bytes = 0
    assert cluster.fetched(wait_ms=1_000)["SnapshotId"]["EndOffset"] == -1
    cluster.faults[1].heal()
    cluster.run(2.0)
    assert offered(cluster)


def test_a_restart_from_a_checkpoint_goes_on_at_the_level_of_the_log() -> None:
    """Only the image says the level then: the record that set it lies before."""
    cluster = checkpointed(KafkaCluster(nodes=1))
    cluster.kill(1)
    cluster.start(1)
    cluster.run(1.0)
    cluster.lead(1)
    start = cluster.end()
    assert cluster.quorum_requests[1].log.start > 0
    topic_id = bytes(15) + b"T"
    partition = PartitionRecord(0, topic_id, (1,), (1,), (), (), 1, 0, 0)
    cluster.decide(TopicRecord("orders", topic_id), partition)
    cluster.run(1.0)
    batches = batches_of(cluster.fetched(offset=start, last_epoch=cluster.epoch))
    rows = [row[:2] for batch in batches if not batch.control for row in shown(batch)]
    assert ("PartitionRecord", 2) in rows
