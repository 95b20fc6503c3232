"""Watches by polling: one poll for each scope, which all watches of that scope share.

Rule: a poll that fails is tried again until the watch is closed; no error ends it but refused
credentials. Each watch compares the present state with the one that it reported last. A new watch
waits for a reading that began after it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, Generic

from coordination.backend import KeyScope, PrefixScope, WatchBatch, WatchScope
from coordination.backends.cassandra.queues import CassandraQueues
from coordination.backends.cassandra.spaces import CassandraSpaces
from coordination.backends.cassandra.storage import CassandraStorage
from coordination.backends.cassandra.views import (
    CassandraKeysView,
    CassandraQueueView,
    CassandraView,
    S,
)
from coordination.errors import AuthFailed, CoordinationError
from coordination.types import Revision
from coordination.until import Until

_PROGRESS_S: Final = 2.0


class CassandraPoll(Generic[S]):
    """The state of one scope, as the last poll found it."""

    def __init__(self, view: CassandraView[S], poll_s: float, timeout_s: float) -> None:
        self.view = view
        self._poll_s = poll_s
        self._timeout_s = timeout_s
        self._asked = 0
        self._served = 0
        self._wake = asyncio.Event()
        self._epoch = -1
        self._bells: set[asyncio.Event] = set()
        self._task = asyncio.ensure_future(self._run())
        self.state: S | None = None
        self.failure: CoordinationError | None = None
        self.polls = 0

    @property
    def watched(self) -> bool:
        return bool(self._bells)

    def subscribe(self) -> asyncio.Event:
        """An event that is set after each poll."""
        bell = asyncio.Event()
        self._bells.add(bell)
        return bell

    def unsubscribe(self, bell: asyncio.Event) -> None:
        self._bells.discard(bell)

    def ask(self) -> int:
        """Ask for a reading that begins after now; `has_served` says when it is there."""
        self._asked += 1
        self._wake.set()
        return self._asked

    def wake(self) -> None:
        """This client has changed something: don't wait for the next poll."""
        self._wake.set()

    def has_served(self, number: int) -> bool:
        return self._served >= number

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._poll()
            except AuthFailed as error:
                self.failure = error
            except (CoordinationError, TimeoutError):
                # The store can't be reached now; the next poll tries again.
                await asyncio.sleep(self._poll_s)
                continue
            for bell in self._bells:
                bell.set()
            try:
                async with asyncio.timeout(self._poll_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _poll(self) -> None:
        self._wake.clear()
        asked = self._asked
        until = Until.after(self._timeout_s)
        epoch = await self.view.epoch(until)
        if epoch != self._epoch or asked > self._served:
            self.state = await self.view.read(until)
            self._epoch = epoch
        self._served = asked
        self.polls += 1


class CassandraWatch(Generic[S]):
    """One watch: `coordination.backend.BackendWatch`."""

    def __init__(
        self,
        poll: CassandraPoll[S],
        after: Revision | None,
        progress_every: int,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        self._poll = poll
        self._after = after
        self._progress_every = progress_every
        self._on_close = closed
        self._bell = poll.subscribe()
        self._asked = poll.ask()
        self._reported: S | None = None
        self._revision = Revision(0) if after is None else after
        self._polls = poll.polls
        self._open = True

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        while self._open:
            await self._bell.wait()
            self._bell.clear()
            if self._poll.failure is not None:
                raise self._poll.failure
            batch = self._next() if self._open else None
            if batch is not None:
                self._polls = self._poll.polls
                self._revision = Revision(max(self._revision, batch.revision))
                return replace(batch, revision=self._revision)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self._poll.unsubscribe(self._bell)
            self._bell.set()
            await self._on_close()

    def _next(self) -> WatchBatch | None:
        state = self._poll.state
        if state is None or not self._poll.has_served(self._asked):
            return None
        old, self._reported = self._reported, state
        view = self._poll.view
        if old is None:
            batch = view.whole(state) if self._after is None else view.since(self._after, state)
        else:
            batch = view.difference(old, state)
        if batch is None and self._poll.polls - self._polls >= self._progress_every:
            return WatchBatch("progress", view.whole(state).revision)
        return batch


class CassandraWatches:
    """All watches of one backend."""

    def __init__(
        self,
        spaces: CassandraSpaces,
        queues: CassandraQueues,
        storage: CassandraStorage,
        poll_s: float,
        timeout_s: float,
    ) -> None:
        self._spaces = spaces
        self._queues = queues
        self._storage = storage
        self._poll_s = poll_s
        self._timeout_s = timeout_s
        self._polls: dict[WatchScope, CassandraPoll[Any]] = {}
        spaces.on_change = self._wake

    def watch(self, scope: WatchScope, after: Revision | None) -> CassandraWatch[Any]:
        poll = self._polls.get(scope)
        if poll is None:
            poll = CassandraPoll(self._view(scope), self._poll_s, self._timeout_s)
            self._polls[scope] = poll

        async def closed() -> None:
            if not poll.watched and self._polls.get(scope) is poll:
                del self._polls[scope]
                await poll.aclose()

        return CassandraWatch(poll, after, round(_PROGRESS_S / self._poll_s) or 1, closed)

    def _wake(self, space: str) -> None:
        for poll in self._polls.values():
            if poll.view.is_in(space):
                poll.wake()

    async def aclose(self) -> None:
        polls, self._polls = list(self._polls.values()), {}
        for poll in polls:
            await poll.aclose()

    def _view(self, scope: WatchScope) -> CassandraView[Any]:
        if isinstance(scope, KeyScope):
            return CassandraKeysView(self._spaces, self._storage, scope.key, prefix=False)
        if isinstance(scope, PrefixScope):
            return CassandraKeysView(self._spaces, self._storage, scope.prefix, prefix=True)
        return CassandraQueueView(self._spaces, self._queues, scope)
