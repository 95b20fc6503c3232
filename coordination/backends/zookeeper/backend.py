"""The backend for ZooKeeper: one connection for reading and watching, and one for each session.

Rule: what a session owns is asked on that session's own connection, so ZooKeeper itself refuses it
after the session's end. When the reading connection's session ends, another one is opened; nobody
owns anything through it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import kazoo.exceptions as zk

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
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.access import ZooKeeperAccess
from coordination.backends.zookeeper.commits import ZooKeeperCommits
from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.keys import ZooKeeperKeys
from coordination.backends.zookeeper.paths import Layout
from coordination.backends.zookeeper.queues import ZooKeeperQueues
from coordination.backends.zookeeper.session_limits import SessionLimits, session_limits
from coordination.backends.zookeeper.watches import ZooKeeperWatches
from coordination.errors import (
    AuthFailed,
    CoordinationError,
    OutcomeUnknown,
    SessionLost,
    Unavailable,
    ValueTooLarge,
)
from coordination.mirrors import MirrorWatch
from coordination.types import Capabilities, Record, Revision, SessionId, Token
from coordination.until import ReplyLost, Until

MOST_VALUE_BYTES: Final = 1_020_000
"""ZooKeeper takes requests up to 1 MiB; the rest is for the paths."""
_READING_TTL_S: Final = 10.0
_PULSE_S: Final = 2.0
_GOODBYE_S: Final = 0.3
"""So long a connection waits for the server's goodbye when nobody needs it."""

T = TypeVar("T")


class _OpenSession:
    """A session and what is asked on its connection."""

    def __init__(self, link: ZooKeeperConnection, commits: ZooKeeperCommits) -> None:
        self.link = link
        self.commits = commits


