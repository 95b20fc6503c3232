"""A client's connection to a store in memory: the reference of the backend's interface.

Rule: each call yields to the event loop once, as a call over a network does, so tests meet the same
interleavings. The store's sessions expire on the clock of whichever client looks first.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from coordination.backend import (
    Claim,
    Commit,
    Committed,
    KeyScope,
    OpenedSession,
    RecordPage,
    Resource,
    ResourceEntries,
    ResourceEntry,
    ValueChange,
    WatchBatch,
    WatchScope,
)
from coordination.backends.memory.store import MemoryStore
from coordination.errors import Unavailable
from coordination.types import Capabilities, Record, Revision, SessionId, Token
from runtime.clock import Clock, Timer

LOOK_S: Final = 0.25
"""How often a client looks for sessions that are due, at least."""
PROGRESS_S: Final = 1.0
"""How often a watch says up to where nothing happened, at most."""
CAPABILITIES: Final = Capabilities(
    history=True,
    txn=True,
    txn_scope="store",
    atomic_list=True,
    push_watch=True,
    min_ttl_s=0.05,
    max_ttl_s=86_400.0,
    ttl_resolution_s=0.001,
    max_value_bytes=1 << 20,
    max_key_bytes=1024,
    max_txn_operations=128,
    fencing_scope="store",
    linearizable_reads=True,
    leader_failover=False,
    expiry_slack_s=LOOK_S,
)


class MemoryBackend:
    """`coordination.backend.Backend` over a store in this process."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self._closed = True
        self._progress_due_s = 0.0
        self._timer: Timer | None = None
        self._watches: set[MemoryWatch] = set()

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self) -> None:
        self._closed = False
        self._look()

    async def aclose(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for watch in list(self._watches):
            await watch.aclose()

    async def open_session(self, ttl_s: float) -> OpenedSession:
        await self._arrive()
        with self.store.lock:
            id_, epoch = self.store.open_session(ttl_s, self._clock.monotonic())
        self._look()
        return OpenedSession(id_, ttl_s, epoch)

    async def renew(self, session: SessionId) -> float:
        await self._arrive()
        with self.store.lock:
            return self.store.renew(session, self._clock.monotonic())

    async def end_session(self, session: SessionId) -> None:
        await self._arrive()
        with self.store.lock:
            self.store.end_session(session)

    async def enter(self, claim: Claim) -> ResourceEntry:
        await self._arrive()
        with self.store.lock:
            return self.store.enter(claim)

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        await self._arrive()
        with self.store.lock:
            return self.store.change(resource, id_, session, data)

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        await self._arrive()
        with self.store.lock:
            return self.store.leave(resource, id_, session, token)

    async def break_grant(self, resource: Resource) -> bool:
        await self._arrive()
        with self.store.lock:
            return self.store.break_grant(resource)

    async def entries(self, resource: Resource) -> ResourceEntries:
        await self._arrive()
        with self.store.lock:
            return self.store.entries(resource)

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        await self._arrive()
        with self.store.lock:
            return self.store.keys.get(key)

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        await self._arrive()
        with self.store.lock:
            revision = self.store.revision
            found = [record for key, record in self.store.keys.items() if key.startswith(prefix)]
        found.sort(key=lambda record: record.key.encode())
        for start in range(0, max(len(found), 1), page):
            yield RecordPage(revision, tuple(found[start : start + page]))

    async def commit(self, commit: Commit) -> Committed:
        await self._arrive()
        with self.store.lock:
            return self.store.commit(commit)

    def watch(self, scope: WatchScope, after: Revision | None) -> "MemoryWatch":
        watch = MemoryWatch(self.store, scope, after, self._watches.discard)
        self._watches.add(watch)
        return watch

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if self._closed:
            raise Unavailable("the connection is closed")
        with self.store.lock:
            self.store.expire(self._clock.monotonic())

    def _look(self) -> None:
        """Expire what is due, and come again."""
        if self._timer is not None:
            self._timer.cancel()
        if self._closed:
            return
        now_s = self._clock.monotonic()
        with self.store.lock:
            due_s = self.store.expire(now_s)
            revision = self.store.revision
        if now_s >= self._progress_due_s:
            self._progress_due_s = now_s + PROGRESS_S
            for watch in self._watches:
                watch.progress(revision)
        wait_s = LOOK_S if due_s is None else min(LOOK_S, max(due_s - now_s, 0.001))
        self._timer = self._clock.call_later(wait_s, self._look)


class MemoryWatch:
    """`coordination.backend.BackendWatch` on a store in this process."""

    def __init__(
        self,
        store: MemoryStore,
        scope: WatchScope,
        after: Revision | None,
        closed: Callable[["MemoryWatch"], None],
    ) -> None:
        self._store = store
        self._scope = scope
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._batches: asyncio.Queue[WatchBatch | None] = asyncio.Queue()
        self._over = False
        with store.lock:
            store.subscribe(scope, self._changed)
            first = self._first(after)
        if first is not None:
            self._batches.put_nowait(first)

    def __aiter__(self) -> "MemoryWatch":
        return self

    async def __anext__(self) -> WatchBatch:
        batch = None if self._over else await self._batches.get()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def aclose(self) -> None:
        if not self._over:
            self._over = True
            with self._store.lock:
                self._store.unsubscribe(self._scope, self._changed)
            self._batches.put_nowait(None)
            self._closed(self)

    def progress(self, revision: Revision) -> None:
        """Say up to where nothing happened that was not reported."""
        self._put(WatchBatch("progress", revision))

    def _first(self, after: Revision | None) -> WatchBatch | None:
        revision = self._store.revision
        if isinstance(self._scope, Resource):
            if after is not None and self._store.changed(self._scope) <= after:
                return None
            kind = "snapshot" if after is None else "changes"
            entries = self._store.entries(self._scope)
            return WatchBatch(
                "snapshot" if kind == "snapshot" else "changes", revision, entries=entries
            )
        since = () if after is None else self._store.since(after)
        if after is None or since is None:
            state = tuple(
                ValueChange(record.key, record, record.mod_revision)
                for record in self._store.read(self._scope)
            )
            return WatchBatch("snapshot" if after is None else "resync", revision, changes=state)
        missed = tuple(change for change in since if self._covers(change.key))
        return WatchBatch("changes", revision, changes=missed) if missed else None

    def _covers(self, key: str) -> bool:
        if isinstance(self._scope, Resource):
            return False
        if isinstance(self._scope, KeyScope):
            return key == self._scope.key
        return key.startswith(self._scope.prefix)

    def _changed(
        self, revision: Revision, changes: tuple[ValueChange, ...], resource: Resource | None
    ) -> None:
        """Called by the store, on any thread."""
        if resource is not None:
            entries = self._store.entries(resource)
            self._put(WatchBatch("changes", revision, entries=entries))
            return
        covered = tuple(change for change in changes if self._covers(change.key))
        if covered:
            self._put(WatchBatch("changes", revision, changes=covered))

    def _put(self, batch: WatchBatch) -> None:
        try:
            self._loop.call_soon_threadsafe(self._batches.put_nowait, batch)
        except RuntimeError:
            # The loop of a client that was killed is closed; nobody reads this watch any more.
            self._store.unsubscribe(self._scope, self._changed)
