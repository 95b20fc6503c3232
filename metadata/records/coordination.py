"""Records of coordination: sessions, their entries in groups, elections and locks, and keys. Ours.

Rule: each record holds the whole state of its thing, with the offsets that identify it. The leader
computes them from the offset at which it writes. So a record means the same in a log and in a
snapshot, and a watcher needs nothing but the record.

KIP-30 names the interfaces that these records serve; ADR 0055 says why they are as they are.
"""

from enum import IntEnum
from typing import ClassVar

from metadata.features import COORDINATION_FROM, LOGBERG_VERSION
from metadata.records.declaring import Columns, KnownNames, Need
from metadata.records.record import Codes, Record
from metadata.types import Int8, Int32, Int64, Uuid
from metadata.uuids import uuid_text

_NEEDS = (Need(LOGBERG_VERSION, COORDINATION_FROM),)


class EntryKind(IntEnum):
    """Codes of an entry's `kind`: what it is an entry of."""

    GROUP = 1
    """Every entry is a member."""
    ELECTION = 2
    """The first entry leads, and the others wait in order."""
    LOCK = 3
    """The first entry holds the lock; with shared ones, the entries up to the first other one."""


class SessionEnd(IntEnum):
    """Codes of `EndSessionRecord.reason`."""

    CLOSED = 1
    """Its client ended it."""
    EXPIRED = 2
    """The leader heard nothing of it for its ttl."""
    REVOKED = 3
    """Somebody else ended it."""


def resource_word(kind: int, name: str) -> str:
    """Return the subject of a group, an election or a lock, such as `lock:printer`."""
    return f"{_WORDS.get(kind, kind)}:{name}"


_WORDS = {int(code): code.name.lower() for code in EntryKind}


class SessionRecord(Record, frozen=True, tag=100700):
    """Opens a client's session (KIP-30). Ours."""

    TYPE_ID: ClassVar[int] = 1007
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": lambda record: uuid_text(record.session_id)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("session",)

    session_id: Uuid
    ttl_ms: Int32
    """The leader ends the session at the earliest so many ms after its client's last contact."""
    owner: str
    """The principal that opened it. Nobody else may use it."""
    client_name: str
    revision: Int64
    """The offset at which it was opened."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"session:{uuid_text(self.session_id)}",)


class EndSessionRecord(Record, frozen=True, tag=100800):
    """Ends a session (KIP-30). Its entries were removed before, in the same batch. Ours."""

    TYPE_ID: ClassVar[int] = 1008
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"reason": SessionEnd}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": lambda record: uuid_text(record.session_id)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("session",)

    session_id: Uuid
    reason: Int8
    """A `SessionEnd`."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"session:{uuid_text(self.session_id)}",)


class EntryRecord(Record, frozen=True, tag=100900):
    """Sets a session's entry in a group, an election or a lock: new, changed or granted. Ours."""

    TYPE_ID: ClassVar[int] = 1009
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"kind": EntryKind}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": lambda record: resource_word(record.kind, record.name)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("group", "election", "lock", "session")

    kind: Int8
    """An `EntryKind`."""
    name: str
    id: str
    session_id: Uuid
    data: bytes
    shared: bool
    """Of a lock: it may be held together with other shared entries."""
    place: Int64
    """The offset at which it entered: its place in the queue."""
    token: Int64
    """The fencing token of its grant; -1: it waits. Tokens of one resource strictly increase."""
    revision: Int64
    """The offset of this record."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (resource_word(self.kind, self.name), f"session:{uuid_text(self.session_id)}")


class RemoveEntryRecord(Record, frozen=True, tag=101000):
    """Removes an entry from its group, election or lock. Ours."""

    TYPE_ID: ClassVar[int] = 1010
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"kind": EntryKind}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": lambda record: resource_word(record.kind, record.name)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("group", "election", "lock", "session")

    kind: Int8
    """An `EntryKind`."""
    name: str
    id: str
    session_id: Uuid
    """Whose entry it was."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (resource_word(self.kind, self.name), f"session:{uuid_text(self.session_id)}")


class KeyRecord(Record, frozen=True, tag=101100):
    """Sets the value of a key of the coordination store (KIP-30). Ours."""

    TYPE_ID: ClassVar[int] = 1011
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": "key"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("key",)

    key: str
    value: bytes
    create_revision: Int64
    """The offset of the record that created the key."""
    mod_revision: Int64
    """The offset of this record."""
    version: Int64
    """How often the key was set since it was created, 1 at first."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"key:{self.key}",)


class RemoveKeyRecord(Record, frozen=True, tag=101200):
    """Removes a key of the coordination store. Ours."""

    TYPE_ID: ClassVar[int] = 1012
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": "key"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("key",)

    key: str

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"key:{self.key}",)


class TokenBaseRecord(Record, frozen=True, tag=101300):
    """Lifts all later tokens above those of a store that was imported (KIP-30). Ours."""

    TYPE_ID: ClassVar[int] = 1013
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("token-base",)

    base: Int64
    """A token is this number plus the offset of its grant."""