class ZooKeeperBackend:
    """`coordination.backend.Backend` over ZooKeeper 3.6 or later."""

    def __init__(self, settings: BackendSettings) -> None:
        settings.refuse_unknown_options("auth")
        self._settings = settings
        self._access = ZooKeeperAccess.of_settings(settings)
        self._layout = Layout.of_url(settings.path)
        self._queues = ZooKeeperQueues(self._layout)
        self._keys = ZooKeeperKeys(self._layout, settings.request_timeout_s)
        self._watches = ZooKeeperWatches(self._layout, self._reading, settings.request_timeout_s)
        self._limits = SessionLimits(0.0, 0.0)
        self._sessions: dict[SessionId, _OpenSession] = {}
        self._reader: _OpenSession | None = None
        self._opening: asyncio.Lock | None = None
        self._pulses: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            history=False,
            txn=True,
            txn_scope="store",
            atomic_list=False,
            push_watch=True,
            min_ttl_s=self._limits.least_s,
            max_ttl_s=self._limits.most_s,
            ttl_resolution_s=0.001,
            max_value_bytes=MOST_VALUE_BYTES,
            max_key_bytes=1024,
            max_txn_operations=500,
            fencing_scope="store",
            linearizable_reads=True,
            leader_failover=len(self._settings.endpoints) > 1,
            # ZooKeeper ends sessions at whole ticks, and the smallest ttl has two of them.
            expiry_slack_s=self._limits.least_s,
        )

    async def open(self) -> None:
        until = self._until()
        self._opening = asyncio.Lock()
        self._limits = await session_limits(self._settings, self._access.ssl, until)
        link = await self._reading(until)
        try:
            for folder in (self._layout.keys, self._layout.sessions, self._layout.receipts):
                await nodes.make_folder(link, folder, until)
            # Whoever may not read the keys has other credentials than their owner.
            await nodes.children(link, self._layout.keys, until)
        except zk.ZookeeperError as error:
            await self.aclose()
            raise Unavailable(f"ZooKeeper can't make the folders: {error!r}") from None
        except BaseException:
            await self.aclose()
            raise
        self._pulses = asyncio.ensure_future(self._pulse())

    async def aclose(self) -> None:
        self._closed = True
        if self._pulses is not None:
            self._pulses.cancel()
            await asyncio.gather(self._pulses, return_exceptions=True)
        await self._watches.aclose()
        until = Until.after(_GOODBYE_S)
        opened = [*self._sessions.values(), *([self._reader] if self._reader else [])]
        self._sessions, self._reader = {}, None
        await asyncio.gather(*(self._end(one, until) for one in opened))

    async def open_session(self, ttl_s: float) -> OpenedSession:
        until = self._until()
        opened = await self._open(ttl_s, until, pings=False)
        link = opened.link
        path = self._layout.session(link.session)

        async def announce() -> int:
            with suppress(zk.NodeExistsError):  # the reply to the first try was lost
                await link.read(lambda client: client.create_async(path, ephemeral=True), until)
            stat = await nodes.stat(link, path, until)
            if stat is None:
                raise SessionLost("the session ended as soon as it began")
            return int(stat.czxid)

        try:
            epoch = await self._asked(announce, until)
        except BaseException:
            await self._end(opened, until)
            raise
        self._sessions[link.session] = opened
        return OpenedSession(link.session, link.ttl_s, Revision(epoch))

    async def renew(self, session: SessionId) -> float:
        link = self._own(session).link
        until = self._until()
        await self._asked(lambda: link.pulse(until), until)
        return link.ttl_s

    async def end_session(self, session: SessionId) -> None:
        self._queues.forget(session)
        opened = self._sessions.pop(session, None)
        if opened is not None:
            # Half the time of a request: an unreachable server ends the session by itself.
            await self._end(opened, Until.after(self._settings.request_timeout_s / 2))

    async def enter(self, claim: Claim) -> ResourceEntry:
        self._check_value(claim.data)
        link = self._own(claim.session).link
        until = self._until()
        return await self._asked(lambda: self._queues.enter(link, claim, until), until)

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        self._check_value(data)
        link = self._own(session).link
        until = self._until()
        return await self._asked(
            lambda: self._queues.change(link, resource, id_, data, until), until
        )

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        link = self._own(session).link
        until = self._until()
        return await self._asked(
            lambda: self._queues.leave(link, resource, id_, token, until), until
        )

    async def break_grant(self, resource: Resource) -> bool:
        until = self._until()
        return await self._read(lambda link: self._queues.break_grant(link, resource, until), until)

    async def entries(self, resource: Resource) -> ResourceEntries:
        until = self._until()
        return await self._read(lambda link: self._queues.read(link, resource, until), until)

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        until = self._until()
        return await self._read(lambda link: self._keys.get(link, key, until, stale=stale), until)

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        link = await self._reading(self._until())
        try:
            async for part in self._keys.pages(link, prefix, page, keys_only=keys_only):
                yield part
        except SessionLost:
            raise Unavailable("the connection was lost while the list was read") from None

    async def commit(self, commit: Commit) -> Committed:
        for operation in commit.operations:
            self._check_value(operation.data)
        until = self._until()
        if commit.session is not None:
            commits = self._own(commit.session).commits
            return await self._asked(lambda: commits.commit(commit, until), until)
        await self._reading(until)
        assert self._reader is not None, "the reading connection was just there"
        commits = self._reader.commits
        try:
            return await self._asked(lambda: commits.commit(commit, until), until)
        except SessionLost:
            raise Unavailable("the connection was lost before the commit was sent") from None

    def watch(self, scope: WatchScope, after: Revision | None) -> MirrorWatch[object]:
        return self._watches.watch(scope, after)

    def _until(self) -> Until:
        return Until.after(self._settings.request_timeout_s)

    @staticmethod
    def _check_value(data: bytes) -> None:
        if len(data) > MOST_VALUE_BYTES:
            raise ValueTooLarge(
                f"ZooKeeper takes values up to {MOST_VALUE_BYTES} bytes, not {len(data)}",
                limit=MOST_VALUE_BYTES,
            )

    def _own(self, session: SessionId) -> _OpenSession:
        opened = self._sessions.get(session)
        if opened is None or opened.link.over:
            raise SessionLost(f"the session {session} is over")
        return opened

    async def _reading(self, until: Until) -> ZooKeeperConnection:
        """The connection for reading, opened anew when its session has ended."""
        assert self._opening is not None, "the backend wasn't opened"
        async with self._opening:
            if self._closed:
                raise Unavailable("the backend is closed")
            if self._reader is None or self._reader.link.over:
                old, self._reader = self._reader, None
                if old is not None:
                    await self._end(old, Until.after(0.0))
                self._reader = await self._open(_READING_TTL_S, until, pings=True)
            return self._reader.link

    async def _open(self, ttl_s: float, until: Until, *, pings: bool) -> _OpenSession:
        link = ZooKeeperConnection(self._settings, self._access, ttl_s, pings=pings)
        await link.open(until)
        return _OpenSession(
            link, ZooKeeperCommits(link, self._layout, self._queues, self._settings.dice)
        )

    @staticmethod
    async def _end(opened: _OpenSession, until: Until) -> None:
        await opened.commits.aclose()
        await opened.link.close(until)

    async def _read(self, ask: Callable[[ZooKeeperConnection], Awaitable[T]], until: Until) -> T:
        while True:
            link = await self._reading(until)
            with suppress(SessionLost):
                return await self._asked(lambda: ask(link), until)  # noqa: B023 - awaited at once

    @staticmethod
    async def _asked(ask: Callable[[], Awaitable[T]], until: Until) -> T:
        """Run a call; what it can't find out any more is unknown."""
        try:
            return await ask()
        except (Unavailable, SessionLost, ReplyLost) as error:
            if until.lost:
                raise OutcomeUnknown(
                    "the reply is lost, and ZooKeeper didn't tell in time"
                ) from error
            if isinstance(error, ReplyLost):
                raise Unavailable("ZooKeeper didn't answer in time") from error
            raise
        except CoordinationError:
            raise
        except (zk.NoAuthError, zk.InvalidACLError) as error:
            raise AuthFailed(f"ZooKeeper refuses it: {error!r}") from None
        except zk.ZookeeperError as error:
            raise Unavailable(f"ZooKeeper can't do it: {error!r}") from error

    async def _pulse(self) -> None:
        """Ask now and then while there are watches: so dead connections and calm are seen."""
        while True:
            await asyncio.sleep(_PULSE_S)
            if not self._watches:
                continue
            until = self._until()
            with suppress(CoordinationError):
                link = await self._reading(until)
                reached = link.last_zxid
                await link.sync(until)
                self._watches.note_calm(link, reached)
