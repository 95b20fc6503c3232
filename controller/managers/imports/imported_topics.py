"""Compares imported topics, their configs and partitions with those of an image.

A topic is the same if it has this id. Its partitions may have gone on here since an earlier import:
leader, ISR and epochs belong to this cluster from then on. What must agree is the assignment.

Rule: no broker of the source is in session here. So an imported partition has no leader until one
of its replicas registers, and its ISR stays as it was: the first of it that comes is elected. The
leader epoch is one higher than in the source, so that a leader of the old cluster is fenced.
"""

from collections.abc import Generator, Iterable, Sequence

import msgspec

from controller.managers.configs import ConfigManager
from controller.managers.imports.comparison import ImportComparison
from controller.managers.topics import TopicManager
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.image.topics import spelling
from metadata.messages.records_json import record_type_name
from metadata.records import (
    NO_LEADER,
    ConfigRecord,
    ConfigResourceType,
    PartitionRecord,
    Record,
    TopicRecord,
)
from metadata.uuids import uuid_text

_STEP = 64
"""Partitions between two yields."""


class ImportedTopic:
    """A topic of the source with what follows it."""

    def __init__(self, topic: TopicRecord) -> None:
        self.topic = topic
        self.configs: dict[str, str] = {}
        self.partitions: dict[int, PartitionRecord] = {}

    def add(self, record: Record) -> str:
        """Add a config or a partition. Returns why it can't be one of this topic; empty: it is."""
        if isinstance(record, PartitionRecord) and record.topic_id == self.topic.topic_id:
            if record.partition_id in self.partitions:
                return f"partition {record.partition_id} is there twice"
            self.partitions[record.partition_id] = record
            return ""
        if (
            isinstance(record, ConfigRecord)
            and record.resource_type == ConfigResourceType.TOPIC
            and record.resource_name == self.topic.name
            and record.value is not None
        ):
            self.configs[record.name] = record.value
            return ""
        return f"a {record_type_name(type(record))} doesn't follow its topic"


class TopicImport:
    """Compares topics, one after the other."""

    def __init__(
        self,
        image: MetadataImage,
        comparison: ImportComparison,
        topics: TopicManager,
        configs: ConfigManager,
    ) -> None:
        self._image = image
        self._comparison = comparison
        self._topics = topics
        self._configs = configs
        self._names: dict[str, str] = {}
        self._ids: set[bytes] = set()

    def compare(self, imported: ImportedTopic) -> Generator[None, None, None]:
        """Write a topic that is missing; compare one that is here."""
        topic = imported.topic
        name = f"topic {topic.name}"
        if topic.topic_id in self._ids:
            self._comparison.refuse(name, "its id is in the import twice")
            return
        self._ids.add(topic.topic_id)
        known = self._image.topics.by_id.get(topic.topic_id)
        if known is None:
            yield from self._create(imported)
        elif known.name != topic.name:
            self._comparison.refuse(
                name, f"its id {uuid_text(topic.topic_id)} is that of topic {known.name!r} here"
            )
        else:
            self._comparison.same += 1
            self._compare_configs(name, imported)
            yield from self._compare_partitions(name, imported)

    def _create(self, imported: ImportedTopic) -> Generator[None, None, None]:
        topic, partitions = imported.topic, imported.partitions
        name = f"topic {topic.name}"
        known = self._image.topics.named(topic.name)
        if known is not None:
            there = uuid_text(known.topic_id)
            self._comparison.refuse(name, f"there is one with another id here: {there}")
            return
        try:
            self._topics.check_name(self._image, topic.name, self._names)
            _, configs = self._configs.of_new_topic(topic.name, imported.configs)
        except LogbergError as error:
            self._comparison.refuse(name, error)
            return
        self._names[spelling(topic.name)] = topic.name
        if sorted(partitions) != list(range(len(partitions))) or not partitions:
            self._comparison.refuse(name, "its partitions aren't numbered from 0 without gaps")
            return
        why = yield from why_unwritable(partitions.values())
        if why:
            self._comparison.refuse(name, why)
            return
        self._comparison.write((topic, *configs))
        for number in range(len(partitions)):
            self._comparison.write((self._without_strangers(partitions[number]),))
            if number % _STEP == _STEP - 1:
                yield

    def _without_strangers(self, partition: PartitionRecord) -> PartitionRecord:
        """Return a partition without a leader that isn't in session here."""
        broker = self._image.cluster.brokers.get(partition.leader)
        if partition.leader == NO_LEADER or (broker is not None and not broker.fenced):
            return partition
        return msgspec.structs.replace(
            partition, leader=NO_LEADER, leader_epoch=partition.leader_epoch + 1
        )

    def _compare_configs(self, name: str, imported: ImportedTopic) -> None:
        here = self._image.configs.of(ConfigResourceType.TOPIC, imported.topic.name)
        for key, value in imported.configs.items():
            if here.get(key) == value:
                self._comparison.same += 1
            else:
                self._comparison.refuse(name, f"{key} is {_shown(here.get(key))} here")

    def _compare_partitions(
        self, name: str, imported: ImportedTopic
    ) -> Generator[None, None, None]:
        partitions = self._image.topics.partitions
        for count, (number, wanted) in enumerate(imported.partitions.items(), 1):
            here = partitions.get((imported.topic.topic_id, number))
            if here is None:
                self._comparison.refuse(name, f"partition {number} isn't there")
            elif (here.replicas, here.adding, here.removing) != (
                wanted.replicas,
                wanted.adding_replicas,
                wanted.removing_replicas,
            ):
                lies = _numbers(here.replicas)
                self._comparison.refuse(name, f"partition {number} lies on brokers {lies} here")
            elif here.leader_epoch < wanted.leader_epoch:
                self._comparison.refuse(
                    name,
                    f"partition {number} is at leader epoch {here.leader_epoch} here, and the "
                    f"source has gone on to {wanted.leader_epoch}",
                )
            else:
                self._comparison.same += 1
            if count % _STEP == 0:
                yield


def why_unwritable(partitions: Iterable[PartitionRecord]) -> Generator[None, None, str]:
    """Find a partition that can't be written, and return why not; empty: all can be written."""
    for count, partition in enumerate(partitions, 1):
        why = _why_unwritable(partition)
        if why:
            return why
        if count % _STEP == 0:
            yield
    return ""


def _why_unwritable(record: PartitionRecord) -> str:
    replicas = record.replicas
    number = record.partition_id
    if not replicas or len(set(replicas)) < len(replicas) or min(replicas) < 0:
        return f"partition {number} can't have the replicas {_numbers(replicas)}"
    others = {*record.isr, *record.adding_replicas, *record.removing_replicas}
    if not record.isr or not others <= set(replicas):
        return f"partition {number} has an ISR or a move that isn't among its replicas"
    if record.leader != NO_LEADER and record.leader not in record.isr:
        return f"partition {number} has the leader {record.leader}, which is not in its ISR"
    if min(record.leader_epoch, record.partition_epoch) < 0 or record.leader_epoch >= 2**31 - 1:
        return f"partition {number} has an epoch out of range"
    if record.leader_recovery_state not in (0, 1):
        return f"partition {number} has an unknown recovery state"
    if record.directories or record.eligible_leader_replicas or record.last_known_elr:
        return f"partition {number} names directories or eligible leaders, which stay behind"
    return ""


def _numbers(replicas: Sequence[int]) -> str:
    return ", ".join(map(str, replicas)) or "none"


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)[:200]
