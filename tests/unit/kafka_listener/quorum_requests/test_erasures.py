"""What brokers of Kafka get once a user is erased: nothing from before, the same on all nodes."""

from base64 import b64encode
from hashlib import sha256

from metadata.features import ERASURE_FROM
from metadata.sealed_places import scram_place
from metadata.sealing import ClusterKey
from tests.kafka_quorum import KafkaCluster, batches_of

SECRET = bytes(32)


def made(nodes: int = 3) -> KafkaCluster:
    keys = {node: ClusterKey(SECRET) for node in range(1, nodes + 1)}
    levels = {"metadata.version": 30, "logberg.version": ERASURE_FROM}
    cluster = KafkaCluster(nodes=nodes, cluster_key=keys.__getitem__, initial_features=levels)
    cluster.keys = keys
    return cluster


def set_credential(cluster: KafkaCluster, name: str) -> None:
    upsertion = {
        "name": name,
        "mechanism": "SCRAM-SHA-256",
        "iterations": 4096,
        "salt": b64encode(b"some salt").decode(),
        "saltedPassword": b64encode(sha256(name.encode()).digest()).decode(),
    }
    status, reply = cluster.ask("POST", "/v1/users/scram", {"upsertions": [upsertion]})
    assert (status, reply["users"][0]["error"]) == (200, None), reply


def stored_key(cluster: KafkaCluster, name: str) -> bytes:
    """Return what brokers get of a credential."""
    record = cluster.image.scram.credentials[name, 1]
    return cluster.keys[1].open(scram_place(name, 1, "storedKey"), record.stored_key)


def test_the_log_begins_behind_an_erasure() -> None:
    cluster = made()
    set_credential(cluster, "alice")
    set_credential(cluster, "bob")
    cluster.run(1.0)
    alices, bobs = stored_key(cluster, "alice"), stored_key(cluster, "bob")
    log = cluster.quorum_requests[1].log
    start = cluster.image.offset
    assert log.start < start
    status, _ = cluster.ask("POST", "/v1/erasures", {"subject": "user:alice"})
    assert status == 200
    assert log.start > start
    cluster.run(3.0)

    said = cluster.fetched(1, wait_ms=2_000)
    assert said["Records"] == b""
    offset, epoch = said["SnapshotId"]["EndOffset"], said["SnapshotId"]["Epoch"]
    assert offset >= log.start
    data = cluster.fetch_snapshot(1, offset=offset, of_epoch=epoch, max_bytes=10**6)
    assert bobs in data["UnalignedRecords"]
    assert alices not in data["UnalignedRecords"]
    assert not any(each.exchange.verdict for each in cluster.quorum_requests.values())


def test_a_restarted_controller_projects_nothing_before_it_may_open() -> None:
    cluster = made()
    set_credential(cluster, "alice")
    set_credential(cluster, "bob")
    cluster.run(1.0)
    cluster.kill(3)
    cluster.ask("POST", "/v1/erasures", {"subject": "user:alice"})
    cluster.keys[3] = ClusterKey(SECRET)
    cluster.shared.cut(3)
    cluster.start(3)
    cluster.run(1.0)
    assert cluster.quorum_requests[3]._clear_values.kept_sealed == 0
    assert cluster.keys[3].subjects.keys is None
    cluster.shared.heal()
    cluster.run(1.0)
    cluster.kill(1)
    cluster.lead(3)
    cluster.run(3.0)
    own = cluster.quorum_requests[3]
    assert own.log.start > 0
    assert own.log.is_whole
    assert not own.exchange.verdict


def test_batches_behind_an_erasure_are_open_to_brokers() -> None:
    cluster = made(nodes=1)
    set_credential(cluster, "alice")
    cluster.ask("POST", "/v1/erasures", {"subject": "user:alice"})
    set_credential(cluster, "alice")
    cluster.run(3.0)
    log = cluster.quorum_requests[1].log
    said = cluster.fetched(1, offset=log.start, last_epoch=log.start_epoch, wait_ms=1_000)
    assert stored_key(cluster, "alice") in said["Records"]
    assert batches_of(said)


def test_many_erasures_ask_for_one_checkpoint_a_second() -> None:
    cluster = made(nodes=1)
    asked: list[float] = []
    followed = cluster.quorum_requests[1]._controller
    followed.write_checkpoint = lambda: bool(asked.append(0))
    for _ in range(6):
        cluster.ask("POST", "/v1/erasures", {"subject": "user:alice"})
    cluster.run(3.0)
    assert 3 <= len(asked) <= 6
