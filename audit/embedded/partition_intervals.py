"""The job `partition_intervals`: the state of each partition, and from when until when it lasted.

Rule: the state is updated record by record and compared at the end of each moment (all records that
settle in one batch). Only partitions that the moment touched are compared. If leader, ISR, replicas
or min ISR changed, an interval ends and the next begins.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from audit.embedded.min_isr import MinIsr
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

Row = tuple[Any, ...]
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


def partition_intervals(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.PARTITION_INTERVALS`."""
    return sorted(interval_rows(Feed(question)), key=itemgetter(0, 1, 2))


def interval_rows(feed: Feed) -> Iterator[PartitionInterval]:
    """Yield the same rows as they end, unordered. There may be too many to hold in memory."""
    partitions = PartitionTracker()
    for turn in feed.turns():
        yield from partitions.step(*turn)
    yield from partitions.still_open()


class _Topic(NamedTuple):
    text: str
    """The id, as text."""
    name: str
    partitions: set[int]


_State = tuple[int, _Brokers, _Brokers]
"""(leader, ISR, replicas)"""


class _Begun(NamedTuple):
    """An interval that has no end yet."""

    topic: _Topic
    offset: int
    time_ms: int
    state: _State
    min_isr: int


class PartitionTracker:
    """All partitions, and since when each is in its state."""

    def __init__(self) -> None:
        self._topics: dict[bytes, _Topic] = {}
        self._ids: dict[str, bytes] = {}
        self._states: dict[PlainPartitionKey, _State] = {}
        self._begun: dict[PlainPartitionKey, _Begun] = {}
        self._min_isr = MinIsr()
        self._touched: dict[PlainPartitionKey, None] = {}

    def step(
        self, base: int, time_ms: int, records: Iterable[Record]
    ) -> Iterator[PartitionInterval]:
        """Apply all records of a moment; yield the intervals that it ends."""
        for record in records:
            self._apply(record)
        for key in self._touched:
            ended = self._look_at(key, base, time_ms)
            if ended is not None:
                yield ended
        self._touched.clear()

    def still_open(self) -> Iterator[PartitionInterval]:
        """Yield the intervals that have no end."""
        for (_, number), begun in self._begun.items():
            yield _interval(begun, number, None, None)

    def _apply(self, record: Record) -> None:
        match record:
            case PartitionChangeRecord():
                self._change(record)
            case PartitionRecord():
                key = (record.topic_id, record.partition_id)
                self._topics[record.topic_id].partitions.add(record.partition_id)
                self._states[key] = (record.leader, record.isr, record.replicas)
                self._touched[key] = None
            case TopicRecord():
                self._topics[record.topic_id] = _Topic(
                    uuid_text(record.topic_id), record.name, set()
                )
                self._ids[record.name] = record.topic_id
            case RemoveTopicRecord():
                topic = self._topics.pop(record.topic_id)
                del self._ids[topic.name]
                self._min_isr.forget(topic.name)
                for number in topic.partitions:
                    del self._states[record.topic_id, number]
                    self._touched[record.topic_id, number] = None
            case ConfigRecord():
                self._configure(record)

    def _change(self, record: PartitionChangeRecord) -> None:
        key = (record.topic_id, record.partition_id)
        leader, isr, replicas = self._states[key]
        if record.leader != NO_LEADER_CHANGE:
            leader = record.leader
        if record.isr is not None:
            isr = record.isr
        if record.replicas is not None:
            replicas = record.replicas
        self._states[key] = (leader, isr, replicas)
        self._touched[key] = None

    def _configure(self, record: ConfigRecord) -> None:
        name = self._min_isr.set(record)
        if name is None:
            return
        if name == "":
            self._touched.update(dict.fromkeys(self._states))
        elif name in self._ids:
            topic_id = self._ids[name]
            for number in self._topics[topic_id].partitions:
                self._touched[topic_id, number] = None

    def _look_at(self, key: PlainPartitionKey, base: int, time_ms: int) -> PartitionInterval | None:
        """If a partition changed, begin its next interval and return the one that ended."""
        before, state = self._begun.get(key), self._states.get(key)
        if state is None:
            if before is None:
                return None
            del self._begun[key]
            return _interval(before, key[1], base, time_ms)
        topic = self._topics[key[0]]
        min_isr = self._min_isr.of(topic.name)
        if before is not None and before.state == state and before.min_isr == min_isr:
            return None
        self._begun[key] = _Begun(topic, base, time_ms, state, min_isr)
        return None if before is None else _interval(before, key[1], base, time_ms)


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
