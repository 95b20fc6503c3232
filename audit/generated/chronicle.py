"""What the log of a made-up cluster says by itself: facts that are read off its records.

Rule: it sees each batch once, in order. What a transaction says counts when it ends, and at the
batch that ends it.
"""

from collections import Counter

from audit.generated.facts import FACTS_PER_KIND, Fact
from controller.rehearsal.rehearsal import SealedBatch
from ledger.batch import BatchHeader
from metadata.records import (
    NO_LEADER,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid_text

Place = tuple[int, int]
"""An offset and a time."""


class Chronicle:
    """Keeps the facts."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._told: Counter[str] = Counter()
        self._names: dict[bytes, str] = {}
        self._acls: dict[bytes, str] = {}
        """The principal of each entry."""
        self._leaderless: dict[tuple[bytes, int], Place] = {}
        self._open: list[Record] | None = None
        """What a transaction has said so far; None: none is open."""

    def tell(
        self,
        kind: str,
        subject: str,
        begun: Place,
        until: Place | None,
        principal: str,
        sentence: str = "",
    ) -> None:
        """Note a fact."""
        self._told[kind] += 1
        if self._told[kind] <= FACTS_PER_KIND:
            end, end_ms = until or (None, None)
            self.facts.append(
                Fact(kind, subject, begun[0], end, begun[1], end_ms, principal, sentence)
            )

    def see(self, sealed: SealedBatch) -> None:
        """Look at the next batch of the log."""
        header = sealed.batch.header
        for place, record in enumerate(sealed.records):
            self._see(record, header, place)

    def finish(self) -> None:
        """No more will be written: what is leaderless stays so."""
        for key, since in self._leaderless.items():
            self.tell("leaderless", self._subject(key), since, None, "")
        self._leaderless.clear()
        self.facts.sort(key=lambda fact: (fact.from_offset, fact.kind, fact.subject))

    def _see(self, record: Record, header: BatchHeader, place: int) -> None:
        match record:
            case PartitionChangeRecord() | RemoveTopicRecord() | TopicRecord():
                if self._open is None:
                    self._note(record, header)
                else:
                    self._open.append(record)
            case BeginEpochRecord():
                self._open = None
                if header.base_offset:
                    subject = f"controller:{record.leader_id}"
                    at = header.base_offset, header.timestamp_ms
                    until = header.end_offset, header.timestamp_ms
                    principal = header.provenance.principal
                    self.tell("controller_failover", subject, at, until, principal)
            case BeginTransactionRecord():
                self._open = []
            case AbortTransactionRecord():
                self._open = None
            case EndTransactionRecord():
                said, self._open = self._open or [], None
                for each in said:
                    self._note(each, header)
            case _:
                self._see_privileged(record, header, place)

    def _see_privileged(self, record: Record, header: BatchHeader, place: int) -> None:
        match record:
            case AccessControlEntryRecord():
                self._acls[record.id] = record.principal
                self._privileged("acl", f"acl:{record.principal}", header, place)
            case RemoveAccessControlEntryRecord():
                self._privileged("acl", f"acl:{self._acls.pop(record.id)}", header, place)
            case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
                self._privileged("scram", f"user:{record.name}", header, place)
            case FeatureLevelRecord():
                self._privileged("feature", f"feature:{record.name}", header, place)

    def _privileged(self, kind: str, subject: str, header: BatchHeader, place: int) -> None:
        at, now_ms = header.base_offset + place, header.timestamp_ms
        self.tell(kind, subject, (at, now_ms), (at + 1, now_ms), header.provenance.principal)

    def _note(self, record: Record, header: BatchHeader) -> None:
        """Keep the names of topics, and which partitions have no leader."""
        if isinstance(record, TopicRecord):
            self._names[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            gone = [key for key in self._leaderless if key[0] == record.topic_id]
            for key in gone:
                self._found(key, header)
            del self._names[record.topic_id]
        elif isinstance(record, PartitionChangeRecord):
            key = record.topic_id, record.partition_id
            if record.leader == NO_LEADER:
                self._leaderless.setdefault(key, (header.base_offset, header.timestamp_ms))
            elif record.leader >= 0 and key in self._leaderless:
                self._found(key, header)

    def _found(self, key: tuple[bytes, int], header: BatchHeader) -> None:
        since = self._leaderless.pop(key)
        now = header.base_offset, header.timestamp_ms
        if since != now:
            self.tell("leaderless", self._subject(key), since, now, "")

    def _subject(self, key: tuple[bytes, int]) -> str:
        """As the audit's table of availability names a partition."""
        topic_id, number = key
        return f"{self._names[topic_id]}-{number}@{uuid_text(topic_id)}"
