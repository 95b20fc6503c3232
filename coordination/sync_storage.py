"""`Storage` and watches for threads: each call waits for its result.

Rule: as `sync`, whose part this is.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeVar

from coordination.backend import Resource
from coordination.loop_thread import LoopThread
from coordination.storage import Storage
from coordination.transactions import FenceLike, Txn
from coordination.types import Record, Revision, ValueEvent
from coordination.watches import Watch

T = TypeVar("T")


class SyncStorage:
    """`Storage` for threads."""

    def __init__(self, storage: Storage, thread: LoopThread) -> None:
        self._storage = storage
        self._thread = thread

    def fetch(
        self, key: str, *, consistency: Literal["linearizable", "stale"] = "linearizable"
    ) -> Record | None:
        """Return a key's record, or None."""
        return self._thread.run(self._storage.fetch(key, consistency=consistency))

    def put(
        self,
        key: str,
        data: bytes | str,
        *,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> Revision:
        """Make a key. Raises KeyExists, Fenced."""
        return self._thread.run(
            self._storage.put(key, data, fence=fence, resource=resource, request_id=request_id)
        )

    def update(
        self,
        key: str,
        data: bytes | str,
        *,
        expect: Revision | None = None,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> Revision:
        """Change a key. Raises KeyMissing, RevisionMismatch, Fenced."""
        return self._thread.run(
            self._storage.update(
                key, data, expect=expect, fence=fence, resource=resource, request_id=request_id
            )
        )

    def upsert(
        self,
        key: str,
        data: bytes | str,
        *,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> Revision:
        """Make or change a key. Raises Fenced."""
        return self._thread.run(
            self._storage.upsert(key, data, fence=fence, resource=resource, request_id=request_id)
        )

    def delete(
        self,
        key: str,
        *,
        expect: Revision | None = None,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> bool:
        """Delete a key. False: it wasn't there. Raises RevisionMismatch, Fenced."""
        return self._thread.run(
            self._storage.delete(
                key, expect=expect, fence=fence, resource=resource, request_id=request_id
            )
        )

    def list(
        self, namespace: str = "", *, keys_only: bool = False, page: int = 1000
    ) -> Iterator[Record]:
        """Yield the records below a namespace, sorted by the bytes of their keys."""
        return each(self._storage.list(namespace, keys_only=keys_only, page=page), self._thread)

    def snapshot(self, namespace: str = "") -> tuple[Revision, Mapping[str, Record]]:
        """Return all records below a namespace by key, and a revision from which to watch."""
        return self._thread.run(self._storage.snapshot(namespace))

    def txn(self, *, request_id: str | None = None) -> Txn:
        """Begin a transaction; give it to `commit`."""
        return self._storage.txn(request_id=request_id)

    def commit(self, txn: Txn) -> Revision:
        """Make all changes of a transaction, or none."""
        return self._thread.run(txn.commit())

    @contextmanager
    def watch(self, key: str, *, after: Revision | None = None) -> Iterator[Iterator[ValueEvent]]:
        """Watch one key: an iterator of events within a `with`."""
        watch = self._thread.call(lambda: self._storage.watch(key, after=after))
        with watching(watch, self._thread) as events:
            yield events

    @contextmanager
    def watch_prefix(
        self, namespace: str, *, after: Revision | None = None, recursive: bool = True
    ) -> Iterator[Iterator[ValueEvent]]:
        """Watch the keys below a namespace: an iterator of events within a `with`."""
        watch = self._thread.call(
            lambda: self._storage.watch_prefix(namespace, after=after, recursive=recursive)
        )
        with watching(watch, self._thread) as events:
            yield events


@contextmanager
def watching(watch: Watch[T], thread: LoopThread) -> Iterator[Iterator[T]]:
    """Begin a watch, hand out its events, and free the server's side at the end."""
    thread.run(watch.__aenter__())
    try:
        yield each(watch, thread)
    finally:
        thread.run(watch.aclose())


def each(items: AsyncIterator[T], thread: LoopThread) -> Iterator[T]:
    """Iterate over an asynchronous iterator; each step waits for the next item."""

    async def following() -> tuple[T] | None:
        try:
            return (await anext(items),)
        except StopAsyncIteration:
            return None

    while (item := thread.run(following())) is not None:
        yield item[0]
