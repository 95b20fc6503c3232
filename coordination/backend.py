"""What a backend is: one connection to one store, in one event loop.

Rule: a backend has no policy. It asks the store, fails over between the store's servers, and says
what came of it. The client core does heartbeats, deadlines, campaigns, limits and buffers.

Every call ends within `BackendSettings.request_timeout_s`, with a result or with an error of
`coordination.errors`. Within that time the backend tries its servers in turn. When the reply to a
change is lost, the backend finds out what happened, by request id or by the owner of an entry. It
raises OutcomeUnknown only when it can't find out.

Keys and names arrive with their namespace and checked against the backend's `Capabilities`. A
backend escapes them as its store needs.

`coordination/backends/<name>/__init__.py` has `make_backend(settings) -> Backend`. A backend of
somebody else is such a function behind an entry point of the group `logberg.coordination`.
"""

import ssl as tls
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from coordination.errors import ConfigError, CoordinationError
from coordination.types import Capabilities, Record, Revision, SessionId, Token
from runtime.clock import Clock
from runtime.randomness import Random

ResourceKind = Literal["group", "election", "lock"]
BatchKind = Literal["snapshot", "changes", "progress", "resync"]
OperationKind = Literal["put", "update", "upsert", "delete"]


@dataclass(frozen=True, slots=True)
class Auth:
    """Who asks the store: a name with a password, or a token."""

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """What a backend is made from: the parts of the URL, and its world."""

    scheme: str
    """Such as `etcd+http`."""
    endpoints: tuple[str, ...]
    """The URL's hosts in their order, each as `host` or `host:port`."""
    path: str
    """The URL's path without its first slash; what it means is the backend's matter."""
    request_timeout_s: float
    clock: Clock
    dice: Random
    ssl: tls.SSLContext | None = None
    auth: Auth | None = None
    """From the call, or else from the URL's user and password."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The URL's query and the call's further options, as text."""

    @property
    def secure(self) -> bool:
        """Whether the scheme asks for TLS."""
        return self.scheme.endswith("+https")

    def refuse_unknown_options(self, *known: str) -> None:
        """Raise ConfigError, which names an option that isn't among the known ones."""
        for name in sorted(self.options.keys() - set(known)):
            offered = f"known ones: {', '.join(sorted(known))}" if known else "there are none"
            raise ConfigError(f"{self.scheme} has no option {name!r}; {offered}")


@dataclass(frozen=True, slots=True)
class Resource:
    """What sessions enter: a group, an election or a lock."""

    kind: ResourceKind
    name: str


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """A session's place in a resource: a member, a candidate, a holder of a lock, or a waiter.

    Every entry of a group is granted. Of an election, the first in the queue is. Of a lock, the
    first is, and if that one is shared, all shared ones that follow it without a gap.
    """

    id: str
    data: bytes
    session: SessionId
    token: Token
    """Of a granted entry: the grant's token. Of a waiting one it only orders the queue."""
    revision: Revision
    """Of the entry's last change."""
    granted: bool
    shared: bool = False


@dataclass(frozen=True, slots=True)
class ResourceEntries:
    """The whole state of a resource, in the order of its queue."""

    revision: Revision
    entries: tuple[ResourceEntry, ...]


def count_granted(kind: ResourceKind, shared: Sequence[bool]) -> int:
    """Return how many entries at the front of a queue are granted; `shared`: of each, in order."""
    if kind == "group":
        return len(shared)
    if kind == "lock" and shared and shared[0]:
        return next((i for i, each in enumerate(shared) if not each), len(shared))
    return min(1, len(shared))


@dataclass(frozen=True, slots=True)
class Claim:
    """A session enters a resource."""

    resource: Resource
    id: str
    data: bytes
    session: SessionId
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Fence:
    """A condition: the grant with this token is the resource's present one."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class Check:
    """A condition: the key has this mod revision; None: the key isn't there."""

    key: str
    mod_revision: Revision | None


