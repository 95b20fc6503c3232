"""The values that coordination hands out: revisions, tokens, records, members, leaders, events.

Rule: all of them are immutable. A revision orders the changes of one store. A token is the revision
at which a grant was made, so a later grant of the same resource has a larger token (KIP-30 has
neither; Kafka's broker epoch is the precedent).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NewType

Revision = NewType("Revision", int)
"""A position in the store's total order. The quorum: a log offset. etcd: a mod revision.
ZooKeeper: a zxid. Cassandra: an epoch of one partition."""

Token = NewType("Token", int)
"""The revision at which a grant was made. It strictly increases for each resource."""

SessionId = NewType("SessionId", str)
"""A session's name, as its store gives it. No two sessions of a store have the same one."""

EventKind = Literal["snapshot", "change", "resync"]
"""`snapshot`: the state when the watch began. `change`: what followed. `resync`: the fresh state
after the watch may have missed changes."""

ValueEventKind = Literal["snapshot", "put", "delete", "resync"]
"""As `EventKind`; a change of one key is a `put` or a `delete`."""


class SessionState(enum.Enum):
    """What the client knows about its session."""

    CONNECTED = "connected"
    """The store acknowledged the last heartbeat."""
    SUSPENDED = "suspended"
    """A heartbeat failed. The session may live or not, so a caller acts conservatively."""
    LOST = "lost"
    """The session is over, or the client can't know that it lives. This state is final."""
    CLOSED = "closed"
    """The client ended the session itself. This state is final."""


@dataclass(frozen=True, slots=True)
class Record:
    """A key's value in the store."""

    key: str
    value: bytes
    create_revision: Revision
    """Of the change that created the key."""
    mod_revision: Revision
    """Of the last change of the key. It never repeats, so compare-and-set uses only it."""
    version: int
    """1 for a new key, and one more with each change."""
    session: SessionId | None = None
    """The session with which the key ends; None for a key that stays."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, or the holder of a lock."""

    id: str
    data: bytes
    token: Token
    session: SessionId


@dataclass(frozen=True, slots=True)
class Leader:
    """A candidate of an election; `LeaderElectionClient.get_leader` returns the one that leads."""

    id: str
    data: bytes
    token: Token


@dataclass(frozen=True, slots=True)
class ValueEvent:
    """A key has this record now, or none."""

    key: str
    record: Record | None
    revision: Revision
    coalesced: bool
    """Changes between the last event and this one were left out."""
    kind: ValueEventKind


@dataclass(frozen=True, slots=True)
class KeySetEvent:
    """A namespace has these keys now."""

    namespace: str
    keys: frozenset[str]
    added: frozenset[str]
    removed: frozenset[str]
    revision: Revision
    coalesced: bool
    kind: EventKind


@dataclass(frozen=True, slots=True)
class MembershipEvent:
    """A group has these members now, by id."""

    group: str
    members: Mapping[str, Member]
    joined: frozenset[str]
    left: frozenset[str]
    revision: Revision
    coalesced: bool
    kind: EventKind


@dataclass(frozen=True, slots=True)
class LeaderEvent:
    """A service has this leader now, or none."""

    service: str
    leader: Leader | None
    revision: Revision
    coalesced: bool
    kind: EventKind


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend promises. The conformance suite checks each claim, and skips by these only."""

    history: bool
    """A watch delivers every change, also those from before it began or reconnected."""
    txn: bool
    """Several keys change together or not at all."""
    txn_scope: Literal["store", "partition"]
    """Which keys one transaction may hold: any, or those of one partition."""
    atomic_list: bool
    """A list shows one revision of the store, also over several pages."""
    push_watch: bool
    """The store reports changes by itself. Without it the backend polls."""
    min_ttl_s: float
    max_ttl_s: float
    ttl_resolution_s: float
    """A session's ttl is a multiple of this."""
    max_value_bytes: int
    max_key_bytes: int
    """Of the key as UTF-8, with its namespace."""
    max_txn_operations: int
    """Checks, fences and operations of one transaction together."""
    fencing_scope: Literal["store", "resource"]
    """Whether tokens of different resources can be compared."""
    linearizable_reads: bool
    leader_failover: bool
    """The store has several servers, and another takes over when its leader dies."""
    poll_interval_s: float = 0.0
    """How late a change may be seen; 0 where the store pushes."""
    expiry_slack_s: float = 0.0
    """How much later than its ttl the store may end a session that is silent."""
    clock_skew_s: float = 0.0
    """How far the servers' clocks may differ, where these clocks decide when a session ends. The
    default safety margin includes it."""
    lock_delay_s: float = 0.0
    """How long the store refuses a new grant after a session with a grant has expired."""
