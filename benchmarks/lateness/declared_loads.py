"""The loads of `make lateness` for the routes of declared state, imports and the bridge.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

import hashlib
from base64 import b64encode
from typing import Any

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import TOKEN, Stage
from metadata.codec import encode_records
from metadata.records import KeyRecord, PartitionRecord, Record, TopicRecord

_TOPICS = 2_000
"""Topics in one declaration. All of them with their records are one transaction."""
_OTHERS = 400
_PARTS = 3
_PARTITIONS = 50
"""Of each imported topic."""


async def _apply(stage: Stage, declared: dict[str, Any]) -> Any:
    status, answer = await stage.change("POST", "/v1/apply", declared, bearer=TOKEN)
    assert status == 200, answer
    assert answer["refused"] == 0, answer
    return answer


async def _declared(stage: Stage) -> None:
    """Thousands of topics with partitions, and entries of all other kinds, come as one change."""
    for turn in stage.going_on():
        topics = [
            {"name": f"declared-{turn}-{number}", "partitions": 5, "replicationFactor": 3}
            for number in range(_TOPICS)
        ]
        names = [f"declared-{turn}-{number}" for number in range(_OTHERS)]
        declared: dict[str, Any] = {
            "topics": topics,
            "quotas": [
                {
                    "entity": [{"entityType": "user", "entityName": name}],
                    "quotas": {"producer_byte_rate": 1024.0},
                }
                for name in names
            ],
            "acls": [
                {
                    "resourceType": "TOPIC",
                    "resourceName": name,
                    "principal": "User:alice",
                    "operation": "READ",
                }
                for name in names
            ],
        }
        await _apply(stage, {**declared, "dryRun": True})
        await _apply(stage, declared)
        again = await _apply(stage, declared)
        assert again["items"] == [], "an apply that was made differs"
        await stage.json("/v1/export")
        await stage.json("/v1/export?kinds=quotas,acls,users,configs")
        await _apply(stage, {"prune": ["quotas", "acls"]})
        gone = {"names": [topic["name"] for topic in topics]}
        status, answer = await stage.change("DELETE", "/v1/topics", gone, bearer=TOKEN)
        assert status == 200, answer


async def _imported_in_parts(stage: Stage) -> None:
    """A large import of keys comes in parts, and its keys are deleted again."""
    for turn in stage.going_on():
        names = [[f"imported/{turn}/{part}/{n}" for n in range(_OTHERS)] for part in range(_PARTS)]
        parts = [
            encode_records([KeyRecord(name, bytes(4_000), 0, 0, 1) for name in of_part])
            for of_part in names
        ]
        digests = [hashlib.sha256(part).digest() for part in parts]
        digest = hashlib.sha256(b"".join(digests)).hexdigest()
        for number, part in enumerate(parts):
            body = {"digest": digest, "number": number, "records": b64encode(part).decode()}
            status, answer = await stage.change("POST", "/v1/import/parts", body, bearer=TOKEN)
            assert status == 200, answer
        whole = {
            "records": b64encode(encode_records(())).decode(),
            "source": "etcd+http://a:2379",
            "revision": turn,
            "parts": _PARTS,
            "digest": digest,
        }
        status, answer = await stage.change("POST", "/v1/import", whole, bearer=TOKEN)
        assert status == 200, answer
        assert answer["written"] == _OTHERS * _PARTS, answer
        for of_part in names:
            gone = {"operations": [{"op": "delete", "key": name} for name in of_part]}
            status, answer = await stage.change(
                "POST", "/v1/coordination/commit", gone, bearer=TOKEN
            )
            assert status == 200, answer


async def _imported(stage: Stage) -> None:
    """What another store held comes as one change, and comes again."""
    for turn in stage.going_on():
        records: list[Record] = []
        for number in range(_OTHERS):
            topic_id = hashlib.sha256(f"{turn} {number}".encode()).digest()[:16]
            records.append(TopicRecord(f"imported-{turn}-{number}", topic_id))
            records += (
                PartitionRecord(partition, topic_id, (1, 2, 3), (1, 2, 3), (), (), 1, 5, 7)
                for partition in range(_PARTITIONS)
            )
        body = {
            "records": b64encode(encode_records(records)).decode(),
            "source": "zookeeper://a:2181",
            "revision": turn,
        }
        for written in (len(records), 0):
            status, answer = await stage.change("POST", "/v1/import", body, bearer=TOKEN)
            assert status == 200, answer
            assert answer["written"] == written, answer
        gone = {"names": [f"imported-{turn}-{number}" for number in range(_OTHERS)]}
        status, answer = await stage.change("DELETE", "/v1/topics", gone, bearer=TOKEN)
        assert status == 200, answer


async def _followed(stage: Stage) -> None:
    """A bridge begins, brings topics and takes them away, and is given up."""
    source = {"source": "zookeeper://a:2181", "sourceClusterId": "c"}
    legacy = (9_001, 9_002, 9_003)
    brokers = [{"brokerId": n, "epoch": 1, "endpoints": ["PLAINTEXT://b:9092"]} for n in legacy]
    for _ in stage.going_on():
        names = [f"followed-{number}" for number in range(_OTHERS)]
        records: list[Record] = []
        for name in names:
            topic_id = hashlib.sha256(name.encode()).digest()[:16]
            records.append(TopicRecord(name, topic_id))
            records += (
                PartitionRecord(partition, topic_id, legacy, legacy, (), (), 9_001, 5, 7)
                for partition in range(_PARTITIONS)
            )
        brought = {"records": b64encode(encode_records(records)).decode(), "brokers": brokers}
        at = -1
        for more in (brought, {"topicsGone": names, "brokers": []}):
            body = {**source, "fromRevision": at, "revision": at + 2, **more}
            status, answer = await stage.change("POST", "/v1/bridge/follow", body, bearer=TOKEN)
            assert status == 200, answer
            assert answer["conflicts"] == [], answer
            at += 2
        assert (await stage.json("/v1/bridge"))["mode"] == "following"
        body = {"source": source["source"], "revision": at, "mode": "none"}
        status, answer = await stage.change("POST", "/v1/bridge/mode", body, bearer=TOKEN)
        assert status == 200, answer


DECLARED_LOADS = (
    Load(
        "2,000 declared topics, 400 quotas and ACLs as one change", ("apply", "export"), _declared
    ),
    Load("20,000 imported partitions of 400 topics as one change", ("import_records",), _imported),
    Load(
        "20,000 partitions of 400 topics through the bridge",
        ("describe_bridge", "follow_source", "set_bridge_mode"),
        _followed,
        ("BridgeRecord", "LegacyBrokerRecord"),
    ),
    Load("5 MB of imported keys, in parts", ("keep_import_part",), _imported_in_parts),
)
