"""The backend for Cassandra 4.1 or later.

Rule: what a call can't find out before its time is over is OutcomeUnknown when a write of it was
sent, else Unavailable.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from coordination.backend import (
    BackendSettings,
    Claim,
    Commit,
    Committed,
    OpenedSession,
    RecordPage,
    Resource,
    ResourceEntries,
    ResourceEntry,
    WatchScope,
)
from coordination.backends.cassandra.link import CassandraLink
from coordination.backends.cassandra.queues import CassandraQueues
from coordination.backends.cassandra.schema import checked_keyspace
from coordination.backends.cassandra.sessions import MORE_S, CassandraSessions
from coordination.backends.cassandra.spaces import CassandraSpaces, Draft
from coordination.backends.cassandra.storage import CassandraStorage
from coordination.backends.cassandra.watches import CassandraWatches
from coordination.errors import ConfigError, OutcomeUnknown, SessionLost, Unavailable, ValueTooLarge
from coordination.mirrors import MirrorWatch
from coordination.types import Capabilities, Record, Revision, SessionId, Token
from coordination.until import ReplyLost, Until

MOST_VALUE_BYTES: Final = 1_048_576
_EPOCHS: Final = "sessions"
"""No key's space, as it has no slash at its end."""

T = TypeVar("T")


class CassandraBackend:
    """`coordination.backend.Backend` over Cassandra."""

    def __init__(self, settings: BackendSettings) -> None:
        settings.refuse_unknown_options("replication_factor", "poll_s", "clock_skew_s")
        if settings.auth is not None and settings.auth.token:
            raise ConfigError("cassandra takes a user and a password, not a token")
        self._settings = settings
        self._keyspace = checked_keyspace(settings.path)
        self._replicas = int(_number(settings, "replication_factor", 0, 0)) or None
        self._poll_s = _number(settings, "poll_s", 0.2, 0.01)
        self._skew_s = _number(settings, "clock_skew_s", 0.5, 0)
        self._parts: _Parts | None = None
        self._ttls: dict[SessionId, float] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            history=False,
            txn=True,
            txn_scope="partition",
            atomic_list=False,
            push_watch=False,
            min_ttl_s=1.0,
            max_ttl_s=86_400.0,
            ttl_resolution_s=1.0,
            max_value_bytes=MOST_VALUE_BYTES,
            max_key_bytes=1024,
            max_txn_operations=100,
            fencing_scope="resource",
            linearizable_reads=True,
            leader_failover=False,
            poll_interval_s=self._poll_s,
            expiry_slack_s=MORE_S + 1.0 + self._poll_s,
            clock_skew_s=self._skew_s,
        )

    async def open(self) -> None:
        parts = _Parts(self._settings, self._keyspace, self._replicas, self._poll_s)
        await parts.link.open(self._until())
        self._parts = parts

    async def aclose(self) -> None:
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.watches.aclose()
            await parts.link.close(self._until())

    async def open_session(self, ttl_s: float) -> OpenedSession:
        session = SessionId(f"{self._settings.dice.getrandbits(128):032x}")

        async def begin(parts: _Parts, until: Until) -> Revision:
            await parts.sessions.begin(session, ttl_s, until)

            async def count(draft: Draft) -> Revision:
                return draft.number()

            return await parts.spaces.change(_EPOCHS, count, until)

        epoch = await self._asked(begin)
        self._ttls[session] = ttl_s
        return OpenedSession(session, ttl_s, epoch)

    async def renew(self, session: SessionId) -> float:
        ttl_s = self._ttls.get(session)
        if ttl_s is None:
            raise SessionLost(f"the session {session} is over")
        await self._asked(lambda parts, until: parts.sessions.renew(session, ttl_s, until))
        return ttl_s

    async def end_session(self, session: SessionId) -> None:
        self._ttls.pop(session, None)
        await self._asked(lambda parts, until: parts.sessions.end(session, until))

    async def enter(self, claim: Claim) -> ResourceEntry:
        _check_value(claim.data)
        return await self._asked(lambda parts, until: parts.queues.enter(claim, until))

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        _check_value(data)
        return await self._asked(
            lambda parts, until: parts.queues.change(resource, id_, session, data, until)
        )

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        return await self._asked(
            lambda parts, until: parts.queues.leave(resource, id_, session, token, until)
        )

    async def break_grant(self, resource: Resource) -> bool:
        return await self._asked(lambda parts, until: parts.queues.break_grant(resource, until))

    async def entries(self, resource: Resource) -> ResourceEntries:
        return await self._asked(lambda parts, until: parts.queues.read(resource, until))

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        return await self._asked(lambda parts, until: parts.storage.get(key, until, stale=stale))

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        async for part in self._open_parts().storage.pages(
            prefix, page, self._until(), keys_only=keys_only
        ):
            yield part

    async def commit(self, commit: Commit) -> Committed:
        for operation in commit.operations:
            _check_value(operation.data)
        return await self._asked(lambda parts, until: parts.storage.commit(commit, until))

    def watch(self, scope: WatchScope, after: Revision | None) -> MirrorWatch[object]:
        return self._open_parts().watches.watch(scope, after)

    def _until(self) -> Until:
        return Until.after(self._settings.request_timeout_s)

    def _open_parts(self) -> "_Parts":
        if self._parts is None:
            raise Unavailable("the backend isn't open")
        return self._parts

    async def _asked(self, ask: "Callable[[_Parts, Until], Awaitable[T]]") -> T:
        until = self._until()
        try:
            return await ask(self._open_parts(), until)
        except (Unavailable, ReplyLost, TimeoutError) as error:
            if until.lost:
                raise OutcomeUnknown("the reply is lost; Cassandra didn't tell in time") from error
            raise Unavailable(f"Cassandra didn't answer in time: {error}") from error


class _Parts:
    """What an open backend is made of."""

    def __init__(
        self, settings: BackendSettings, keyspace: str, replicas: int | None, poll_s: float
    ) -> None:
        self.link = CassandraLink(settings, keyspace, replicas)
        self.spaces = CassandraSpaces(self.link, poll_s)
        self.sessions = CassandraSessions(self.link, settings.dice)
        self.queues = CassandraQueues(self.spaces, self.sessions)
        self.storage = CassandraStorage(self.spaces, self.queues, self.sessions, settings.dice)
        self.watches = CassandraWatches(
            self.spaces, self.queues, self.storage, poll_s, settings.request_timeout_s
        )


def _check_value(data: bytes) -> None:
    if len(data) > MOST_VALUE_BYTES:
        raise ValueTooLarge(
            f"values have up to {MOST_VALUE_BYTES} bytes, not {len(data)}", limit=MOST_VALUE_BYTES
        )


def _number(settings: BackendSettings, name: str, default: float, least: float) -> float:
    text = settings.options.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"cassandra's {name} is a number, not {text!r}") from None
    if not value >= least:
        raise ConfigError(f"cassandra's {name} is at least {least}, not {text}")
    return value
