"""The job `partition_events`: what happened to partitions, one row for each record that counts.

Rule: the job remembers only which partitions a topic has, because the removal of a topic is a row
for each of them. Rows are sorted outside of memory, since there are as many as records.
"""

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from audit.embedded.days import day_of
from audit.embedded.provenance import who
from audit.embedded.row_sorting import sorted_rows
from audit.reading.feed import Feed, Question
from audit.reading.settling import Logged
from metadata.records import (
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.uuids import uuid_text

_Brokers = tuple[int, ...]
_Event = tuple[bytes, int, str, int | None, _Brokers | None, _Brokers | None]


class PartitionEvent(NamedTuple):
    """A row of `audit.tables.PARTITION_EVENTS`."""

    topic_id: str
    partition: int
    offset: int
    topic_name: str
    settled_base: int
    settled_ms: int
    day: str
    kind: str
    leader: int | None
    isr: _Brokers | None
    replicas: _Brokers | None
    principal: str
    on_behalf_of: str
    request_id: str
    operation: str
    reason: str


def partition_events(question: Question) -> Iterator[PartitionEvent]:
    """Yield the rows of `audit.tables.PARTITION_EVENTS`."""
    return sorted_rows(_in_log_order(Feed(question)), PartitionEvent, itemgetter(0, 1, 2))


def _in_log_order(feed: Feed) -> Iterator[PartitionEvent]:
    beginning = feed.beginning()
    topics = _Topics()
    for record in beginning.records:
        topics.apply(record)
    for moment in feed.moments(beginning):
        settled_when = (moment.base, moment.time_ms, day_of(moment.time_ms))
        for logged in moment.records:
            for topic_id, number, kind, leader, isr, replicas in _events(logged.record, topics):
                text, name = topics.named(topic_id)
                place = (text, number, logged.offset, name, *settled_when)
                yield PartitionEvent(*place, kind, leader, isr, replicas, *_who(logged))
            topics.apply(logged.record)


class _Topics:
    """The current topics and their partitions."""

    def __init__(self) -> None:
        self.partitions: dict[bytes, set[int]] = {}
        self._names: dict[bytes, tuple[str, str]] = {}

    def apply(self, record: Record) -> None:
        match record:
            case TopicRecord():
                self._names[record.topic_id] = (uuid_text(record.topic_id), record.name)
                self.partitions[record.topic_id] = set()
            case PartitionRecord():
                self.partitions[record.topic_id].add(record.partition_id)
            case RemoveTopicRecord():
                del self.partitions[record.topic_id]
                del self._names[record.topic_id]

    def named(self, topic_id: bytes) -> tuple[str, str]:
        """Return a topic's id as text, and its name."""
        return self._names[topic_id]


def _events(record: Record, topics: _Topics) -> list[_Event]:
    """Return (topic id, partition, kind, leader, isr, replicas) for each affected partition."""
    match record:
        case PartitionChangeRecord():
            leader = None if record.leader == NO_LEADER_CHANGE else record.leader
            key = (record.topic_id, record.partition_id)
            return [(*key, "changed", leader, record.isr, record.replicas)]
        case PartitionRecord():
            key = (record.topic_id, record.partition_id)
            return [(*key, "created", record.leader, record.isr, record.replicas)]
        case RemoveTopicRecord():
            numbers = sorted(topics.partitions[record.topic_id])
            return [(record.topic_id, number, "removed", None, None, None) for number in numbers]
    return []


def _who(logged: Logged) -> tuple[str, str, str, str, str]:
    return who(logged.header.provenance)
