"""The present state of a resource, for all in this client who wait for it or hold something in it.

Rule: one watch of the backend a resource, however many tasks follow it. It begins with the first
follower and ends with the last.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from structlog.typing import FilteringBoundLogger

from coordination.backend import Backend, Resource, ResourceEntries, ResourceEntry
from coordination.errors import CoordinationError, Unavailable
from coordination.types import SessionId


def find_entry(state: ResourceEntries, id_: str, session: SessionId) -> ResourceEntry | None:
    """Return this session's entry with the id."""
    return next((e for e in state.entries if e.id == id_ and e.session == session), None)


class ResourceFollower:
    """Knows the newest state of one resource that the backend reported."""

    def __init__(self, backend: Backend, resource: Resource, log: FilteringBoundLogger) -> None:
        self.state: ResourceEntries | None = None
        self.followers = 0
        self._backend = backend
        self._resource = resource
        self._log = log
        self._error: CoordinationError | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._callbacks: list[Callable[[], None]] = []
        self._pump = asyncio.create_task(self._follow(), name=f"watch of {resource}")

    async def changed(self) -> None:
        """Return when the state has changed. Raises what ended the watch."""
        if self._error is not None:
            raise type(self._error)(str(self._error))
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
        if self._error is not None:
            raise type(self._error)(str(self._error))

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after each change."""
        self._callbacks.append(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        """Don't call back any more."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    async def aclose(self) -> None:
        """End the watch."""
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)

    async def _follow(self) -> None:
        watch = self._backend.watch(self._resource, None)
        try:
            async for batch in watch:
                if batch.entries is not None:
                    self.state = batch.entries
                    self._tell()
            self._error = Unavailable(f"the watch of {self._resource} ended")
        except CoordinationError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._log.error(
                "coordination_watch_failed", resource=str(self._resource), error=repr(error)
            )
            self._error = Unavailable(f"the watch of {self._resource} failed: {error!r}")
        finally:
            await watch.aclose()
        self._tell()

    def _tell(self) -> None:
        for callback in list(self._callbacks):
            callback()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class ResourceFollowers:
    """The followers of one client, by resource."""

    def __init__(self, backend: Backend, log: FilteringBoundLogger) -> None:
        self._backend = backend
        self._log = log
        self._followers: dict[Resource, ResourceFollower] = {}

    def begin(self, resource: Resource) -> ResourceFollower:
        """Follow a resource; each call needs one of `end`."""
        follower = self._followers.get(resource)
        if follower is None:
            follower = ResourceFollower(self._backend, resource, self._log)
            self._followers[resource] = follower
        follower.followers += 1
        return follower

    async def end(self, resource: Resource, follower: ResourceFollower) -> None:
        """Stop following."""
        follower.followers -= 1
        if follower.followers == 0:
            if self._followers.get(resource) is follower:
                del self._followers[resource]
            await follower.aclose()

    @asynccontextmanager
    async def following(self, resource: Resource) -> AsyncIterator[ResourceFollower]:
        """Follow a resource within an `async with`."""
        follower = self.begin(resource)
        try:
            yield follower
        finally:
            await self.end(resource, follower)

    async def aclose(self) -> None:
        """End all watches."""
        followers, self._followers = list(self._followers.values()), {}
        for follower in followers:
            await follower.aclose()
