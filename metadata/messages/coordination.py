"""Coordination: sessions, entries and keys. `/v1/coordination/…` (KIP-30, ADR 0055).

Rule: a revision is the offset of a record, and a reply's `revision` is that of the last record that
the reply includes. `offset` is the end of the log after a change, one more than its last record.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from metadata.messages.message import ReplyMessage, RequestMessage, UuidText
from metadata.types import Int64

ResourceKind = Literal["group", "election", "lock"]
Ttl = Annotated[int, Meta(ge=1, le=2**31 - 1)]
"""ms."""


class OpenSessionRequest(RequestMessage, frozen=True):
    """Open a session."""

    ttl_ms: Ttl
    """The session lives at least so long after each contact. The controllers may grant more or
    less."""
    client_name: Annotated[str, Meta(max_length=200)] = ""
    dry_run: bool = False


class OpenSessionReply(ReplyMessage, frozen=True):
    """The new session."""

    session_id: str
    ttl_ms: int
    revision: int
    """Of the session's opening: larger than that of each older session."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class RenewSessionRequest(RequestMessage, frozen=True):
    """Say that a session's client lives."""

    session_id: UuidText


class RenewSessionReply(ReplyMessage, frozen=True):
    """The session lives at least `ttl_ms` from the moment at which the request was sent."""

    ttl_ms: int
    revision: int
    epoch: int = -1


class EndSessionRequest(RequestMessage, frozen=True):
    """End a session and remove its entries."""

    session_id: UuidText
    revoke: bool = False
    """It is somebody else's session."""
    dry_run: bool = False


class EndSessionReply(ReplyMessage, frozen=True):
    """Whether there was such a session."""

    ended: bool
    revision: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class EnterRequest(RequestMessage, frozen=True):
    """Join a group, run for an election, or wait for a lock."""

    kind: ResourceKind
    name: str
    id: str
    session_id: UuidText
    data: bytes = b""
    shared: bool = False
    """Of a lock: others may hold it with us, if they share it too."""
    dry_run: bool = False


class ChangeEntryRequest(RequestMessage, frozen=True):
    """Change the data of an entry."""

    kind: ResourceKind
    name: str
    id: str
    session_id: UuidText
    data: bytes = b""
    dry_run: bool = False


class EntryReply(ReplyMessage, frozen=True):
    """The entry after the change."""

    revision: int
    """Of its last record."""
    token: int
    """-1: it waits."""
    granted: bool
    place: int
    """Entries of one resource are in the order of their places."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class LeaveRequest(RequestMessage, frozen=True):
    """Leave a group, withdraw or resign, or release a lock."""

    kind: ResourceKind
    name: str
    id: str
    session_id: UuidText
    token: Int64 | None = None
    """Only if the entry has this token; null: whatever its token is."""
    dry_run: bool = False


class LeaveReply(ReplyMessage, frozen=True):
    """Whether there was such an entry."""

    left: bool
    revision: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class BreakGrantRequest(RequestMessage, frozen=True):
    """Remove whoever leads an election or holds a lock."""

    kind: ResourceKind
    name: str
    dry_run: bool = False


class BreakGrantReply(ReplyMessage, frozen=True):
    """Whether anybody was removed."""

    broken: bool
    revision: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class KeyCheck(RequestMessage, frozen=True):
    """A condition of a transaction."""

    key: str
    mod_revision: Int64 | None = None
    """null: the key must be absent."""


class TokenFence(RequestMessage, frozen=True):
    """A condition: the grant with this token must be a present one of its resource."""

    kind: ResourceKind
    name: str
    token: Int64


class KeyOperation(RequestMessage, frozen=True):
    """One write of a transaction."""

    op: Literal["put", "update", "upsert", "delete"]
    """put: the key must be absent; update: it must be there; upsert and delete: either."""
    key: str
    data: bytes = b""
    expect: Int64 | None = None
    """The key's mod revision must be this; null: any."""


class CommitRequest(RequestMessage, frozen=True):
    """Writes to keys, all or none, on conditions."""

    operations: tuple[KeyOperation, ...] = ()
    checks: tuple[KeyCheck, ...] = ()
    fences: tuple[TokenFence, ...] = ()
    session_id: UuidText | None = None
    """The session must be open; null: no session is needed."""
    tokens_above: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    """Lift all later tokens above this one, which was imported."""
    dry_run: bool = False


class CommitReply(ReplyMessage, frozen=True):
    """What was written."""

    revision: int
    applied: tuple[bool, ...] = ()
    """False: a key to delete was not there."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class SessionDescription(ReplyMessage, frozen=True):
    """One session."""

    session_id: str
    ttl_ms: int
    owner: str
    client_name: str
    revision: int
    entries: int
    """How many it has."""


class EntryDescription(ReplyMessage, frozen=True):
    """One entry of a group, an election or a lock."""

    kind: str
    name: str
    id: str
    session_id: str
    data: bytes
    shared: bool
    place: int
    token: int
    """-1: it waits."""
    granted: bool
    revision: int


class KeyDescription(ReplyMessage, frozen=True):
    """One key."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    version: int


class ListSessionsReply(ReplyMessage, frozen=True):
    """Sessions by id, from one image."""

    offset: int
    epoch: int
    revision: int
    sessions: tuple[SessionDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None


class EntriesReply(ReplyMessage, frozen=True):
    """Entries: of one group, election or lock in the order of its queue; else by name and id."""

    offset: int
    epoch: int
    revision: int
    entries: tuple[EntryDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None


class GetKeyReply(ReplyMessage, frozen=True):
    """A key, or null if it is not there."""

    offset: int
    epoch: int
    revision: int
    record: KeyDescription | None
    age_ms: int | None = 0


class ListKeysReply(ReplyMessage, frozen=True):
    """Keys in the order of their code points, from one image."""

    offset: int
    epoch: int
    revision: int
    records: tuple[KeyDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more, even if `records` is empty: ask again with it as `continuation`."""


class CoordinationLimitsReply(ReplyMessage, frozen=True):
    """What coordination allows, and how much of it is used."""

    offset: int
    epoch: int
    ttl_ms_min: int
    ttl_ms_max: int
    key_bytes_max: int
    value_bytes_max: int
    data_bytes_max: int
    name_bytes_max: int
    commit_operations_max: int
    commit_bytes_max: int
    watch_scopes_max: int
    bytes_max: int
    bytes_used: int
    keys_max: int
    keys: int
    sessions_max: int
    sessions: int
    entries_max: int
    entries: int
    age_ms: int | None = 0
