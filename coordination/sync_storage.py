"""`Storage` and watches for threads: each call waits for its result.

Rule: as `sync`, whose part this is.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Generic, Literal, TypeVar

from coordination.backend import Resource
from coordination.loop_thread import LoopThread
from coordination.storage import Storage
from coordination.transactions import FenceLike, Txn
from coordination.types import KeySetEvent, Record, Revision, ValueEvent
from coordination.watches import Watch

T = TypeVar("T")


class SyncWatch(Generic[T]):
    """`Watch` for threads: an iterator of events within a `with`."""

    def __init__(self, thread: LoopThread, begin: Callable[[], Watch[T]]) -> None:
        """`begin` is called on the loop's thread."""
        self._thread = thread
        self._watch = thread.call(begin)

    @property
    def revision(self) -> Revision:
        """Of the last event delivered; give it as `after=` to go on behind it."""
        return self._watch.revision

    def resync(self) -> T:
        """Read the whole state afresh, and return the next event, which is of kind `resync`."""
        return self._thread.run(self._watch.resync())

    def __enter__(self) -> "SyncWatch[T]":
        self._thread.run(self._watch.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.run(self._watch.aclose())

    def __iter__(self) -> Iterator[T]:
        return each(self._watch, self._thread)

    def __next__(self) -> T:
        return next(iter(self))


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

    def watch(
        self, key: str, *, after: Revision | None = None, strict: bool = False
    ) -> SyncWatch[ValueEvent]:
        """Watch one key."""
        begin = self._storage.watch
        return SyncWatch(self._thread, lambda: begin(key, after=after, strict=strict))

    def watch_prefix(
        self,
        namespace: str,
        *,
        after: Revision | None = None,
        recursive: bool = True,
        strict: bool = False,
    ) -> SyncWatch[ValueEvent]:
        """Watch the keys below a namespace."""
        begin = self._storage.watch_prefix
        return SyncWatch(
            self._thread,
            lambda: begin(namespace, after=after, recursive=recursive, strict=strict),
        )

    def watch_keys(self, namespace: str, *, recursive: bool = False) -> SyncWatch[KeySetEvent]:
        """Watch which keys a namespace has; a change of a value is no event."""
        begin = self._storage.watch_keys
        return SyncWatch(self._thread, lambda: begin(namespace, recursive=recursive))


def each(items: AsyncIterator[T], thread: LoopThread) -> Iterator[T]:
    """Iterate over an asynchronous iterator; each step waits for the next item."""

    async def following() -> tuple[T] | None:
        try:
            return (await anext(items),)
        except StopAsyncIteration:
            return None

    while (item := thread.run(following())) is not None:
        yield item[0]
