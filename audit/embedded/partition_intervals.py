"""The job `partition_intervals`: the state of each partition, and from when until when it lasted.

Rule: the state is updated record by record and compared at the end of each moment (all records that
settle in one batch). Only partitions that the moment touched are compared. If leader, ISR, replicas
or min ISR changed, an interval ends and the next begins.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from audit.embedded.min_isr import MinIsr
from audit.embedded.row_sorting import sorted_rows
from audit.reading.feed import Feed, Question
from metadata.partition_key import PlainPartitionKey
from metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.uuids import uuid_text

_Brokers = tuple[int, ...]


class PartitionInterval(NamedTuple):
    """A row of `audit.tables.PARTITION_INTERVALS`."""

    topic_id: str
    partition: int
    from_offset: int
    topic_name: str
    until_offset: int | None
    from_ms: int
    until_ms: int | None
    leader: int
    isr: _Brokers
    replicas: _Brokers
    min_isr: int
    offline: bool
    under_min_isr: bool


def partition_intervals(question: Question) -> Iterator[PartitionInterval]:
    """Yield the rows of `audit.tables.PARTITION_INTERVALS`, sorted outside of memory."""
    return sorted_rows(interval_rows(Feed(question)), PartitionInterval, itemgetter(0, 1, 2))


def interval_rows(feed: Feed) -> Iterator[PartitionInterval]:
    """Yield the same rows as they end, unordered. There may be too many to hold in memory."""
    partitions = PartitionTracker()
    for turn in feed.turns():
        yield from partitions.step(*turn)
    yield from partitions.still_open()


_State = tuple[int, _Brokers, _Brokers]
"""(leader, ISR, replicas)"""


class _Begun(NamedTuple):
    """An interval that has no end yet."""

    topic: "_Topic"
    offset: int
    time_ms: int
    state: _State
    min_isr: int


class _Topic(NamedTuple):
    text: str
    """The id, as text."""
    name: str
    partitions: dict[int, "_Partition"]


class _Partition:
    """A partition as the records so far say, and the interval that lasts."""

    __slots__ = ("begun", "number", "state", "topic")

    def __init__(self, topic: _Topic, number: int) -> None:
        self.topic = topic
        self.number = number
        self.state: _State | None = None
        """None: the partition was removed."""
        self.begun: _Begun | None = None


class PartitionTracker:
    """All partitions, and since when each is in its state."""

    def __init__(self) -> None:
        self._topics: dict[bytes, _Topic] = {}
        self._ids: dict[str, bytes] = {}
        self._partitions: dict[PlainPartitionKey, _Partition] = {}
        self._min_isr = MinIsr()
        self._touched: dict[_Partition, bytes] = {}
        """Those that the moment touched, with their topic's id."""
        self._rules: dict[type[Record], Callable[[Any], None]] = {
            PartitionChangeRecord: self._change,
            PartitionRecord: self._create,
            TopicRecord: self._create_topic,
            RemoveTopicRecord: self._remove_topic,
            ConfigRecord: self._configure,
        }

    def step(
        self, base: int, time_ms: int, records: Iterable[Record]
    ) -> Iterator[PartitionInterval]:
        """Apply all records of a moment; yield the intervals that it ends."""
        rules = self._rules
        for record in records:
            rule = rules.get(type(record))
            if rule is not None:
                rule(record)
        for partition, topic_id in self._touched.items():
            ended = self._look_at(partition, topic_id, base, time_ms)
            if ended is not None:
                yield ended
        self._touched.clear()

    def still_open(self) -> Iterator[PartitionInterval]:
        """Yield the intervals that have no end."""
        for partition in self._partitions.values():
            if partition.begun is not None:
                yield _interval(partition.begun, partition.number, None, None)

    def _change(self, record: PartitionChangeRecord) -> None:
        partition = self._partitions[record.topic_id, record.partition_id]
        assert partition.state is not None
        leader, isr, replicas = partition.state
        if record.leader != NO_LEADER_CHANGE:
            leader = record.leader
        if record.isr is not None:
            isr = record.isr
        if record.replicas is not None:
            replicas = record.replicas
        partition.state = (leader, isr, replicas)
        self._touched[partition] = record.topic_id

    def _create(self, record: PartitionRecord) -> None:
        key = (record.topic_id, record.partition_id)
        topic, partition = self._topics[record.topic_id], self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = _Partition(topic, record.partition_id)
        topic.partitions[record.partition_id] = partition
        partition.topic = topic
        partition.state = (record.leader, record.isr, record.replicas)
        self._touched[partition] = record.topic_id

    def _create_topic(self, record: TopicRecord) -> None:
        self._topics[record.topic_id] = _Topic(uuid_text(record.topic_id), record.name, {})
        self._ids[record.name] = record.topic_id

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._topics.pop(record.topic_id)
        del self._ids[topic.name]
        self._min_isr.forget(topic.name)
        for partition in topic.partitions.values():
            partition.state = None
            self._touched[partition] = record.topic_id

    def _configure(self, record: ConfigRecord) -> None:
        name = self._min_isr.set(record)
        if name is None:
            return
        if name == "":
            for (topic_id, _), partition in self._partitions.items():
                self._touched[partition] = topic_id
        elif name in self._ids:
            topic_id = self._ids[name]
            for partition in self._topics[topic_id].partitions.values():
                self._touched[partition] = topic_id

    def _look_at(
        self, partition: _Partition, topic_id: bytes, base: int, time_ms: int
    ) -> PartitionInterval | None:
        """If a partition changed, begin its next interval and return the one that ended."""
        before, state, topic = partition.begun, partition.state, partition.topic
        if state is None:
            del self._partitions[topic_id, partition.number]
            return None if before is None else _interval(before, partition.number, base, time_ms)
        min_isr = self._min_isr.of(topic.name)
        if before is not None and before.state == state and before.min_isr == min_isr:
            return None
        partition.begun = _Begun(topic, base, time_ms, state, min_isr)
        return None if before is None else _interval(before, partition.number, base, time_ms)


def _interval(
    begun: _Begun, number: int, until_offset: int | None, until_ms: int | None
) -> PartitionInterval:
    topic, from_offset, from_ms, (leader, isr, replicas), min_isr = begun
    return PartitionInterval(
        topic.text,
        number,
        from_offset,
        topic.name,
        until_offset,
        from_ms,
        until_ms,
        leader,
        isr,
        replicas,
        min_isr,
        leader == NO_LEADER,
        len(isr) < min_isr,
    )
