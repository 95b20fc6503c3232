"""Builds the topics of a whole image, as a load of a snapshot does.

Rule: topics come in the order of their ids, and the partitions of each in the order of their
numbers. So each map is written once, without comparison, lookup or copy: a partition costs about a
microsecond, whatever came before. The result equals what replay of the same records gives.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from itertools import compress
from operator import attrgetter, lt

from metadata.buckets import STEP, BucketMap, mix_bytes, mix_int, mix_partition, mix_text
from metadata.image.partition import Partition
from metadata.image.partition_map import CHUNK_BITS, Chunk, ChunkKey, PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.topics import NOTHING, Lacks, PartitionIds, Topic, TopicsImage, spelling
from metadata.records import NO_LEADER

_IN_CHUNK = (1 << CHUNK_BITS) - 1
_replicas, _leader, _isr = attrgetter("replicas"), attrgetter("leader"), attrgetter("isr")
_moves = attrgetter("adding", "removing")


def load_topics(
    topics: Iterable[tuple[Topic, Iterable[tuple[int, Partition]]]], offset: int
) -> Generator[None, None, TopicsImage]:
    """Return the image of topics and, for each, its partitions by number; both in order.

    Equal tuples of partitions should be one object (`MetadataImage.interned`): nothing here looks.
    Yields every few milliseconds. Raises ReplayError for what is not in order, or has the name of
    another; `offset` is that of the image.
    """
    loading = TopicsLoading(offset)
    count = 0
    for topic, partitions in topics:
        loading.begin(topic)
        for number, partition in partitions:
            loading.add(number, partition)
            count += 1
            if count % STEP == 0:
                yield
        count += 1
        if count % STEP == 0:
            yield
    return (yield from loading.finish())


class TopicsLoading:
    """Topics and partitions so far. `begin` a topic, `add` its partitions, at last `finish`."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._topics: list[Topic] = []
        self._ids: list[bytes] = []
        self._chunk_keys: list[ChunkKey] = []
        self._chunks: list[Chunk] = []
        self._with_partitions: list[bytes] = []
        self._numbers: list[PartitionIds] = []
        """The partition numbers of each topic that has partitions."""
        self._ranges: dict[int, range] = {}
        """By length: most topics have as many partitions as some others."""
        self._count = 0
        self._held = defaultdict[int, bytearray](bytearray)
        """By broker: the packed keys of the partitions that have a replica on it."""
        self._leaderless, self._unpreferred = bytearray(), bytearray()
        self._leads = defaultdict[int, int](int)
        self._lacking: list[bytes] = []
        self._lacks: list[Lacks] = []
        # Of the newest topic:
        self._topic_id = b""
        self._chunk: list[Partition | None] = []
        self._chunk_number = 0
        self._last = -1
        self._here: list[int] | None = None
        """The numbers of its partitions; None: they are 0 to `_last`."""
        self._leader_lacks = self._in_sync_lacks = self._moving = 0

    @property
    def topic_id(self) -> bytes:
        """The id of the newest topic; empty if there is none."""
        return self._topic_id

    @property
    def last(self) -> int:
        """The number of the newest partition of this topic; -1 if there is none."""
        return self._last

    def begin(self, topic: Topic) -> None:
        """Add a topic. Raises ReplayError if its id is not larger than those of all before."""
        if topic.topic_id <= self._topic_id:
            raise ReplayError(self._offset, f"topic {topic.topic_id.hex()} is not in order")
        self._end_topic()
        self._topic_id = topic.topic_id
        self._topics.append(topic)
        self._ids.append(topic.topic_id)

    def add(self, number: int, partition: Partition) -> None:
        """Add a partition of the newest topic. Raises ReplayError if it is not in order."""
        if number <= self._last:
            raise ReplayError(self._offset, f"partition {number} is not in order")
        if number != self._last + 1 and self._here is None:
            self._here = list(range(self._last + 1))
        if self._here is not None:
            self._here.append(number)
        self._last = number
        if number >> CHUNK_BITS != self._chunk_number:
            self._end_chunk()
            self._chunk_number = number >> CHUNK_BITS
        place = number & _IN_CHUNK
        if place != len(self._chunk):
            self._chunk.extend([None] * (place - len(self._chunk)))
        self._chunk.append(partition)
        packed = self._topic_id + number.to_bytes(4, "big")
        replicas, leader = partition.replicas, partition.leader
        held = self._held
        for broker_id in replicas if len(set(replicas)) == len(replicas) else set(replicas):
            held[broker_id] += packed
        if leader == NO_LEADER:
            self._leaderless += packed
            self._leader_lacks += 1
        else:
            self._leads[leader] += 1
        if not replicas or replicas[0] != leader:
            self._unpreferred += packed
        if len(partition.isr) < len(replicas):
            self._in_sync_lacks += 1
        if partition.adding or partition.removing:
            self._moving += 1

    def extend(self, numbers: Sequence[int], partitions: Sequence[Partition]) -> None:
        """Add partitions of the newest topic: what `add` does for each, in less than half the time.

        Raises ReplayError if they are not in order.
        """
        first = self._last + 1
        if self._here is not None or numbers != list(range(first, first + len(partitions))):
            for number, partition in zip(numbers, partitions, strict=True):
                self.add(number, partition)
            return
        self._last += len(partitions)
        at = 0
        while at < len(partitions):
            room = (1 << CHUNK_BITS) - len(self._chunk)
            self._chunk += partitions[at : at + room]
            at += room
            if at <= len(partitions):
                self._end_chunk()
                self._chunk_number += 1
        replicas, leaders = list(map(_replicas, partitions)), list(map(_leader, partitions))
        topic_id = self._topic_id
        packed = [topic_id + number.to_bytes(4, "big") for number in numbers]
        brokers: Iterable[Iterable[int]] = replicas
        if sum(map(len, map(set, replicas))) != sum(map(len, replicas)):
            brokers = map(set, replicas)
        held = self._held
        for key, each in zip(packed, brokers, strict=True):
            for broker_id in each:
                held[broker_id] += key
        self._note_leaders(packed, replicas, leaders)
        self._note_lacks(partitions, replicas)

    def _note_leaders(
        self, packed: list[bytes], replicas: list[tuple[int, ...]], leaders: list[int]
    ) -> None:
        for leader, count in Counter(leaders).items():
            if leader == NO_LEADER:
                self._leader_lacks += count
                self._leaderless += b"".join(compress(packed, map(NO_LEADER.__eq__, leaders)))
            else:
                self._leads[leader] += count
        if [each[:1] for each in replicas] != list(zip(leaders)):
            self._unpreferred += b"".join(
                key
                for key, each, leader in zip(packed, replicas, leaders, strict=True)
                if each[:1] != (leader,)
            )

    def _note_lacks(self, partitions: Sequence[Partition], replicas: list[tuple[int, ...]]) -> None:
        isr = list(map(_isr, partitions))
        if isr != replicas:
            self._in_sync_lacks += sum(map(lt, map(len, isr), map(len, replicas)))
        self._moving += sum(1 for one in map(_moves, partitions) if one != ((), ()))

    def _end_chunk(self) -> None:
        if self._chunk:
            self._chunk_keys.append((self._topic_id, self._chunk_number))
            self._chunks.append(tuple(self._chunk))
            self._count += len(self._chunk) - self._chunk.count(None)
            self._chunk = []

    def _end_topic(self) -> None:
        if not self._topics:
            return
        self._end_chunk()
        if self._last >= 0:
            length = self._last + 1
            dense = self._ranges.setdefault(length, range(length))
            self._with_partitions.append(self._topic_id)
            self._numbers.append(dense if self._here is None else tuple(self._here))
        lacks = Lacks(self._leader_lacks, self._in_sync_lacks, self._moving)
        if lacks != NOTHING:
            self._lacking.append(self._topic_id)
            self._lacks.append(lacks)
        self._last, self._here, self._chunk_number = -1, None, 0
        self._leader_lacks = self._in_sync_lacks = self._moving = 0

    def finish(self) -> Generator[None, None, TopicsImage]:
        """Return the image; yields every few milliseconds. Nothing can be added afterwards."""
        self._end_topic()
        names = [topic.name for topic in self._topics]
        yield
        by_name = yield from BucketMap[str, bytes](mix_text).loading(names, self._ids)
        if len(by_name) != len(names):
            name = next(name for name, times in Counter(names).items() if times > 1)
            raise ReplayError(self._offset, f"there is a topic named {name!r} already")
        chunks = BucketMap[ChunkKey, Chunk](mix_partition)
        chunks = yield from chunks.loading(self._chunk_keys, self._chunks)
        held: dict[int, PartitionSet | None] = {}
        while self._held:
            broker_id, packed = self._held.popitem()
            held[broker_id] = PartitionSet(packed)
            yield
        return TopicsImage(
            (yield from BucketMap[bytes, Topic](mix_bytes).loading(self._ids, self._topics)),
            PartitionMap.of_chunks(chunks, self._count),
            by_name,
            (
                yield from BucketMap[bytes, PartitionIds](mix_bytes).loading(
                    self._with_partitions, self._numbers
                )
            ),
            BucketMap[int, PartitionSet](mix_int).with_changes(held),
            PartitionSet(self._leaderless),
            PartitionSet(self._unpreferred),
            BucketMap(mix_int, self._leads),
            (yield from _spellings(names)),
            (yield from SortedKeys[str].sorting(names)),
            SortedKeys.of_sorted(self._ids),
            (yield from BucketMap[bytes, Lacks](mix_bytes).loading(self._lacking, self._lacks)),
        )


def _spellings(names: list[str]) -> Generator[None, None, BucketMap[str, tuple[str, ...]]]:
    """Return the map from spellings to names."""
    some = [name for name in names if "." in name or "_" in name]
    yield
    spelled = [spelling(name) for name in some]
    yield
    alone = [(name,) for name in some]
    yield
    made = yield from BucketMap[str, tuple[str, ...]](mix_text).loading(spelled, alone)
    if len(made) == len(some):
        return made
    alike: dict[str, list[str]] = {}
    for count, (spelt, name) in enumerate(zip(spelled, some, strict=True)):
        if made[spelt] != (name,):
            alike.setdefault(spelt, [*made[spelt]]).append(name)
        if count % STEP == 0:
            yield
    return (yield from made.changing({key: tuple(sorted(each)) for key, each in alike.items()}))
