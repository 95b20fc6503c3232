"""Compares what the source has with an image, and returns the records that make the image equal.

Rule: the source is right. What it lacks is removed, and what differs is replaced. But the first
step of a bridge refuses to: what was here before may be somebody's, so each such thing is a
conflict.

A partition has no leader here while the source leads: its leader is a legacy broker, which has no
session here. Its leader epoch is one above the source's, so that whoever is elected here later
fences the last leader there. Replicas, ISR and moves are the source's.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Final

import msgspec

from controller.managers.bridge.mirrored_clients import ClientMirror
from controller.managers.bridge.mirrored_things import MirroredThings
from controller.managers.clients.managers import ClientManagers
from controller.managers.configs import ConfigManager
from controller.managers.imports.imported_topics import ImportedTopic, why_unwritable
from controller.managers.imports.importing import ImportContents
from metadata.errors import LogbergError
from metadata.image import MetadataImage, Partition
from metadata.messages import BridgeFamily, LegacyBroker
from metadata.records import (
    NO_LEADER,
    ConfigRecord,
    ConfigResourceType,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
)
from metadata.uuids import uuid_text

_STEP: Final = 64
"""Partitions or topics between two yields."""
_TOPIC: Final = int(ConfigResourceType.TOPIC)


class SourceMirror:
    """One comparison."""

    def __init__(
        self,
        image: MetadataImage,
        configs: ConfigManager,
        clients: ClientManagers,
        now_ms: int,
        *,
        begins: bool,
    ) -> None:
        """`begins`: it is the first step; `now_ms`: tokens that end before it are not written."""
        self._image = image
        self._configs = configs
        self._begins = begins
        self._things = MirroredThings(begins=begins)
        self._clients = ClientMirror(image, self._things, configs, clients, now_ms)
        self.conflicts = self._things.conflicts
        self.salted_hashes = self._things.salted_hashes

    @property
    def records(self) -> Sequence[Record]:
        """What makes the image equal."""
        return self._things.records

    @property
    def conflict_count(self) -> int:
        """How many things can't be made equal."""
        return self._things.conflict_count

    def compare(
        self, contents: ImportContents, complete: frozenset[BridgeFamily], gone: Iterable[str]
    ) -> Generator[None, None, None]:
        """Compare what a step brings. `gone`: names of topics that the source has no more."""
        yield from self._remove_topics(contents.topics, gone, all_others="topics" in complete)
        for topic in contents.topics:
            yield from self._topic(topic)
            # Most topics have fewer partitions than a step.
            yield
        yield from self._clients.compare(contents, complete)

    def refuse_registered(self, brokers: Sequence[LegacyBroker]) -> None:
        """Note a conflict for each legacy broker that is registered here too."""
        for each in brokers:
            if each.broker_id in self._image.cluster.brokers:
                self._things.refuse(
                    f"broker {each.broker_id}",
                    "it is registered here and in the source: unregister the one here",
                )

    def _remove_topics(
        self, topics: Sequence[ImportedTopic], gone: Iterable[str], *, all_others: bool
    ) -> Generator[None, None, None]:
        """Remove topics that the source lacks, and those that it has made anew under their name."""
        image = self._image.topics
        named = {each.topic.name: each.topic.topic_id for each in topics}
        names = image.names if all_others else [*gone, *named]
        for count, name in enumerate(names, 1):
            here = image.named(name)
            if here is not None and named.get(name) != here.topic_id:
                why = "the source has no such topic"
                if name in named:
                    why = f"the source has another one of this name, {uuid_text(named[name])}"
                self._things.gone(f"topic {name}", why, [RemoveTopicRecord(here.topic_id)])
            if count % _STEP == 0:
                yield

    def _topic(self, imported: ImportedTopic) -> Generator[None, None, None]:
        topic, name = imported.topic, f"topic {imported.topic.name}"
        why = yield from why_unwritable(imported.partitions.values())
        if sorted(imported.partitions) != list(range(len(imported.partitions))):
            why = "its partitions aren't numbered from 0 without gaps"
        if why or not imported.partitions:
            self._things.refuse(name, why or "it has no partition")
            return
        lies_on = {replica for each in imported.partitions.values() for replica in each.replicas}
        registered = sorted(lies_on & set(self._image.cluster.brokers))
        if registered:
            self._things.refuse(
                name, f"it lies on broker {registered[0]}, which is registered here"
            )
            return
        here = self._image.topics.by_id.get(topic.topic_id)
        if here is not None and here.name != topic.name:
            self._things.refuse(name, f"its id is that of topic {here.name!r} here")
            return
        if here is None:
            try:
                _, configs = self._configs.of_new_topic(topic.name, imported.configs)
            except LogbergError as error:
                self._things.refuse(name, error)
                return
            self._things.new((topic, *configs))
        else:
            self._compare_configs(name, imported)
        yield from self._compare_partitions(name, imported)

    def _compare_configs(self, name: str, imported: ImportedTopic) -> None:
        topic = imported.topic.name
        here = self._image.configs.of(_TOPIC, topic)
        for key in sorted({*here, *imported.configs}):
            wanted = imported.configs.get(key)
            if here.get(key) != wanted:
                record = ConfigRecord(_TOPIC, topic, key, wanted)
                if here.get(key) is None:
                    self._things.new([record])
                else:
                    self._things.changed(name, f"{key} differs in the source", [record])

    def _compare_partitions(
        self, name: str, imported: ImportedTopic
    ) -> Generator[None, None, None]:
        topic_id = imported.topic.topic_id
        for count, number in enumerate(sorted(imported.partitions), 1):
            wanted = imported.partitions[number]
            here = self._image.topics.partitions.get((topic_id, number))
            if here is None:
                self._things.new([_without_leader(wanted, wanted.leader_epoch + 1, 0)])
            elif not _is_same(here, wanted):
                epoch = max(here.leader_epoch, wanted.leader_epoch + 1)
                moved = _without_leader(wanted, epoch, here.partition_epoch + 1)
                if self._begins and here.replicas != wanted.replicas:
                    self._things.changed(name, f"partition {number} lies elsewhere", [moved])
                else:
                    self._things.new([moved])
            if count % _STEP == 0:
                yield
        for number in self._image.topics.ids_of(topic_id):
            if number not in imported.partitions:
                self._things.refuse(name, f"the source has no partition {number}")


def _is_same(here: Partition, wanted: PartitionRecord) -> bool:
    return (
        here.leader == NO_LEADER
        and here.leader_epoch > wanted.leader_epoch
        and here.leader_recovery_state == wanted.leader_recovery_state
        and (here.replicas, here.isr, here.adding, here.removing)
        == (wanted.replicas, wanted.isr, wanted.adding_replicas, wanted.removing_replicas)
    )


def _without_leader(record: PartitionRecord, epoch: int, least: int) -> PartitionRecord:
    """Return a partition without its leader; `least`: its partition epoch is this at least."""
    return msgspec.structs.replace(
        record,
        leader=NO_LEADER,
        leader_epoch=epoch,
        partition_epoch=max(record.partition_epoch, least),
    )
