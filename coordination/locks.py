"""Locks: one holder, or any number of shared ones; first come, first served.

Rule: a lock is advisory. Its holder may be paused beyond its session without knowing it, so a
write that must not come late carries the grant as its fence (`fence=grant`), and the store refuses
it. Locks are not re-entrant: a task that holds a lock and asks for it again gets NotSupported.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coordination.backend import Resource, ResourceEntry
from coordination.claims import Claims
from coordination.errors import DeadlineExceeded, NotSupported
from coordination.holding import HeldGrant
from coordination.session import Session
from coordination.types import Member


class Grant(HeldGrant):
    """A lock that is held, or a permit of a semaphore."""

    def __init__(
        self, resource: Resource, entry: ResourceEntry, session: Session, claims: Claims
    ) -> None:
        super().__init__(resource, entry, session)
        self.shared = entry.shared
        self._claims = claims

    async def drop(self) -> None:
        """Release it whatever happens; if the store doesn't answer, in the background."""
        await self._claims.drop(self)

    async def release(self) -> bool:
        """Give it back. False: it wasn't held any more, and nothing was done."""
        if self.signal.over.is_set():
            return False
        return await self._claims.give_back(self)


class Lock:
    """One lock. `coordinator.lock(name)` returns the same object for the same name."""

    def __init__(self, name: str, claims: Claims) -> None:
        self.name = name
        self._claims = claims
        self._calls = claims.calls
        self._key = self._calls.resource("lock", name)
        self._holders: dict[asyncio.Task[object], Grant] = {}

    @property
    def resource(self) -> Resource:
        """What `fence=` with a bare token names as `resource=`."""
        return Resource("lock", self.name)

    @asynccontextmanager
    async def __call__(
        self, *, timeout: float | None = None, shared: bool = False
    ) -> AsyncIterator[Grant]:
        """Wait for the lock and hold it within the body.

        The body is cancelled when the grant ends, and SessionLost (or NotHeld) is raised then.
        `timeout`: None waits without end, 0 takes only a free lock. Raises DeadlineExceeded,
        SessionLost, NotSupported.
        """
        grant = await self._acquire(timeout, shared=shared)
        async with grant.within(grant.drop):
            yield grant

    async def acquire(self, *, timeout: float | None = None, shared: bool = False) -> Grant:
        """As the call, without a body: the caller releases the grant and heeds `grant.lost`."""
        return await self._acquire(timeout, shared=shared)

    async def try_acquire(self, *, shared: bool = False) -> Grant | None:
        """Take the lock if it is free."""
        try:
            return await self._acquire(0, shared=shared)
        except DeadlineExceeded:
            return None

    async def holder(self) -> Member | None:
        """Return who holds the lock; of several shared holders, the first."""
        state = await self._calls.call(lambda _: self._calls.backend.entries(self._key))
        held = next((e for e in state.entries if e.granted), None)
        return None if held is None else Member(held.id, held.data, held.token, held.session)

    async def break_(self) -> bool:
        """Take the lock from whoever holds it, as an administrator. False: nobody did."""
        return await self._calls.call(
            lambda _: self._calls.backend.break_grant(self._key), changes=True
        )

    async def _acquire(self, timeout_s: float | None, *, shared: bool) -> Grant:
        task = asyncio.current_task()
        assert task is not None, "a lock is acquired by a task"
        held = self._holders.get(task)
        if held is not None and held.held:
            raise NotSupported(
                f"this task holds the lock {self.name!r} already, and locks are not re-entrant",
                capability="reentrant_locks",
            )
        # One attempt, one id: so several tasks of one session queue up like strangers.
        id_ = f"{self._calls.dice.getrandbits(96):024x}"
        grant = await self._claims.win(
            self._grant, self._key, id_, b"", shared=shared, timeout_s=timeout_s
        )
        self._holders[task] = grant
        grant.signal.on_end(lambda: self._forget(task, grant))
        return grant

    def _grant(self, resource: Resource, entry: ResourceEntry, session: Session) -> Grant:
        return Grant(resource, entry, session, self._claims)

    def _forget(self, task: asyncio.Task[object], grant: Grant) -> None:
        if self._holders.get(task) is grant:
            del self._holders[task]
