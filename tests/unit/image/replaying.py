"""One way for the tests here to replay records."""

from collections.abc import Generator
from typing import Any, TypeVar

from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.records import (
    BrokerEndpoint,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)

T = TypeVar("T")
TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


def replayed(
    *records: Record,
    image: MetadataImage = EMPTY,
    epoch: int | None = None,
    timestamp_ms: int = 0,
) -> MetadataImage:
    """The image behind one batch of these records."""
    delta = MetadataDelta(image)
    delta.replay_all(records, image.offset)
    end = image.offset + len(records)
    delta.finish_batch(
        end, image.epoch if epoch is None else epoch, max(timestamp_ms, image.timestamp_ms)
    )
    return delta.apply()


def registration(broker: int = 1, incarnation: int = 1, **fields: object) -> RegisterBrokerRecord:
    """A broker process registers."""
    whole: dict[str, Any] = {
        "broker_id": broker,
        "incarnation_id": bytes([incarnation]) * 16,
        "broker_epoch": 10 * incarnation,
        "end_points": (BrokerEndpoint("PLAINTEXT", "broker.example", 9092, 0),),
        "features": (),
        "rack": None,
    } | fields
    return RegisterBrokerRecord(**whole)


def partition(number: int = 0, topic_id: bytes = TOPIC_ID, **fields: object) -> PartitionRecord:
    """A partition on brokers 1, 2 and 3, led by 1."""
    whole: dict[str, Any] = {
        "partition_id": number,
        "topic_id": topic_id,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    } | fields
    return PartitionRecord(**whole)


def with_topic(*partitions: PartitionRecord) -> MetadataImage:
    """An image with the topic `orders` and these partitions, or partition 0."""
    return replayed(TopicRecord("orders", TOPIC_ID), *(partitions or (partition(),)))


def stepped(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What a generator returns, and how often it yields before."""
    returned: list[T] = []

    def keep() -> Generator[None, None, None]:
        returned.append((yield from steps))

    yields = sum(1 for _ in keep())
    return returned[0], yields
