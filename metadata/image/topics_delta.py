"""Replays the records of topics and partitions.

Rule: values mean what they mean in Kafka. In a change, None leaves a field as it is, and an empty
list clears it. Leader -2 leaves the leader as it is. Any other leader raises the leader epoch, also
-1 and the present leader. Every change raises the partition epoch. The controller that wrote a
change has checked that it makes sense (ISR within the replicas, leader within the ISR). Replay
doesn't check that again; it refuses only what it can't apply.

Nearly every record of a busy cluster is replayed here. So this code avoids calls, and equal replica
lists become one object.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator
from typing import Any, Final

from metadata.buckets import STEP
from metadata.freeing import emptied
from metadata.image.derived_changes import DerivedChanges
from metadata.image.open_maps import (
    BuiltKeys,
    BuiltMap,
    BuiltPartitionSet,
    OpenMap,
    OpenPartitionMap,
)
from metadata.image.overlay import Overlay
from metadata.image.partition import (
    RECOVERY_STATES,
    Partition,
    checked_directories,
    partition_of,
)
from metadata.image.replay_error import ReplayError
from metadata.image.table import replays
from metadata.image.topics import PartitionIds, Topic, TopicsImage, spelling
from metadata.partition_key import PlainPartitionKey
from metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class TopicsDelta:
    """The changes to topics and partitions."""

    def __init__(self, image: TopicsImage, interned: dict[Any, Any]) -> None:
        """`interned` maps a tuple or uuid to the one object that stands for all its equals."""
        self._image = image
        self._intern = interned.setdefault
        self.by_id: Overlay[bytes, Topic] = Overlay(image.by_id)
        self.partitions: Overlay[PlainPartitionKey, Partition] = Overlay(image.partitions)
        self._by_name: Overlay[str, bytes] = Overlay(image.by_name)
        self._partition_ids: Overlay[bytes, PartitionIds] = Overlay(image.partition_ids)
        self._by_spelling: Overlay[str, tuple[str, ...]] = Overlay(image.by_spelling)
        self._removed: dict[bytes, PartitionIds] = {}
        """Removed topics. Their partitions are removed when the delta is applied, in steps."""
        self._before: list[Partition | None] = []
        """The partitions that were written here, as they are in the image, in the order of
        `partitions.changed`. A second dictionary would grow at the same keys as that one, and each
        growth of 100,000 keys stops the loop for 15 ms."""
        self._changed_partition = self.partitions.changed.get
        self._base_partition = image.partitions.get
        self._over_some = len(image.partitions) > 0

    def apply_in_steps(self) -> Generator[None, None, TopicsImage]:
        """Return the next image; yields every few milliseconds when much has changed."""
        for topic_id in list(self._removed):
            yield from self._remove_partitions(topic_id)
        derived = DerivedChanges()
        yield from derived.find(self.partitions.changed, self._before)
        image = self._image
        applied = TopicsImage(
            (yield from self.by_id.apply_in_steps()),
            (yield from image.partitions.changing(self.partitions.changed)),
            (yield from self._by_name.apply_in_steps()),
            (yield from self._partition_ids.apply_in_steps()),
            (yield from derived.apply_replicas(image.replicas_by_broker)),
            (yield from image.leaderless.changing(derived.leaderless)),
            (yield from image.unpreferred.changing(derived.unpreferred)),
            derived.apply_leaders(image.leader_counts),
            (yield from self._by_spelling.apply_in_steps()),
            (yield from image.names.changing(self._by_name.changed)),
            (yield from image.ids.changing(self.by_id.changed)),
            (yield from derived.apply_lacks(image.lacks)),
        )
        yield from derived.emptied()
        return applied

    def emptied(self) -> Generator[None, None, None]:
        """Free the changes in steps. The delta can't be used afterwards."""
        yield from emptied(self.partitions.changed, self._before)

    def opened(self, built: Callable[[], TopicsImage]) -> TopicsImage:
        """Return the image of what was replayed so far (see `open_maps`).

        It is not right behind the removal of a topic: partitions are removed at `apply`.
        """
        return TopicsImage(
            OpenMap(self.by_id, lambda: built().by_id),
            OpenPartitionMap(self.partitions, lambda: built().partitions),
            OpenMap(self._by_name, lambda: built().by_name),
            OpenMap(self._partition_ids, lambda: built().partition_ids),
            BuiltMap(lambda: built().replicas_by_broker),
            BuiltPartitionSet(lambda: built().leaderless),
            BuiltPartitionSet(lambda: built().unpreferred),
            BuiltMap(lambda: built().leader_counts),
            OpenMap(self._by_spelling, lambda: built().by_spelling),
            BuiltKeys(lambda: built().names),
            BuiltKeys(lambda: built().ids),
            BuiltMap(lambda: built().lacks),
        )

    @replays(TopicRecord)
    def create_topic(self, record: TopicRecord, offset: int) -> None:
        """Create a topic. Its name and its id must be new."""
        if record.name in self._by_name:
            raise ReplayError(offset, f"there is a topic named {record.name!r} already")
        if record.topic_id in self._removed:
            for _ in self._remove_partitions(record.topic_id):
                pass
        if record.topic_id in self.by_id:
            raise ReplayError(offset, f"another topic has the id {record.topic_id.hex()}")
        topic_id = self._intern(record.topic_id, record.topic_id)
        self.by_id.set(topic_id, record)
        self._by_name.set(record.name, topic_id)
        if "." in record.name or "_" in record.name:
            alike = spelling(record.name)
            names = self._by_spelling.get(alike) or ()
            self._by_spelling.set(alike, tuple(sorted((*names, record.name))))

    def remove_topic(self, record: RemoveTopicRecord, offset: int) -> str:
        """Remove a topic and its partitions; return its name."""
        topic = self._known_topic(record.topic_id, offset)
        self._removed[topic.topic_id] = self._partition_ids.get(topic.topic_id) or range(0)
        self._partition_ids.remove(record.topic_id)
        self.by_id.remove(record.topic_id)
        self._by_name.remove(topic.name)
        if "." in topic.name or "_" in topic.name:
            alike = spelling(topic.name)
            names = self._by_spelling.get(alike) or ()
            self._by_spelling.changed[alike] = tuple(n for n in names if n != topic.name) or None
        return topic.name

    @replays(PartitionRecord)
    def set_partition(self, record: PartitionRecord, offset: int) -> None:
        """Set the whole state of a partition, at its creation or from a snapshot."""
        topic_id, partition_id = record.topic_id, record.partition_id
        if self.by_id.changed.get(topic_id) is None:
            self._known_topic(topic_id, offset)
        intern = self._intern
        key = (intern(topic_id, topic_id), partition_id)
        before = self._changed_partition(key, _UNTOUCHED)
        is_first = before is _UNTOUCHED
        if is_first:
            before = self._base_partition(key) if self._over_some else None
        partition = partition_of(record, intern, offset)
        if before is None:
            self._add_partition_id(key)
        if is_first:
            self._before.append(before)
        self.partitions.changed[key] = partition

    @replays(PartitionChangeRecord)
    def change_partition(self, record: PartitionChangeRecord, offset: int) -> None:
        """Change one partition. The module explains what the values mean."""
        key = (record.topic_id, record.partition_id)
        if self._removed and record.topic_id in self._removed:
            raise self._no_partition(key, offset)
        old = self._changed_partition(key, _UNTOUCHED)
        is_first = old is _UNTOUCHED
        if is_first:
            old = self._base_partition(key)
        if old is None:
            raise self._no_partition(key, offset)
        leader, leader_epoch = record.leader, old.leader_epoch
        if leader == NO_LEADER_CHANGE:
            leader = old.leader
        else:
            leader_epoch += 1
            if leader < NO_LEADER:
                raise ReplayError(offset, f"the leader is {leader}, which is no broker id")
        recovery = record.leader_recovery_state
        if recovery < 0:
            recovery = old.leader_recovery_state
        if recovery not in RECOVERY_STATES or record.leader_recovery_state < -1:
            raise ReplayError(offset, f"there is no recovery state {recovery}")
        intern, isr = self._intern, record.isr
        replicas, directories = old.replicas, old.directories
        if record.replicas is not None or record.directories is not None:
            if record.replicas is not None:
                replicas = intern(record.replicas, record.replicas)
            if record.directories is not None:
                directories = record.directories
            directories = checked_directories(directories, replicas, intern, offset)
        elr, last_known = record.eligible_leader_replicas, record.last_known_elr
        removing, adding = record.removing_replicas, record.adding_replicas
        if is_first:
            self._before.append(old)
        self.partitions.changed[key] = Partition(
            replicas,
            directories,
            old.isr if isr is None else intern(isr, isr),
            old.elr if elr is None else elr and intern(elr, elr),
            old.last_known_elr
            if last_known is None
            else last_known and intern(last_known, last_known),
            old.removing if removing is None else removing and intern(removing, removing),
            old.adding if adding is None else adding and intern(adding, adding),
            leader,
            recovery,
            leader_epoch,
            old.partition_epoch + 1,
        )

    @replays(ClearElrRecord)
    def clear_elr(self, record: ClearElrRecord, offset: int) -> None:
        """Clear ELR and last known ELR of one topic, or of every topic (KIP-966)."""
        if record.topic_name:
            topic_id = self._by_name.get(record.topic_name)
            if topic_id is None:
                raise ReplayError(offset, f"there is no topic named {record.topic_name!r}")
            topic_ids = [topic_id]
        else:
            topic_ids = sorted({*self.by_id.base, *self.by_id.changed})
        for topic_id in topic_ids:
            for partition_id in self._partition_ids.get(topic_id) or ():
                partition = self.partitions.get((topic_id, partition_id))
                assert partition is not None
                if partition.elr or partition.last_known_elr:
                    self.change_partition(_cleared_elr(topic_id, partition_id), offset)

    def _remove_partitions(self, topic_id: bytes) -> Generator[None, None, None]:
        """Remove the partitions of a removed topic; yields every few milliseconds."""
        for number, partition_id in enumerate(self._removed[topic_id], 1):
            key = (topic_id, partition_id)
            if self._changed_partition(key, _UNTOUCHED) is _UNTOUCHED:
                self._before.append(self._base_partition(key))
            self.partitions.changed[key] = None
            if number % STEP == 0:
                yield
        del self._removed[topic_id]

    def _known_topic(self, topic_id: bytes, offset: int) -> Topic:
        topic = self.by_id.get(topic_id)
        if topic is None:
            raise ReplayError(offset, f"there is no topic with id {topic_id.hex()}")
        return topic

    def _no_partition(self, key: PlainPartitionKey, offset: int) -> ReplayError:
        topic = self._known_topic(key[0], offset)
        return ReplayError(offset, f"topic {topic.name!r} has no partition {key[1]}")

    def _add_partition_id(self, key: PlainPartitionKey) -> None:
        topic_id, partition_id = key
        ids = self._partition_ids.get(topic_id) or range(0)
        if type(ids) is range and partition_id == len(ids):
            self._partition_ids.changed[topic_id] = range(partition_id + 1)
            return
        place = bisect_left(ids, partition_id)
        more = (*ids[:place], partition_id, *ids[place:])
        dense = range(len(more))
        self._partition_ids.set(topic_id, dense if more == tuple(dense) else more)


_UNTOUCHED: Final[Any] = object()
"""Stands for a key that this delta has not written."""


def _cleared_elr(topic_id: bytes, partition_id: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id, topic_id, eligible_leader_replicas=(), last_known_elr=()
    )
