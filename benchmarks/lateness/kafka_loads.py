"""The loads of `make lateness` for Kafka's protocol: each api key that a listener serves.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table. A row is one api key
on one listener, at the largest sizes that are permitted. The agent's listener is measured where the
agent runs in a controller's process (`--with-broker`), because there both share a loop.
"""

import asyncio
from typing import Any, Final

from benchmarks.lateness.kafka_client import KafkaPipe
from benchmarks.lateness.kafka_requests import SHAPES, Facts, largest
from benchmarks.lateness.load import Load, Run
from benchmarks.lateness.stage import BIGGEST, Stage
from kafka_listener.wire.messages import api_name
from kafka_listener.wire.record_batches import decode_batches
from kafka_listener.wire.schema import Fields
from metadata.uuids import parse_uuid

CONTROLLER, AGENT = "controller", "agent"
_TOPIC_ID: Final = bytes(15) + b"\x01"
_FETCH, _FETCH_SNAPSHOT = 1, 59
_OF_ADMINISTRATORS: Final = (
    *(19, 20, 29, 30, 31, 33, 37, 38, 39, 40, 41, 43, 44, 45, 46, 48, 49, 50, 51, 57),
    *(17, 18, 32, 36, 55, 60, 64),
)
_OF_BROKERS: Final = (56, 58, 62, 63, 67, 73)
_OF_CLIENTS: Final = (3, 10, 35, 74, 75)
_BEFORE: Final = {36: (17, 1, {"Mechanism": "NONE-SUCH"})}
"""What a client sends before a request makes sense."""


def _pipe(stage: Stage, listener: str) -> KafkaPipe:
    """A connection to the leader, or to the agent in its process."""
    nodes = stage.controllers
    ports = nodes.kafka_ports if listener == CONTROLLER else nodes.agent_kafka_ports
    return KafkaPipe(ports[stage.leader])


async def _facts(stage: Stage) -> Facts:
    described = (await stage.json(f"/v1/topics/{BIGGEST}?limit=1"))["topics"][0]
    listed = (await stage.json("/v1/topics"))["topics"]
    names = [topic["name"] for topic in listed if topic["name"] != BIGGEST]
    epoch = stage.brokers.brokers[0].epoch
    return Facts(parse_uuid(described["topicId"]), stage.largest, names, epoch)


def _asked(listener: str, key: int) -> Run:
    """Send an api key's shapes, one after another, for as long as a load lasts."""

    async def run(stage: Stage) -> None:
        pipe = _pipe(stage, listener)
        shapes = largest(key, await _facts(stage))
        frames = [pipe.encoded(key, *shape) for shape in shapes]
        before = pipe.encoded(*_BEFORE[key]) if key in _BEFORE else None
        answered = 0
        try:
            for turn in stage.going_on():
                for frame in frames if turn < 1 else (frames[turn % len(frames)],):
                    if before is not None:
                        await pipe.exchange(before)
                    answered += bool(await pipe.exchange(frame))
        finally:
            pipe.close()
        assert answered or key in {17, 36}, "no request was answered"

    return run


def _fetched(epoch: int, offset: int, last_epoch: int) -> Fields:
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": epoch,
        "FetchOffset": offset,
        "LastFetchedEpoch": last_epoch,
        "PartitionMaxBytes": 0,
    }
    return {
        "ReplicaState": {"ReplicaId": -1, "ReplicaEpoch": -1},
        "MaxWaitMs": 500,
        "MaxBytes": 8 << 20,
        "Topics": [{"TopicId": _TOPIC_ID, "Partitions": [partition]}],
    }


async def _whole_log(stage: Stage) -> None:
    """A replica without a log fetches all of it, in pieces as large as the leader gives them."""
    epoch = await stage.find_leader()
    pipe, offset, last_epoch, pieces = (
        _pipe(stage, CONTROLLER),
        0,
        0,
        0,
    )
    for _ in stage.going_on():
        answer = await pipe.ask(_FETCH, 17, _fetched(epoch, offset, last_epoch))
        found = answer["Responses"][0]["Partitions"][0]
        assert found["ErrorCode"] == 0, found["ErrorCode"]
        if found["SnapshotId"]["EndOffset"] >= 0:
            offset, last_epoch = found["SnapshotId"]["EndOffset"], found["SnapshotId"]["Epoch"]
            continue
        batches = list(decode_batches(found["Records"] or b""))
        if batches:
            pieces += 1
            offset = batches[-1].base_offset + len(batches[-1].records)
            last_epoch = batches[-1].epoch
        else:
            offset, last_epoch = 0, 0
    pipe.close()
    stage.note(f"{pieces} pieces of the log")


async def _snapshot(stage: Stage) -> None:
    """The newest projected snapshot from its beginning, a MiB at a time."""
    epoch = await stage.find_leader()
    pipe = _pipe(stage, CONTROLLER)
    wanted: dict[str, Any] | None = None
    for _ in range(600):
        found = (await pipe.ask(_FETCH, 17, _fetched(epoch, 0, 0)))["Responses"][0]["Partitions"][0]
        if found["SnapshotId"]["EndOffset"] >= 0:
            wanted = found["SnapshotId"]
            break
        if found["Records"]:
            stage.note("the log begins at 0, so no snapshot is offered")
            wanted = {"EndOffset": 1, "Epoch": 1}
            break
        await asyncio.sleep(0.1)
    assert wanted is not None, "no snapshot was offered"
    position = 0
    for _ in stage.going_on():
        partition = {
            "Partition": 0,
            "CurrentLeaderEpoch": epoch,
            "SnapshotId": wanted,
            "Position": position,
        }
        topics = [{"Name": "__cluster_metadata", "Partitions": [partition]}]
        fields = {"ReplicaId": -1, "MaxBytes": 8 << 20, "Topics": topics}
        answer = await pipe.ask(_FETCH_SNAPSHOT, 1, fields)
        found = answer["Topics"][0]["Partitions"][0]
        position += len(found["UnalignedRecords"])
        if position >= found["Size"]:
            position = 0
    pipe.close()


def _row(listener: str, key: int, run: Run) -> Load:
    return Load(f"Kafka, {listener}: {api_name(key)}", (), run, kafka=((listener, key),))


KAFKA_LOADS: Final = (
    _row(CONTROLLER, _FETCH, _whole_log),
    _row(CONTROLLER, _FETCH_SNAPSHOT, _snapshot),
    *(
        _row(CONTROLLER, key, _asked(CONTROLLER, key))
        for key in (*_OF_BROKERS, *_OF_ADMINISTRATORS)
    ),
    *(_row(AGENT, key, _asked(AGENT, key)) for key in (*_OF_CLIENTS, *_OF_ADMINISTRATORS)),
)
assert set(SHAPES) == {*_OF_BROKERS, *_OF_ADMINISTRATORS, *_OF_CLIENTS}


async def served(stage: Stage, listener: str) -> set[int]:
    """Ask a listener which api keys it serves."""
    pipe = _pipe(stage, listener)
    said = await pipe.ask(18, 3, {"ClientSoftwareName": "lateness", "ClientSoftwareVersion": "1"})
    pipe.close()
    return {each["ApiKey"] for each in said["ApiKeys"]}
