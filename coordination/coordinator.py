"""A client of one store: its session, and what it does with it.

Rule: nothing comes back by itself after a loss. The session object stays LOST, and its grants stay
lost; `reopen` begins another session. Only memberships that asked for `rejoin=True` join again.

Closing ends the bodies that hold something, then the session on the server, then the connection.
It takes at most a few times the request time-out, also when no server answers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from weakref import WeakValueDictionary

from coordination.backend import Backend
from coordination.calls import SessionCalls
from coordination.claims import Claims
from coordination.election import LeaderElectionClient
from coordination.errors import ConfigError, CoordinationError, SessionLost
from coordination.following import ResourceFollowers
from coordination.listeners import Listeners, OnError
from coordination.locks import Lock
from coordination.membership import GroupMembershipClient
from coordination.registry import ListenerRegistry
from coordination.scopes import sleep
from coordination.semaphores import Semaphore
from coordination.session import Session
from coordination.storage import Storage
from coordination.types import Capabilities, SessionState
from coordination.watches import Watches

OpenSession = Callable[[], Awaitable[Session]]
AGAIN_S = 0.5
"""Pause between attempts to join again."""


class Coordinator:
    """What `connect` gives: KIP-30's four interfaces, and locks."""

    def __init__(
        self, calls: SessionCalls, open_session: OpenSession, on_error: OnError | None
    ) -> None:
        self._calls = calls
        self._open_session = open_session
        self._watches = Watches(calls.backend, calls.request_timeout_s, calls.log)
        self._followers = ResourceFollowers(calls.backend, calls.log)
        self._claims = Claims(calls, self._followers)
        self._listeners = Listeners(calls.clock, on_error, calls.log)
        self.storage = Storage(calls, self._watches)
        self.listeners = ListenerRegistry(self.storage, self._listeners)
        self._groups: dict[str, GroupMembershipClient] = {}
        self._elections: dict[str, LeaderElectionClient] = {}
        self._locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self._closing: asyncio.Task[None] | None = None
        self._rejoining = asyncio.create_task(self._rejoin(), name="rejoin")

    @property
    def backend(self) -> Backend:
        """The connection below; its interface is for backends, and may change."""
        return self._calls.backend

    @property
    def capabilities(self) -> Capabilities:
        """What the store offers."""
        return self._calls.backend.capabilities

    @property
    def session(self) -> Session:
        """The present session."""
        return self._calls.session

    def group(self, name: str) -> GroupMembershipClient:
        """Return a group's client, the same one for the same name. Raises InvalidKey."""
        if name not in self._groups:
            self._groups[name] = GroupMembershipClient(
                name, self._calls, self._watches, self._listeners
            )
        return self._groups[name]

    def election(self, service: str) -> LeaderElectionClient:
        """Return an election's client, the same one for the same service. Raises InvalidKey."""
        if service not in self._elections:
            self._elections[service] = LeaderElectionClient(
                service, self._claims, self._watches, self._listeners
            )
        return self._elections[service]

    def lock(self, name: str) -> Lock:
        """Return a lock, the same one for the same name as long as it is used."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = Lock(name, self._claims)
        return lock

    def semaphore(self, name: str, permits: int) -> Semaphore:
        """Return a semaphore: a lock for up to `permits` holders. Raises InvalidKey, ConfigError.

        All clients name the same number; while they don't, the smaller one counts.
        """
        return Semaphore(name, permits, self._claims)

    async def reopen(self) -> Session:
        """Begin a new session after a loss. Nothing of the old one comes back.

        Raises ConfigError while the present session lives, SessionClosed after `aclose`.
        """
        state = self.session.state
        if state is SessionState.CLOSED or self._closing is not None:
            self.session.check()
        if state is not SessionState.LOST:
            raise ConfigError(f"the session is {state.value}; only a lost one is replaced")
        self._calls.session = await self._open_session()
        return self.session

    async def aclose(self) -> None:
        """Leave, resign, release and end the session; a second call waits for the first."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close")
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> "Coordinator":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _close(self) -> None:
        self._rejoining.cancel()
        await asyncio.gather(self._rejoining, return_exceptions=True)
        self.session.stop()
        await self._listeners.aclose()
        await self._watches.aclose()
        await self._claims.aclose()
        await self._followers.aclose()
        await self.session.close()
        await self._calls.backend.aclose()

    async def _rejoin(self) -> None:
        while True:
            session = self.session
            await session.wait_lost()
            while self.session is session:
                if any(group.rejoins for group in self._groups.values()):
                    await self._try_rejoin()
                else:
                    # A join with rejoin=True can't come before another session.
                    await sleep(self._calls.clock, AGAIN_S)

    async def _try_rejoin(self) -> None:
        """Begin a session and join again; what fails is tried again as long as it lives."""
        try:
            session = await self.reopen()
        except CoordinationError as error:
            self._calls.log.warning("coordination_reopen_failed", error=str(error))
            await sleep(self._calls.clock, AGAIN_S)
            return
        waiting = [group for group in self._groups.values() if group.rejoins]
        while waiting:
            try:
                await waiting[0].rejoin()
                waiting.pop(0)
            except SessionLost:
                return
            except CoordinationError as error:
                self._calls.log.warning(
                    "coordination_rejoin_failed", group=waiting[0].group, error=str(error)
                )
                session.check()
                await sleep(self._calls.clock, AGAIN_S)
