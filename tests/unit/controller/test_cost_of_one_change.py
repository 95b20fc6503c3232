"""One change costs the same on few partitions and on very many.

The test counts operations and not time (`counted`). A change is decided, encoded, decoded and
replayed, as the active controller does it. `LOGBERG_PARTITIONS=1000000` asks for a larger image.
"""

import gc
import os
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from controller.managers.broker_states import Beat
from controller.managers.sweep import ROUND, Sweep
from controller.result import ControllerResult, Decided
from metadata.codec import decode_record, encode_record
from metadata.image import MetadataDelta, MetadataImage
from metadata.messages import (
    AlterConfigsRequest,
    AlterPartitionRequest,
    AlterReassignmentsRequest,
    AssignReplicasRequest,
    ConfigChange,
    ConfigResourceChange,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    IsrMember,
    NewPartitions,
    NewTopic,
    PartitionToAlter,
    Reassignment,
    ReplicaInDirectory,
    TopicPartitions,
    TopicToAlter,
    WantedState,
)
from metadata.records import (
    BrokerRegistrationChangeRecord,
    FencingChange,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    TopicRecord,
)
from metadata.uuids import uuid_text
from tests.unit.controller.cluster import CLUSTER_ID, Broker, Cluster
from tests.unit.controller.counted import Counted

FEW = 10_000
MANY = int(os.environ.get("LOGBERG_PARTITIONS", "200000"))
IN_A_TOPIC = 100
OWN = 60
"""Partitions of the topic `own`. Broker 9 has these replicas and no others."""
OWN_ID = b"own-topic-id-123"


@pytest.fixture(scope="module")
def cluster() -> Any:
    """The managers, and four brokers."""
    made = Cluster(nodes=1)
    made.online(1, 2, 3, 9)
    return made


@pytest.fixture(scope="module")
def images(cluster: Any) -> Iterator[tuple[MetadataImage, MetadataImage]]:
    """The same image with few partitions of other topics, and with many."""
    yield image_of(cluster.image, FEW), image_of(cluster.image, MANY)
    gc.collect()


def image_of(image: MetadataImage, partitions: int) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(others(partitions), image.offset)
    delta.replay(TopicRecord("own", OWN_ID), image.offset)
    for number in range(OWN):
        # Broker 9 leads a third of its partitions, and is the last in sync of a few.
        replicas = [(9, 1, 2), (1, 9, 3), (2, 3, 9)][number % 3]
        delta.replay(partition(OWN_ID, number, replicas, replicas[:1] if number < 9 else ()), 0)
    end = image.offset + partitions + OWN
    delta.finish_batch(end, image.epoch, image.timestamp_ms)
    return delta.apply()


