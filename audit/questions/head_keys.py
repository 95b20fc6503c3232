"""How the keys that sign heads came to count, and whether each signed head is that of the log.

Rule: nothing is believed that can be computed. The tree is made anew from the batches; a rotation
must be signed by the key before and by the new one; a head must have the log's root and signatures
of a majority of the voters at that place. What is not so is a sentence in `problem`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ledger.batch import Batch, BatchHeader
from ledger.edge_tree import EdgeTree
from ledger.errors import LedgerError
from ledger.merkle.frontier import Frontier
from ledger.merkle.heads import TreeHead, origin_of, rotation_text
from ledger.merkle.notes import NoteKey
from metadata.codec import decode_records
from metadata.records import (
    ClusterGenerationRecord,
    HeadKeyCause,
    HeadKeyRecord,
    Record,
    SignedHeadRecord,
    VotersRecord,
)


class KeyEvent(NamedTuple):
    """A record about a key."""

    offset: int
    header: BatchHeader
    record: HeadKeyRecord
    problem: str
    """Why the record must not have been written; empty: it is right."""


class HeadEvent(NamedTuple):
    """A signed head in the log."""

    offset: int
    header: BatchHeader
    record: SignedHeadRecord
    signers: tuple[int, ...]
    """The controllers whose signatures are right."""
    problem: str


class HeadAudit:
    """Reads a log from its beginning, batch for batch."""

    def __init__(self, cluster_id: str, *, whole: bool) -> None:
        """`whole`: the log is there from offset 0, so that roots can be computed."""
        self._cluster_id = cluster_id
        self._tree = EdgeTree(Frontier(), 0) if whole else None
        self._generation = 0
        self._voters: dict[int, bytes] = {}
        self._newest = 0
        self.keys: dict[int, KeyEvent] = {}
        """By controller id: the record with which its present key came to count."""
        self.heads = 0
        """How many signed heads the log has."""

    def read(self, batch: Batch) -> Iterator[KeyEvent | HeadEvent]:
        """Take the next batch; yield what it says of keys and heads. Raises RecordDecodeError."""
        if self._tree is not None:
            self._tree.append(batch)
        for offset, record in enumerate(decode_records(batch.records), batch.header.base_offset):
            if isinstance(record, HeadKeyRecord):
                yield self._key(offset, batch.header, record)
            elif isinstance(record, SignedHeadRecord):
                yield self._head(offset, batch.header, record)
            else:
                self._note(record)

    @property
    def origin(self) -> str:
        """The name under which heads are signed here."""
        return origin_of(self._cluster_id, self._generation)

    def _note(self, record: Record) -> None:
        if isinstance(record, ClusterGenerationRecord):
            self._generation = record.generation
        elif isinstance(record, VotersRecord):
            self._voters = {each.voter_id: each.voter_directory_id for each in record.voters}

    def _key(self, offset: int, header: BatchHeader, record: HeadKeyRecord) -> KeyEvent:
        event = KeyEvent(offset, header, record, self._wrong_key(record))
        if record.cause == HeadKeyCause.REMOVED:
            self.keys.pop(record.controller_id, None)
        elif record.cause != HeadKeyCause.ROTATING:
            self.keys[record.controller_id] = event
        return event

    def _wrong_key(self, record: HeadKeyRecord) -> str:
        before = self.keys.get(record.controller_id)
        present = None if before is None else before.record
        if record.cause == HeadKeyCause.REMOVED:
            return "" if present is not None else "there was no key to remove"
        if self._voters.get(record.controller_id) != record.directory_id:
            return "whose key it is was no voter, with this folder"
        if record.cause == HeadKeyCause.REGISTERED:
            known = present is not None and present.directory_id == record.directory_id
            return "the voter had a key already" if known else ""
        if record.cause == HeadKeyCause.REPLACED:
            return ""
        if present is None:
            return "there was no key before"
        if record.cause == HeadKeyCause.ROTATING:
            return "" if record.public_key == present.public_key else "it names another key"
        old, new = present.public_key, record.public_key
        text = rotation_text(self.origin, record.controller_id, old, new)
        if not NoteKey(self.origin, old).verifies(text, record.old_signature):
            return "the key before did not sign the rotation"
        if not NoteKey(self.origin, new).verifies(text, record.new_signature):
            return "the new key did not sign the rotation"
        return ""

    def _head(self, offset: int, header: BatchHeader, record: SignedHeadRecord) -> HeadEvent:
        self.heads += 1
        head = TreeHead(record.origin, record.size, record.root)
        signers = tuple(
            each.controller_id
            for each in record.signatures
            if self._counts(each.controller_id, each.public_key)
            and NoteKey(head.origin, each.public_key).verifies(head.text, each.signature)
        )
        problem = self._wrong_head(record, len(set(signers)))
        self._newest = max(self._newest, record.size)
        return HeadEvent(offset, header, record, signers, problem)

    def _counts(self, controller_id: int, public: bytes) -> bool:
        event = self.keys.get(controller_id)
        return (
            event is not None
            and event.record.public_key == public
            and self._voters.get(controller_id) == event.record.directory_id
        )

    def _wrong_head(self, record: SignedHeadRecord, signed: int) -> str:
        if record.origin != self.origin:
            return f"it is of {record.origin!r}, not of {self.origin!r}"
        if record.size <= self._newest:
            return f"a head of {self._newest} batches came before"
        if signed <= len(self._voters) // 2:
            return f"{signed} of {len(self._voters)} voters signed it, which is no majority"
        if self._tree is None:
            return ""
        try:
            root = self._tree.root(record.size)
        except LedgerError as error:
            return str(error)
        if root != record.root:
            return f"the log gives the root {root.hex()}, and {record.root.hex()} was signed"
        return ""
