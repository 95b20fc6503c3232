"""Names: what ids in records stand for, as of then.

Rule: a topic's id means the name in the newest TopicRecord of that id before it, whatever became
of that record's transaction; ids are never used again, so nothing is forgotten when a topic, an
ACL or a delegation token goes. It grows with those that ever were, not with the log.
"""

from collections.abc import Iterable

from metadata.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    Record,
    TopicRecord,
)
from metadata.uuids import uuid_text


class Names:
    """What was learned so far."""

    def __init__(self, known: Iterable[Record] = ()) -> None:
        """`known`: records to learn from at once, such as those of a checkpoint."""
        self.topics: dict[bytes, str] = {}
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.token_owners: dict[str, str] = {}
        """Principals, by token id."""
        for record in known:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take in a record; each of the log, in order, before its subjects are asked for."""
        kind = type(record)
        if kind is TopicRecord:
            assert isinstance(record, TopicRecord)
            self.topics[record.topic_id] = record.name
        elif kind is AccessControlEntryRecord:
            assert isinstance(record, AccessControlEntryRecord)
            self.acls[record.id] = record
        elif kind is DelegationTokenRecord:
            assert isinstance(record, DelegationTokenRecord)
            self.token_owners[record.token_id] = record.owner

    def topic(self, topic_id: bytes) -> str | None:
        """Return a topic's name; None if its TopicRecord was not seen."""
        return self.topics.get(topic_id)

    def shown(self, topic_id: bytes) -> str:
        """Return a topic's name, else its id as text."""
        return self.topics.get(topic_id) or uuid_text(topic_id)
