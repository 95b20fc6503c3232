"""Describes brokers, topics and partitions in the messages of the HTTP interface.

These are pure functions of an image, and of the leader's heartbeat table. Every list is in order:
brokers by id, topics by name, partitions by number.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from controller.leader.heartbeats import Heartbeats
from metadata.image import BrokerRegistration, MetadataImage, Partition, Topic
from metadata.image.topics import NOTHING
from metadata.messages import (
    BrokerDescription,
    BrokerStateName,
    EndpointDescription,
    FeatureDescription,
    PartitionDescription,
    TopicDescription,
    TopicSummary,
)
from metadata.records import ConfigResourceType, LeaderRecoveryState, SecurityProtocol
from metadata.uuids import uuid_text

_RECOVERY_STATES = {state.value: state.name for state in LeaderRecoveryState}
"""The names by code: a look into a dict takes a tenth of what the enumeration does."""


def readable_offset(image: MetadataImage) -> int:
    """Return the offset that a read of this image answers from: before an open transaction."""
    return image.offset if image.transaction is None else image.transaction.offset


def broker_state(broker: BrokerRegistration, heard: Heartbeats | None) -> BrokerStateName:
    """Return the state that users see. Only the active controller (`heard`) knows OFFLINE."""
    if broker.fenced:
        silent = heard is not None and not heard.is_alive(broker.broker_id, broker.broker_epoch)
        return BrokerStateName.OFFLINE if silent else BrokerStateName.FENCED
    return BrokerStateName.STOPPING if broker.in_controlled_shutdown else BrokerStateName.ONLINE


def count_states(image: MetadataImage, heard: Heartbeats | None) -> dict[str, int]:
    """Count the brokers in each state."""
    cluster = image.cluster
    # Few brokers are fenced, and only a fenced one is shown as silent. The image counts the others.
    fenced = ((b, cluster.brokers[b].broker_epoch) for b in cluster.fenced)
    silent = 0 if heard is None else heard.count_silent(fenced)
    return {
        BrokerStateName.OFFLINE.value: silent,
        BrokerStateName.FENCED.value: len(cluster.fenced) - silent,
        BrokerStateName.ONLINE.value: len(cluster.ids) - len(cluster.fenced) - cluster.stopping,
        BrokerStateName.STOPPING.value: cluster.stopping,
    }


def describe_broker(
    image: MetadataImage, broker: BrokerRegistration, heard: Heartbeats | None
) -> BrokerDescription:
    """Describe one broker."""
    silence = None if heard is None else heard.silence_s(broker.broker_id)
    applied = -1 if heard is None else heard.applied_offset(broker.broker_id)
    return BrokerDescription(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        incarnation_id=uuid_text(broker.incarnation_id),
        state=broker_state(broker, heard),
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        endpoints=tuple(
            EndpointDescription(
                name=e.name,
                host=e.host,
                port=e.port,
                security_protocol=_protocol(e.security_protocol),
            )
            for e in broker.end_points
        ),
        features=tuple(
            FeatureDescription(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in broker.features
        ),
        rack=broker.rack,
        log_dirs=tuple(uuid_text(directory) for directory in broker.log_dirs),
        cordoned_log_dirs=tuple(map(uuid_text, broker.cordoned_log_dirs or ())),
        leaders=image.topics.leads(broker.broker_id),
        replicas=image.topics.replicas_on(broker.broker_id),
        last_contact_ms=None if silence is None else int(silence * 1000),
        applied_offset=None if applied < 0 else applied,
        software=None if heard is None else heard.software(broker.broker_id),
    )


def describe_topic(image: MetadataImage, topic: Topic) -> TopicDescription:
    """Describe one topic, without its partitions."""
    return TopicDescription(
        name=topic.name,
        topic_id=uuid_text(topic.topic_id),
        partitions=(),
        configs=image.configs.of(ConfigResourceType.TOPIC, topic.name),
    )


def describe_partitions(
    image: MetadataImage, topic: Topic, numbers: Iterable[int]
) -> Iterator[PartitionDescription]:
    """Describe some partitions of a topic."""
    partitions = image.topics.partitions
    return (describe_partition(image, n, partitions[topic.topic_id, n]) for n in numbers)


def describe_partition(
    image: MetadataImage, number: int, partition: Partition
) -> PartitionDescription:
    """Describe one partition."""
    return PartitionDescription(
        partition=number,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        adding_replicas=partition.adding,
        removing_replicas=partition.removing,
        offline_replicas=tuple(b for b in partition.replicas if _is_offline(image, b)),
        leader_recovery_state=_RECOVERY_STATES[partition.leader_recovery_state],
        directories=tuple(uuid_text(directory) for directory in partition.directories),
    )


def topic_names(image: MetadataImage, after: str, limit: int) -> tuple[list[str], str | None]:
    """Return names behind `after`, in order, and the last of them if there are more."""
    chosen = list(islice(image.topics.names.after(after), limit + 1))
    more = len(chosen) > limit
    return chosen[:limit], chosen[limit - 1] if more else None


def summarize_topic(image: MetadataImage, name: str) -> TopicSummary:
    """Describe one topic of a list."""
    topic = image.topics.named(name)
    assert topic is not None
    numbers, lacks = (
        image.topics.ids_of(topic.topic_id),
        image.topics.lacks.get(topic.topic_id, NOTHING),
    )
    first = image.topics.partitions[topic.topic_id, numbers[0]] if len(numbers) else None
    return TopicSummary(
        name=name,
        topic_id=uuid_text(topic.topic_id),
        partition_count=len(numbers),
        replication_factor=0 if first is None else len(first.replicas),
        leaderless=lacks.leader,
        under_replicated=lacks.in_sync,
    )


def brokers_of(
    image: MetadataImage, heard: Heartbeats | None, ids: Iterable[int]
) -> Iterator[BrokerDescription]:
    """Describe these brokers."""
    brokers = image.cluster.brokers
    return (describe_broker(image, brokers[broker_id], heard) for broker_id in ids)


def _is_offline(image: MetadataImage, broker_id: int) -> bool:
    broker = image.cluster.brokers.get(broker_id)
    return broker is None or broker.fenced


def _protocol(code: int) -> str:
    try:
        return SecurityProtocol(code).name
    except ValueError:
        return str(code)
