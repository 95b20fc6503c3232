"""Semaphores: a lock for up to so many holders; first come, first served.

Rule: a semaphore is a lock's queue of shared entries, of which only the first `permits` count as
granted. An entry moves only forward, so whoever is among the first stays there until it leaves.
Therefore the store's fence, "this entry is still there", is enough for a semaphore's grant too.

Each entry names its `permits`. If clients disagree, an entry heeds the smallest number that it or
an entry before it names. So nobody ever holds together with more than its own number allows.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coordination.backend import Resource, ResourceEntries, ResourceEntry
from coordination.claims import Claims
from coordination.errors import ConfigError, DeadlineExceeded
from coordination.locks import Grant
from coordination.types import Member


class Semaphore:
    """Up to `permits` holders at once. Only clients that use the same name as a semaphore count.

    A lock of the same name shares the queue: while somebody holds the lock, nobody gets a permit,
    and the other way round.
    """

    def __init__(self, name: str, permits: int, claims: Claims) -> None:
        """Raises ConfigError, InvalidKey."""
        if permits < 1:
            raise ConfigError(f"a semaphore has at least one permit, not {permits}")
        self.name = name
        self.permits = permits
        self._claims = claims
        self._calls = claims.calls
        self._key = self._calls.resource("lock", name)

    @property
    def resource(self) -> Resource:
        """What `fence=` with a bare token names as `resource=`."""
        return Resource("lock", self.name)

    @asynccontextmanager
    async def __call__(self, *, timeout: float | None = None) -> AsyncIterator[Grant]:
        """Wait for a permit and hold it within the body.

        The body is cancelled when the grant ends, and SessionLost (or NotHeld) is raised then.
        `timeout`: None waits without end, 0 takes only a free permit. Raises DeadlineExceeded,
        SessionLost.
        """
        grant = await self.acquire(timeout=timeout)
        async with grant.within(grant.drop):
            yield grant

    async def acquire(self, *, timeout: float | None = None) -> Grant:
        """As the call, without a body: the caller releases the grant and heeds `grant.lost`.

        A task may hold several permits. A task that waits for more than there are waits for itself.
        """
        id_ = f"{self._calls.dice.getrandbits(96):024x}"
        return await self._claims.win(
            lambda resource, entry, session: Grant(resource, entry, session, self._claims),
            self._key,
            id_,
            str(self.permits).encode(),
            shared=True,
            timeout_s=timeout,
            admits=admits,
        )

    async def try_acquire(self) -> Grant | None:
        """Take a permit if one is free."""
        try:
            return await self.acquire(timeout=0)
        except DeadlineExceeded:
            return None

    async def holders(self) -> Sequence[Member]:
        """Return who holds a permit, in the order in which they got it."""
        state = await self._calls.call(lambda _: self._calls.backend.entries(self._key))
        held = [entry for entry in state.entries if admits(state, entry)]
        return tuple(Member(e.id, e.data, e.token, e.session) for e in held)

    async def break_(self) -> bool:
        """Take all permits away, as an administrator. False: nobody held any.

        Those who wait for a permit get NotHeld.
        """
        return await self._calls.call(
            lambda _: self._calls.backend.break_grant(self._key), changes=True
        )


def admits(state: ResourceEntries, entry: ResourceEntry) -> bool:
    """Whether an entry of the state has a permit, by its place in the queue."""
    if not entry.granted:
        return False
    place = next(i for i, other in enumerate(state.entries, 1) if other.token == entry.token)
    named = [permits_of(other) for other in state.entries[:place]]
    return all(permits is None or place <= permits for permits in named)


def permits_of(entry: ResourceEntry) -> int | None:
    """Return how many permits an entry names; None for a lock's."""
    return int(entry.data) if entry.data.isdigit() else None
