"""Records and whole logs of every tried Kafka release come back from our records byte for byte."""

import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from kafka_listener.wire.messages import (
    RequestHeader,
    decode_response,
    decode_response_header,
    encode_request,
    encode_request_header,
)
from kafka_listener.wire.record_batches import RecordBatch, decode_batches, encode_batch
from logberg.kafka.jars import TESTED_VERSIONS, class_path, kafka_jars
from tests.kafka.stock_kraft import stock_cluster
from tests.kafka_records import control_round_trip, round_trip
from tests.oracles.kafka_jars import Oracle
from tests.oracles.records import JAVA, JAVA_CLASS, drawn
from tests.oracles.records.cases import cases

_SNAPSHOT_TYPES = (3, 4)
"""SnapshotHeader and SnapshotFooter: a checkpoint's own, and no records of ours."""


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_golden_and_drawn_records_are_those_of_each_release(version: str) -> None:
    jars = class_path(kafka_jars(version))
    with Oracle(drawn.JAVA, drawn.JAVA_CLASS, jars) as oracle:
        [answer] = oracle.ask([drawn.ALL_TYPES])
        types = drawn.parse_types(answer)
        asked = list(drawn.asked(types, seeds=20))
        answers = oracle.ask([one.question for one in asked], at_once=20)
    for one, said in zip(asked, answers, strict=True):
        value = bytes.fromhex(said)
        assert round_trip(value).data == value, one.key
    known = {
        (each.name, number) for each in types for number in range(each.lowest, each.highest + 1)
    }
    golden = [case for case in cases() if (type(case.record).__name__, case.version) in known]
    with Oracle(JAVA, JAVA_CLASS, jars) as oracle:
        answers = oracle.ask([case.question for case in golden], at_once=20)
    for case, said in zip(golden, answers, strict=True):
        assert said == f"{case.bytes.hex()} {case.bytes.hex()}", case.name


class KraftClient:
    """Sends requests to one KRaft controller, by our codec."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)

    def ask(self, api_key: int, version: int, **fields: Any) -> dict[str, Any]:
        head = encode_request_header(RequestHeader(api_key, version, 1, "a-client"))
        body = head + encode_request(api_key, version, fields)
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self._read(4))
        answer = self._read(size)
        _, start = decode_response_header(api_key, version, answer)
        return decode_response(api_key, version, answer, start)

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            some = self._socket.recv(size - len(found))
            assert some, "the controller closed the connection"
            found += some
        return found

    def close(self) -> None:
        self._socket.close()


def change_everything(client: KraftClient) -> None:
    """Ask for changes that write as many kinds of records as a client can cause."""
    topics = [
        {"Name": name, "NumPartitions": 4, "ReplicationFactor": 1, "Configs": configs}
        for name, configs in (
            ("orders", [{"Name": "retention.ms", "Value": "7"}]),
            ("parts", []),
        )
    ]
    made = client.ask(19, 7, Topics=topics, timeoutMs=10_000)
    assert {topic["ErrorCode"] for topic in made["Topics"]} == {0}
    client.ask(37, 3, Topics=[{"Name": "parts", "Count": 6, "Assignments": None}], TimeoutMs=10_000)
    change = {"Name": "cleanup.policy", "ConfigOperation": 0, "Value": "compact"}
    resource = {"ResourceType": 2, "ResourceName": "orders", "Configs": [change]}
    client.ask(44, 1, Resources=[resource])
    entity = [{"EntityType": "user", "EntityName": "al"}]
    ops = [{"Key": "producer_byte_rate", "Value": 1024.0, "Remove": False}]
    client.ask(49, 1, Entries=[{"Entity": entity, "Ops": ops}])
    credential = {"Name": "al", "Mechanism": 1, "Iterations": 4096}
    secret = {"Salt": b"salt", "SaltedPassword": b"p" * 32}
    client.ask(51, 0, Upsertions=[{**credential, **secret}])
    client.ask(51, 0, Deletions=[{"Name": "al", "Mechanism": 1}])
    client.ask(20, 6, Topics=[{"Name": "parts"}], TimeoutMs=10_000)


def batches_in(folder: Path) -> list[tuple[str, RecordBatch, bytes]]:
    """Return every batch in the logs and snapshots below a folder, with its bytes."""
    found = []
    for path in sorted(folder.rglob("__cluster_metadata-0/*")):
        if path.suffix in {".log", ".checkpoint"}:
            data = path.read_bytes()
            for batch in decode_batches(data):
                raw = data[batch.position : batch.position + batch.size]
                found.append((path.name, batch, raw))
    return found


@pytest.mark.parametrize("version", [TESTED_VERSIONS[0], TESTED_VERSIONS[-1]])
def test_a_real_kraft_log_comes_back_byte_for_byte(tmp_path: Path, version: str) -> None:
    with stock_cluster(tmp_path, kafka_jars(version), brokers=2, controllers=1) as cluster:
        client = KraftClient(cluster.addresses[0])
        change_everything(client)
        client.close()
        cluster.brokers[0].stop()
    kinds: dict[str, int] = {}
    batches = batches_in(tmp_path)
    for file, batch, raw in batches:
        pairs: list[tuple[bytes | None, bytes]] = []
        for key, value in batch.records:
            assert value is not None
            if batch.control:
                assert key is not None
                kind = int.from_bytes(key[2:4], "big")
                pairs.append((key, value))
                kinds[f"control {kind}"] = kinds.get(f"control {kind}", 0) + 1
                if kind not in _SNAPSHOT_TYPES:
                    assert control_round_trip(key, value) == (key, value), file
            else:
                back = round_trip(value)
                assert back.data == value, (file, back)
                pairs.append((None, back.data))
                name = f"{back.name} {back.version}"
                kinds[name] = kinds.get(name, 0) + 1
        again = encode_batch(
            batch.base_offset, batch.epoch, batch.timestamp_ms, pairs, control=batch.control
        )
        assert again == raw, (file, batch.base_offset)
    print(version, len(batches), "batches", json.dumps(kinds, indent=1))
    assert len([name for name in kinds if not name.startswith("control")]) >= 10