def others(partitions: int) -> Iterator[Record]:
    for number in range(partitions // IN_A_TOPIC):
        topic_id = number.to_bytes(16, "big")
        yield TopicRecord(f"topic-{number}", topic_id)
        for partition_id in range(IN_A_TOPIC):
            first = partition_id % 3
            yield partition(topic_id, partition_id, ((1, 2, 3) * 2)[first : first + 3])


def partition(
    topic_id: bytes, number: int, replicas: tuple[int, ...], isr: tuple[int, ...] = ()
) -> PartitionRecord:
    return PartitionRecord(
        number,
        topic_id,
        replicas,
        isr or replicas,
        (),
        (),
        replicas[0],
        0,
        0,
        directories=(bytes(16),) * len(replicas),
    )


def carried_out(image: MetadataImage, decide: Callable[[MetadataImage], Decided]) -> list[Record]:
    """Decide, in as many rounds as it takes, and replay. Returns the records."""
    written: list[Record] = []
    unfinished = True
    while unfinished:
        decided = decide(image)
        result = finished(decided) if isinstance(decided, Generator) else decided
        unfinished = result.unfinished
        encoded = [encode_record(record) for record in result.records]
        delta = MetadataDelta(image)
        delta.replay_all([decode_record(each) for each in encoded], image.offset)
        delta.finish_batch(image.offset + len(encoded), image.epoch, image.timestamp_ms)
        image = finished(delta.apply_in_steps())
        written += result.records
    return written


def finished(steps: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return ended.value


def own_partitions(*numbers: int) -> tuple[PartitionToAlter, ...]:
    return tuple(PartitionToAlter(n, 0, 0, (IsrMember(1),)) for n in numbers)


def in_rounds(decide: Callable[[MetadataImage, Sweep], Decided]) -> Callable[[Any], Decided]:
    sweep = Sweep(ROUND // 8)
    return lambda image: decide(image, sweep)


def unfenced_again(parts: Any, image: MetadataImage) -> Callable[[MetadataImage], Decided]:
    """Let a broker be fenced, and all that it led be without a leader; it is back."""
    epoch = image.cluster.brokers[9].broker_epoch
    gone = [BrokerRegistrationChangeRecord(9, epoch, fenced=FencingChange.FENCE)]
    gone += [PartitionChangeRecord(n, OWN_ID, isr=(9,), leader=-1) for n in range(OWN)]
    beat = Beat(9, epoch, image.offset, WantedState.ONLINE)

    def decide(now: MetadataImage, sweep: Sweep) -> Decided:
        if not sweep.begun and not now.cluster.brokers[9].fenced:
            return ControllerResult(gone, unfinished=True)
        return parts.brokers.heartbeat(now, beat, sweep)

    return in_rounds(decide)


def new_process(parts: Any, cluster: Any) -> Callable[[MetadataImage], Decided]:
    parts.heartbeats.forget(9)
    request = Broker(cluster, 9).request(WantedState.FENCED)
    return in_rounds(lambda now, sweep: parts.brokers.register(now, request, sweep))


def beat(image: MetadataImage, wanted: WantedState) -> Beat:
    return Beat(9, image.cluster.brokers[9].broker_epoch, image.offset, wanted)


def fencing(parts: Any) -> Callable[[MetadataImage], Decided]:
    parts.heartbeats.forget(9)
    return in_rounds(lambda now, sweep: parts.brokers.fence_silent(now, 9, sweep))


CHANGES: dict[str, tuple[int, Callable[[Any, Any, MetadataImage], Callable[[Any], Decided]]]] = {
    # Records at least, and what is decided.
    "create a topic": (
        5,
        lambda _c, parts, _i: (
            lambda image: parts.topics.create(
                image, CreateTopicsRequest((NewTopic("new", 4, 3, configs={"retention.ms": "7"}),))
            )
        ),
    ),
    "add partitions": (
        3,
        lambda _c, parts, _i: (
            lambda image: parts.partitions.create(
                image, CreatePartitionsRequest((NewPartitions("own", OWN + 3),))
            )
        ),
    ),
    "delete a topic": (
        1,
        lambda _c, parts, _i: parts.topics.deletion(DeleteTopicsRequest(("own",))).decide,
    ),
    "delete two topics": (
        2,
        lambda _c, parts, _i: parts.topics.deletion(DeleteTopicsRequest(("own", "topic-7"))).decide,
    ),
    "a topic's config": (
        1,
        lambda _c, parts, _i: in_rounds(
            lambda image, sweep: parts.configs.alter(
                image, altered("topic", "own", "min.insync.replicas"), sweep
            )
        ),
    ),
    "the config of all brokers": (
        1,
        lambda _c, parts, _i: in_rounds(
            lambda image, sweep: parts.configs.alter(
                image, altered("broker", "default", "min.insync.replicas"), sweep
            )
        ),
    ),
    "AlterPartition": (
        3,
        lambda _c, parts, i: (
            lambda image: parts.isrs.alter(
                image,
                AlterPartitionRequest(
                    CLUSTER_ID,
                    1,
                    i.cluster.brokers[1].broker_epoch,
                    (TopicToAlter(own_partitions(10, 13, 16), topic_name="own"),),
                ),
            )
        ),
    ),
    "a reassignment": (
        3,
        lambda _c, parts, _i: (
            parts.reassignments.alter(
                AlterReassignmentsRequest(()),
                [Reassignment("own", n, (1, 2, 3)) for n in (10, 13, 16)],
            ).decide
        ),
    ),
    "an election": (
        0,
        lambda _c, parts, _i: (
            parts.elections.elect(
                ElectLeadersRequest(ElectionType.PREFERRED, (TopicPartitions("own", (1, 2, 3)),))
            ).decide
        ),
    ),
    "an election of all": (
        0,
        lambda _c, parts, _i: (
            parts.elections.elect(ElectLeadersRequest(ElectionType.UNCLEAN)).decide
        ),
    ),
    "directories": (
        2,
        lambda _c, parts, i: parts.directories.assign(
            9,
            AssignReplicasRequest(
                CLUSTER_ID,
                i.cluster.brokers[9].broker_epoch,
                tuple(
                    ReplicaInDirectory(uuid_text(OWN_ID), n, uuid_text(bytes(15) + b"\1"))
                    for n in (1, 2)
                ),
            ),
        ),
    ),
    "a broker is fenced": (OWN - 9, lambda _c, parts, _i: fencing(parts)),
    "a broker is back, and leads": (2 * OWN, lambda _c, parts, i: unfenced_again(parts, i)),
    "a broker stops": (
        OWN - 9,
        lambda _c, parts, i: in_rounds(
            lambda image, sweep: parts.brokers.heartbeat(
                image, beat(i, WantedState.STOPPING), sweep
            )
        ),
    ),
    "a broker's next process": (OWN - 9, lambda cluster, parts, _i: new_process(parts, cluster)),
    "a broker is forgotten": (
        OWN - 9,
        lambda _c, parts, _i: in_rounds(
            lambda image, sweep: parts.brokers.unregister(image, 9, sweep, force=True)
        ),
    ),
}


def altered(kind: str, name: str, key: str) -> AlterConfigsRequest:
    return AlterConfigsRequest((ConfigResourceChange(kind, name, (ConfigChange(key, "2"),)),))


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_one_change_costs_the_same_on_very_many_partitions(
    cluster: Any,
    images: tuple[MetadataImage, MetadataImage],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    records_least, make = CHANGES[what]
    parts = cluster.leader._leader
    counts = []
    counted = Counted(monkeypatch)
    for image in images:
        carried_out(image, make(cluster, parts, image))  # What is cached once, is cached now.
        decide = make(cluster, parts, image)
        with counted:
            written = carried_out(image, decide)
        assert len(written) >= records_least
        counts.append(counted.count)
    few, many = counts
    print(f"{what}: {few:,} and {many:,}")
    assert few > 100, "the counter doesn't see what is done"
    # The maps are divided by keys that each process draws, so a few operations differ.
    assert abs(many - few) <= 50 + few // 20
