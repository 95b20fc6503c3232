"""Finds the records about one resource, batch by batch.

A resource is one of the words by which records are found, `topic:orders` or `broker:7`
(`Record.subjects`). Records of an open transaction wait for its end, and those of an aborted one
are dropped.

A person is in the log under a pseudonym, and under the name from before that. Records about either
are about the person.

Records name topics by id. The finder knows the ids of the present, of the topics that are made in
what it reads, and those in the `from` of a watch that goes on. If none of them says which topic a
record is about, the topic was deleted before this reading began. Only a watch that begins in the
past can meet one. It then gets the record if its asker may read the log: too much is better than
too little. Anybody else doesn't get it, because it may be about a topic of others.

The asker writes the `from`. So an id in it is not believed if it is the id of another topic. Of an
id that is gone, an asker who may not read the log hears only the removal.
"""

import re
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from controller.access.watch_rights import EVERYTHING, WatchRights
from ledger.batch import Batch
from metadata.codec import iterate_records
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages.parts import JsonEntries
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.records import (
    RECORD_CLASSES,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.uuids import parse_uuid_of, uuid_text

KINDS: Final = frozenset(kind for record in RECORD_CLASSES for kind in record.SUBJECT_KINDS)
_STEP: Final = 64
_NAME_MAX: Final = 1_000
_IDS_MAX: Final = 16
_PLACE: Final = re.compile(r"([0-9]{1,18})(\.|(?:\.[A-Za-z0-9_-]{22})+)?")
_PLACE_MAX: Final = 18 + 23 * _IDS_MAX


class Place(NamedTuple):
    """Where a watch goes on."""

    offset: int
    topic_ids: frozenset[bytes] | None = None
    """The ids that the watched topic has there; None: not said."""

    @classmethod
    def read(cls, text: str) -> "Place":
        """Parse an offset, or the `nextFrom` of an answer. Raises LogbergError."""
        found = _PLACE.fullmatch(text[:_PLACE_MAX])
        if found is None:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"from: {text[:50]!r} is neither an offset nor the `nextFrom` of an answer",
                {"field": "from"},
            )
        ids = found[2]
        if ids is None:
            return cls(int(found[1]))
        known = (parse_uuid_of("from", each) for each in ids.split(".")[1:] if each)
        return cls(int(found[1]), frozenset(known))

    def text(self) -> str:
        """Return what `read` parses."""
        if self.topic_ids is None:
            return str(self.offset)
        return f"{self.offset}.{'.'.join(sorted(map(uuid_text, self.topic_ids)))}"


class WatchedResource(NamedTuple):
    """What is watched."""

    word: str
    kind: str
    topic: str
    """The topic's name, also of a partition; empty for other kinds."""

    @classmethod
    def read(cls, text: str) -> "WatchedResource":
        """Parse `topic:orders`. Raises LogbergError."""
        kind, colon, name = text.partition(":")
        if kind not in KINDS or not colon or not name or len(name) > _NAME_MAX:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"resource: {text[:100]!r} is no resource; give KIND:NAME, such as topic:orders; "
                f"the kinds are {', '.join(sorted(KINDS))}",
                {"field": "resource"},
            )
        topic = name if kind == "topic" else name.rpartition("-")[0] if kind == "partition" else ""
        return cls(text, kind, topic)


class _Entries(dict[bytes, AccessControlEntryRecord]):
    """The entries that were read, and before them those of an image."""

    def __init__(self, image: MetadataImage) -> None:
        super().__init__()
        self._image = image

    def get(self, key: bytes, default: Any = None) -> Any:
        return super().get(key) or self._image.acls.entries.get(key) or default


class _Owners(dict[str, str]):
    """The owners of tokens that were read, and before them those of an image."""

    def __init__(self, image: MetadataImage) -> None:
        super().__init__()
        self._image = image

    def get(self, key: str, default: Any = None) -> Any:
        known = self._image.tokens.tokens.get(key)
        return super().get(key) or (known.owner if known is not None else default)


