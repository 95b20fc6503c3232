"""Topics and partitions, and what must be found fast about them.

Rule: what the records say is in `by_id` and `partitions`; everything else is derived from it by
replay and is in no snapshot and no state hash: names and ids in order, the spellings of names, the
partitions of a topic, the partitions that have a replica on a broker, those without a leader, how
many each broker leads, which topics lack leaders or in-sync replicas. So nothing that is asked
often has to be counted or sorted. The derived maps are immutable too, and a lone change stays
cheap.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from metadata.buckets import (
    BucketMap,
    mix_bytes,
    mix_int,
    mix_partition,
    mix_text,
)
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself
from metadata.partition_key import PlainPartitionKey
from metadata.records import PartitionRecord, Record, TopicRecord

Topic = TopicRecord
"""A topic is what its record says: `name` and `topic_id`."""

PartitionIds = range | tuple[int, ...]
"""The partition numbers of a topic, ascending; a range when none is missing below the highest."""


class Partition(msgspec.Struct, frozen=True, gc=False):
    """The state of one partition (KIP-455, 704, 858, 966); brokers by id."""

    replicas: tuple[int, ...]
    """The first is the preferred leader."""
    directories: tuple[bytes, ...]
    """One for each replica, in their order; empty: not tracked."""
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    """-1: none."""
    leader_recovery_state: int
    """0 recovered, 1 recovering."""
    leader_epoch: int
    partition_epoch: int


class Lacks(NamedTuple):
    """What partitions of one topic lack."""

    leader: int
    """How many have no leader."""
    in_sync: int
    """How many have fewer replicas in sync than replicas."""


NOTHING: Final = Lacks(0, 0)


class TopicsImage(msgspec.Struct, frozen=True):
    """Topics, partitions and the maps derived from them."""

    by_id: BucketMap[bytes, Topic]
    partitions: BucketMap[PlainPartitionKey, Partition]
    by_name: BucketMap[str, bytes]
    partition_ids: BucketMap[bytes, PartitionIds]
    replicas_by_broker: BucketMap[int, BucketMap[PlainPartitionKey, bool]]
    leaderless: BucketMap[PlainPartitionKey, bool]
    leader_counts: BucketMap[int, int]
    """How many partitions a broker leads, for those that lead any."""
    by_spelling: BucketMap[str, tuple[str, ...]]
    """The names, sorted, that metrics spell alike; only for names that have a '.' or a '_'. A log
    may hold several names of one spelling; the controller refuses to add another one."""
    names: SortedKeys[str]
    """Of all topics, in order."""
    ids: SortedKeys[bytes]
    """Of all topics, in order."""
    lacks: BucketMap[bytes, Lacks]
    """By topic id, for topics that lack something."""

    def named(self, name: str) -> Topic | None:
        """Return the topic of that name."""
        topic_id = self.by_name.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def spelled_alike(self, name: str) -> str | None:
        """Return a topic whose name differs from this one only in '.' against '_', or is equal."""
        names = self.by_spelling.get(spelling(name))
        return names[0] if names else None

    def ids_of(self, topic_id: bytes) -> PartitionIds:
        """Return the partition numbers of a topic, ascending; none if there is no such topic."""
        return self.partition_ids.get(topic_id, range(0))

    def partitions_of(self, topic_id: bytes) -> Iterator[tuple[int, Partition]]:
        """Yield a topic's partitions with their numbers, ascending."""
        for partition in self.ids_of(topic_id):
            yield partition, self.partitions[topic_id, partition]

    def replicas_of(self, broker_id: int) -> Iterator[PlainPartitionKey]:
        """Yield the partitions that have a replica on a broker, sorted."""
        return iter(self.replicas_by_broker.get(broker_id, NO_PARTITIONS))

    def held_by(self, broker_id: int) -> Iterator[PlainPartitionKey]:
        """Yield the partitions that have a replica on a broker, in no order."""
        held = self.replicas_by_broker.get(broker_id, NO_PARTITIONS)
        return (key for key, _ in held.unordered_items())

    def replicas_on(self, broker_id: int) -> int:
        """Return how many partitions have a replica on a broker."""
        return len(self.replicas_by_broker.get(broker_id, NO_PARTITIONS))

    def leads(self, broker_id: int) -> int:
        """Return how many partitions a broker leads."""
        return self.leader_counts.get(broker_id, 0)


NO_PARTITIONS: BucketMap[PlainPartitionKey, bool] = BucketMap(mix_partition)
EMPTY_TOPICS = TopicsImage(
    BucketMap(mix_bytes),
    BucketMap(mix_partition),
    BucketMap(mix_text),
    BucketMap(mix_bytes),
    BucketMap(mix_int),
    NO_PARTITIONS,
    BucketMap(mix_int),
    BucketMap(mix_text),
    SortedKeys(),
    SortedKeys(),
    BucketMap(mix_bytes),
)


def spelling(name: str) -> str:
    """What metrics make of a topic's name."""
    return name.replace(".", "_")


def partition_record(key: PlainPartitionKey, partition: Partition) -> PartitionRecord:
    """Return the record that restores a partition; absent and empty ELR are the same state."""
    return PartitionRecord(
        key[1],
        key[0],
        partition.replicas,
        partition.isr,
        partition.removing,
        partition.adding,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.leader_recovery_state,
        partition.directories,
        partition.elr or None,
        partition.last_known_elr or None,
    )


def partition_records(key: PlainPartitionKey, partition: Partition) -> tuple[Record, ...]:
    """Return the record that restores a partition."""
    return (partition_record(key, partition),)


TABLES: Final = (
    ImageTable("topics", "topics", "by_id", itself, "topic", ("name",)),
    ImageTable(
        "partitions", "topics", "partitions", partition_records, "partition", ("partition_id",)
    ),
)
