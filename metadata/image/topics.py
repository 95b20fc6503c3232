"""Topics and partitions, with derived maps for what callers ask often.

Rule: `by_id` and `partitions` hold what the records say. Replay derives everything else from them,
and the derived maps are in no snapshot and no state hash. They hold names and ids in order, the
spellings of names, the partitions of a topic, the partitions with a replica on a broker, those
without a leader or with another than the preferred one, how many partitions each broker leads, and
which topics lack leaders or in-sync replicas. So a frequent question needs no count and no sort.
The derived maps are immutable too, and a single change updates them cheaply.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from metadata.buckets import BucketMap, mix_bytes, mix_int, mix_text
from metadata.image.partition import Partition, partition_records
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself
from metadata.partition_key import PlainPartitionKey
from metadata.records import TopicRecord

Topic = TopicRecord
"""A topic is its record: `name` and `topic_id`."""

PartitionIds = range | tuple[int, ...]
"""The partition numbers of a topic, ascending; a range if they are 0 to n without a gap."""


class Lacks(NamedTuple):
    """How many partitions of one topic lack something, and how many are being reassigned."""

    leader: int
    """Partitions without a leader."""
    in_sync: int
    """Partitions of which not all replicas are in sync."""
    moving: int
    """Partitions that are being reassigned."""


NOTHING: Final = Lacks(0, 0, 0)


class TopicsImage(msgspec.Struct, frozen=True):
    """Topics, partitions and the maps derived from them."""

    by_id: BucketMap[bytes, Topic]
    partitions: PartitionMap
    by_name: BucketMap[str, bytes]
    partition_ids: BucketMap[bytes, PartitionIds]
    replicas_by_broker: BucketMap[int, PartitionSet]
    leaderless: PartitionSet
    unpreferred: PartitionSet
    """Partitions whose leader isn't the first replica; those without a leader, too."""
    leader_counts: BucketMap[int, int]
    """How many partitions a broker leads, for brokers that lead at least one."""
    by_spelling: BucketMap[str, tuple[str, ...]]
    """By the spelling in metrics, the names that have it, sorted. Only names with a '.' or a '_'. A
    log may hold several names of one spelling; the controller refuses to add another one."""
    names: SortedKeys[str]
    """The names of all topics, in order."""
    ids: SortedKeys[bytes]
    """The ids of all topics, in order."""
    lacks: BucketMap[bytes, Lacks]
    """By topic id, for topics with partitions that lack something or are being reassigned."""

    def named(self, name: str) -> Topic | None:
        """Return the topic with this name; None: there is none."""
        topic_id = self.by_name.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def spelled_alike(self, name: str) -> str | None:
        """Return a topic's name that equals this one or differs from it only in '.' against '_'.

        None: there is no such topic.
        """
        names = self.by_spelling.get(spelling(name))
        return names[0] if names else None

    def ids_of(self, topic_id: bytes) -> PartitionIds:
        """Return the partition numbers of a topic, ascending; none if there is no such topic."""
        return self.partition_ids.get(topic_id, range(0))

    def partitions_of(self, topic_id: bytes) -> Iterator[tuple[int, Partition]]:
        """Yield (number, partition) for each partition of a topic, ascending."""
        for partition in self.ids_of(topic_id):
            yield partition, self.partitions[topic_id, partition]

    def held_by(self, broker_id: int) -> Iterator[PlainPartitionKey]:
        """Yield the partitions that have a replica on a broker, sorted."""
        return iter(self.replicas_by_broker.get(broker_id, NO_PARTITIONS))

    def replicas_on(self, broker_id: int) -> int:
        """Return how many partitions have a replica on a broker."""
        return len(self.replicas_by_broker.get(broker_id, NO_PARTITIONS))

    def leads(self, broker_id: int) -> int:
        """Return how many partitions a broker leads."""
        return self.leader_counts.get(broker_id, 0)


NO_PARTITIONS: Final = PartitionSet()
EMPTY_TOPICS = TopicsImage(
    BucketMap(mix_bytes),
    PartitionMap(),
    BucketMap(mix_text),
    BucketMap(mix_bytes),
    BucketMap(mix_int),
    NO_PARTITIONS,
    NO_PARTITIONS,
    BucketMap(mix_int),
    BucketMap(mix_text),
    SortedKeys(),
    SortedKeys(),
    BucketMap(mix_bytes),
)


def spelling(name: str) -> str:
    """Return a topic's name as metrics spell it."""
    return name.replace(".", "_")


TABLES: Final = (
    ImageTable("topics", "topics", "by_id", itself, "topic", ("name",)),
    ImageTable(
        "partitions", "topics", "partitions", partition_records, "partition", ("partition_id",)
    ),
)
