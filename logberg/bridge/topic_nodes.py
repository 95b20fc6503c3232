"""What this cluster's topics need in Kafka's nodes.

Rule: a partition without a leader here leaves the leader there alone, as long as replicas and ISR
agree: a legacy broker may lead it. Keys of configs that an import leaves stay in the node.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from logberg.bridge.node_changes import NodeChanges
from logberg.bridge.source_state import SourceState
from metadata.image import MetadataImage, Partition
from metadata.records import (
    NO_LEADER,
    ConfigRecord,
    ConfigResourceType,
    PartitionRecord,
    Record,
    TopicRecord,
)
from metadata.uuids import uuid_text

_TOPICS: Final = "/brokers/topics"


def write_topics(
    image: MetadataImage, state: SourceState, changes: NodeChanges, claim_epoch: int
) -> None:
    """Collect what differs; `claim_epoch` is the controller epoch in the states of partitions."""
    for name in image.topics.names:
        topic = image.topics.named(name)
        assert topic is not None
        known = state.topics.get(name, ())
        if known and _id_of(known) != topic.topic_id:
            _remove(changes, name)
            known = ()
        if not known and changes.tree.get(f"/admin/delete_topics/{name}") is not None:
            _remove(changes, name)
        _write_topic(image, topic, known, changes, claim_epoch)
    here = set(image.topics.names)
    for node in changes.tree.children(_TOPICS):
        if node.name not in here:
            _remove(changes, node.name)


def _id_of(records: Sequence[Record]) -> bytes:
    return next(each.topic_id for each in records if isinstance(each, TopicRecord))


def _remove(changes: NodeChanges, name: str) -> None:
    for path in (f"{_TOPICS}/{name}", f"/config/topics/{name}", f"/admin/delete_topics/{name}"):
        changes.delete(path)


def _write_topic(
    image: MetadataImage,
    topic: TopicRecord,
    known: Sequence[Record],
    changes: NodeChanges,
    claim_epoch: int,
) -> None:
    there = {each.partition_id: each for each in known if isinstance(each, PartitionRecord)}
    here = dict(image.topics.partitions_of(topic.topic_id))
    if {n: _lies(p.replicas, p.adding, p.removing) for n, p in here.items()} != {
        n: _lies(p.replicas, p.adding_replicas, p.removing_replicas) for n, p in there.items()
    }:
        changes.put_json(f"{_TOPICS}/{topic.name}", _topic_node(topic, here))
    own = image.configs.of(ConfigResourceType.TOPIC, topic.name)
    taken = {each.name for each in known if isinstance(each, ConfigRecord)}
    path = f"/config/topics/{topic.name}"
    left = {k: v for k, v in changes.config_of(path).items() if k not in taken} if known else {}
    if not known or {**left, **own} != changes.config_of(path):
        changes.put_config(path, {**left, **own})
        if changes.tree.get(path) is None and not own:
            changes.put_json(path, {"version": 1, "config": {}})
    if not known:
        changes.put(f"{_TOPICS}/{topic.name}/partitions", b"")
    for number, partition in here.items():
        wanted = _state(partition, there.get(number), claim_epoch)
        if wanted is not None:
            changes.put_json(f"{_TOPICS}/{topic.name}/partitions/{number}/state", wanted)


def _lies(*replicas: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, replicas))


def _topic_node(topic: TopicRecord, partitions: Mapping[int, Partition]) -> dict[str, Any]:
    def by_number(lists: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
        return {str(number): list(replicas) for number, replicas in lists.items()}

    return {
        "version": 3,
        "topic_id": uuid_text(topic.topic_id),
        "partitions": by_number({n: p.replicas for n, p in partitions.items()}),
        "adding_replicas": by_number({n: p.adding for n, p in partitions.items() if p.adding}),
        "removing_replicas": by_number(
            {n: p.removing for n, p in partitions.items() if p.removing}
        ),
    }


def _state(
    here: Partition, there: PartitionRecord | None, claim_epoch: int
) -> dict[str, Any] | None:
    """Return the node of a partition's state; None: it may stay as it is."""
    leader, epoch = here.leader, here.leader_epoch
    if there is not None:
        same = (here.isr, here.leader_recovery_state) == (there.isr, there.leader_recovery_state)
        led = leader == NO_LEADER or (leader, epoch) == (there.leader, there.leader_epoch)
        if same and led:
            return None
        if leader == NO_LEADER and there.leader in here.isr:
            leader, epoch = there.leader, there.leader_epoch
    recovery = {"leader_recovery_state": here.leader_recovery_state}
    return {
        "version": 1,
        "leader": leader,
        "leader_epoch": epoch,
        "controller_epoch": claim_epoch,
        "isr": list(here.isr),
        **(recovery if here.leader_recovery_state else {}),
    }