class RecordFinder:
    """Takes batches in order, and keeps the records about the resource."""

    def __init__(
        self,
        resource: WatchedResource,
        place: Place,
        image: MetadataImage,
        rights: WatchRights = EVERYTHING,
        opener: PersonOpener = NO_OPENER,
    ) -> None:
        """`image` is that of the moment when the watch was asked for.

        `rights` say what the watcher may see. `opener` opens sealed addresses and names.
        """
        self._rights = rights
        self._opener = opener
        self.resource = resource
        self.found = JsonEntries()
        self.next_offset = place.offset
        """Everything before it was read and is settled."""
        self.read_to = place.offset
        self.acls: dict[bytes, AccessControlEntryRecord] = _Entries(image)
        self.token_owners: dict[str, str] = _Owners(image)
        self._image = image
        self._sure = place.topic_ids is not None or place.offset >= image.offset
        self._names: dict[bytes, str] = {}
        self._claimed: set[bytes] = set()
        """Ids of the `from` that are gone: only the asker says that they were the topic's."""
        for topic_id in place.topic_ids or ():
            known = image.topics.by_id.get(topic_id)
            if known is None:
                self._claimed.add(topic_id)
            if known is None or known.name == resource.topic:
                self._names[topic_id] = resource.topic
        present = image.topics.named(resource.topic) if resource.topic else None
        if present is not None:
            self._names[present.topic_id] = resource.topic
        self._open: JsonEntries | None = None
        self._words = frozenset((resource.word,))

    def look_also_for(self, word: str | None) -> None:
        """From here on, find records about the resource and about this word; None: about no other.

        It takes the place of the word that was named before.
        """
        words = (self.resource.word,) if word is None else (self.resource.word, word)
        self._words = frozenset(words)

    @property
    def in_transaction(self) -> bool:
        """What was read last is not settled yet."""
        return self._open is not None

    @property
    def place(self) -> Place:
        """Where the next reading begins."""
        if not self.resource.topic:
            return Place(self.next_offset)
        mine = (i for i, name in self._names.items() if name == self.resource.topic)
        return Place(self.next_offset, frozenset(list(mine)[-_IDS_MAX:]))

    @property
    def common(self) -> tuple[WatchedResource, Place, WatchRights] | None:
        """What equals another finder's if both find the same from here on; None: that is not sure.

        Finders that began with different images differ in what they know of other resources, and of
        topics that were deleted before. Neither matters to one that is sure which topic it watches.
        Claimed ids don't differ: their removals were read, and nothing follows those.
        """
        if not self._sure or self.found or self._open is not None:
            return None
        if self.read_to != self.next_offset:
            return None
        return self.resource, self.place, self._rights

    def shown(self, topic_id: bytes) -> str:
        """Return a topic's name; if it is not known, its id for whoever may read the log."""
        if (name := self._names.get(topic_id)) is not None:
            return name
        topic = self._image.topics.by_id.get(topic_id)
        if topic is not None:
            return topic.name
        # A right on a prefix of the id, as if it were a name, must not show the topic.
        return uuid_text(topic_id) if self._rights.reads_log else ""

    def take(self, batch: Batch) -> Generator[None, None, None]:
        """Read one batch, in steps. Raises RecordDecodeError."""
        header, cause = batch.header, self._cause(batch)
        for offset, record in enumerate(iterate_records(batch.records), header.base_offset):
            if offset % _STEP == 0:
                yield
            if offset < self.read_to:
                continue
            self._learn(record)
            if self._is_about_it(record):
                words: dict[str, Any] = {"offset": offset, "epoch": header.epoch, **cause}
                words |= {"timestampMs": header.timestamp_ms, "record": self._shown(record)}
                (self.found if self._open is None else self._open).add(words)
            self._settle(record)
        self.read_to = header.end_offset
        if self._open is None:
            self.next_offset = header.end_offset

    def _cause(self, batch: Batch) -> dict[str, str]:
        """Return who made a change and why, for whoever may read the log."""
        if not self._rights.reads_log:
            return {}
        return self._opener.cause(batch.header.cause(uuid_text))

    def _shown(self, record: Record) -> dict[str, Any]:
        return self._opener.record_words(record)

    def _settle(self, record: Record) -> None:
        """Follow transactions. A reading that began within one meets its end only."""
        match record:
            case BeginTransactionRecord():
                self._open = JsonEntries()
            case EndTransactionRecord():
                if self._open is not None:
                    self.found.extend(self._open)
                self._open = None
            case AbortTransactionRecord():
                if self._open is None:
                    self.found.clear()
                self._open = None
            case BeginEpochRecord():
                self._open = None

    def _learn(self, record: Record) -> None:
        match record:
            case TopicRecord():
                self._names[record.topic_id] = record.name
                self._claimed.discard(record.topic_id)
            case AccessControlEntryRecord():
                self.acls[record.id] = record
            case DelegationTokenRecord():
                self.token_owners[record.token_id] = record.owner

    def _is_about_it(self, record: Record) -> bool:
        if not self._rights.show(record) or self._is_claimed(record):
            return False
        about_it = not self._words.isdisjoint(record.subjects(self))
        return about_it or self._may_be_about_it(record)

    def _may_be_about_it(self, record: Record) -> bool:
        """Return whether a record names something that is gone, and may be the resource's."""
        kind = self.resource.kind
        if self.resource.topic:
            topic_id: bytes | None = getattr(record, "topic_id", None)
            gone = topic_id is not None and self._is_gone(topic_id)
            number = self.resource.word.rpartition("-")[2]
            if gone and not self._sure and self._rights.reads_log:
                return kind == "topic" or str(getattr(record, "partition_id", number)) == number
        match record:
            case RemoveAccessControlEntryRecord():
                return kind in ("topic", "user") and self.acls.get(record.id) is None
            case RemoveDelegationTokenRecord():
                return kind == "user" and self.token_owners.get(record.token_id) is None
        return False

    def _is_claimed(self, record: Record) -> bool:
        """Return whether only the asker says that the record is about the topic."""
        if self._rights.reads_log or isinstance(record, RemoveTopicRecord):
            return False
        return getattr(record, "topic_id", None) in self._claimed

    def _is_gone(self, topic_id: bytes) -> bool:
        return topic_id not in self._names and topic_id not in self._image.topics.by_id