@dataclass(frozen=True, slots=True)
class Operation:
    """A change of one key.

    `put` makes a key (KeyExists), `update` changes one (KeyMissing), `upsert` does either, `delete`
    removes it if it is there. `expect` is the key's mod revision (RevisionMismatch).
    """

    kind: OperationKind
    key: str
    data: bytes = b""
    expect: Revision | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """One write, or a transaction: all of it or nothing. No key stands twice in `operations`."""

    operations: tuple[Operation, ...]
    checks: tuple[Check, ...] = ()
    fences: tuple[Fence, ...] = ()
    request_id: str | None = None
    """The same id again means the same commit: it isn't made twice, and the first result is
    returned. None: the backend draws one where it needs it."""
    session: SessionId | None = None
    """Who asks. A store that checks it refuses with SessionLost when the session is over."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What came of a commit."""

    revision: Revision
    applied: tuple[bool, ...]
    """By operation: False for a `delete` that found nothing."""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """A part of a list. Where lists are atomic, all pages of one show the same revision."""

    revision: Revision
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that the store has begun."""

    id: SessionId
    ttl_s: float
    """As the store granted it."""
    epoch: Revision
    """Larger for each session that the store begins."""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """Watch one key."""

    key: str


@dataclass(frozen=True, slots=True)
class PrefixScope:
    """Watch all keys that begin with this text."""

    prefix: str


WatchScope = KeyScope | PrefixScope | Resource


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A key has this record since this revision; None: it was deleted."""

    key: str
    record: Record | None
    revision: Revision


@dataclass(frozen=True, slots=True)
class WatchBatch:
    """What a watch reports at once. Revisions never go back from batch to batch.

    Of keys, `snapshot` and `resync` hold all that is there as `changes`; what is missing isn't
    there. `changes` hold what changed, in order. Of a resource each of the three holds `entries`,
    the whole state. `progress` says only that nothing changed up to its revision.
    """

    kind: BatchKind
    revision: Revision
    coalesced: bool = False
    """Changes since the last batch may be missing; the last state of each key is here."""
    changes: tuple[ValueChange, ...] = ()
    entries: ResourceEntries | None = None


class BackendWatch(Protocol):
    """Reports one scope until it is closed; it resumes by itself after a lost connection.

    Without `after` its first batch is a `snapshot`. When the store has forgotten the changes after
    the last revision, the next batch is a `resync`.
    """

    def __aiter__(self) -> AsyncIterator[WatchBatch]: ...

    async def __anext__(self) -> WatchBatch:
        """Return the next batch. Raises AuthFailed; StopAsyncIteration when the watch is closed."""
        ...

    async def aclose(self) -> None:
        """End the watch, here and on the server; a second call does nothing."""
        ...


class Backend(Protocol):
    """One connection to one store. Its errors are those of `coordination.errors`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the store offers; complete once `open` has returned."""
        ...

    async def open(self) -> None:
        """Connect. Raises AuthFailed, Unavailable, ConfigError."""
        ...

    async def aclose(self) -> None:
        """Disconnect within the time of a request; a second call does nothing."""
        ...

    async def open_session(self, ttl_s: float) -> OpenedSession:
        """Begin a session. The core has put the ttl within the capabilities' limits."""
        ...

    async def renew(self, session: SessionId) -> float:
        """Send a heartbeat and return the granted ttl. Raises SessionLost when it is over."""
        ...

    async def end_session(self, session: SessionId) -> None:
        """End a session, also one that is over; its entries are gone when this returns."""
        ...

    async def enter(self, claim: Claim) -> ResourceEntry:
        """Enter a resource. The same session and id again changes the data.

        Raises EntryExists when another session, which lives, has the id; SessionLost.
        """
        ...

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        """Change an entry's data; its place and token stay. Raises NotHeld if it isn't ours."""
        ...

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        """Remove an entry if it is this session's and, unless None, has this token.

        False: there was none.
        """
        ...

    async def break_grant(self, resource: Resource) -> bool:
        """Remove all granted entries, whoever has them. False: there were none."""
        ...

    async def entries(self, resource: Resource) -> ResourceEntries:
        """Read a resource; linearizable where the capabilities say so."""
        ...

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        """Read a key; linearizable unless `stale`."""
        ...

    def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        """List the keys that begin with the prefix, sorted by their UTF-8 bytes.

        `keys_only` may leave values empty; `page` is how many records a page has at most.
        There is at least one page, so that an empty list has a revision too.
        """
        ...

    async def commit(self, commit: Commit) -> Committed:
        """Make a commit.

        Raises KeyExists, KeyMissing, RevisionMismatch, Fenced, each with the step's index;
        TxnTooLarge, ValueTooLarge, NotSupported, SessionLost, OutcomeUnknown, Unavailable.
        """
        ...

    def watch(self, scope: WatchScope, after: Revision | None) -> BackendWatch:
        """Watch from now, with a snapshot first, or only what changes after a revision."""
        ...


BackendFactory = Callable[[BackendSettings], Backend]
"""What an entry point, or a class name in a properties file, leads to. Raises ConfigError."""


class EntryExists(CoordinationError):  # noqa: N818 - as its siblings in errors.py
    """Between backend and core: another session has the id. Callers see the core's own error."""

    def __init__(self, message: str = "", *, entry: ResourceEntry | None = None) -> None:
        super().__init__(message)
        self.entry = entry
