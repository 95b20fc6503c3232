"""Names: what ids in records mean at that place in the log.

Rule: a topic id means the name in the newest TopicRecord of that id before the place, whatever the
outcome of that record's transaction. Ids are never used again, so removing a topic, an ACL or a
delegation token removes no name. Memory grows with the number of things, not with the log.
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
    """The names that were learned so far."""

    def __init__(self, known: Iterable[Record] = ()) -> None:
        """`known`: records to learn from at once, such as those of a checkpoint."""
        self.topics: dict[bytes, str] = {}
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.token_owners: dict[str, str] = {}
        """Principals, by token id."""
        for record in known:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Learn from a record.

        The caller passes each record of the log in order, before its subjects.
        """
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
        """Return a topic's name; None if no TopicRecord of it was seen."""
        return self.topics.get(topic_id)

    def shown(self, topic_id: bytes) -> str:
        """Return a topic's name, or its id as text if the name is unknown."""
        return self.topics.get(topic_id) or uuid_text(topic_id)
