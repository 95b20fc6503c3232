"""Storage: KIP-30's `fetch`, `put` and `update`, and what it lacks.

Rule: `put` makes a key and `update` changes one; each fails otherwise, as KIP-30 says. Every change
returns its revision, and compare-and-set compares revisions, never values: a value can come back,
a revision can't. A fence makes the store refuse the change unless the grant is still the present
one, in one step with the change.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Literal

from coordination.backend import Commit, Committed, KeyScope, Operation, PrefixScope, Resource
from coordination.calls import SessionCalls
from coordination.errors import ConfigError
from coordination.interpreters import (
    KeyInterpreter,
    KeySetInterpreter,
    PrefixInterpreter,
    renamed,
)
from coordination.transactions import FenceLike, Txn, make_fence
from coordination.types import KeySetEvent, Record, Revision, ValueEvent
from coordination.watches import Watch, Watches


class Storage:
    """The keys of one client's namespace."""

    def __init__(self, calls: SessionCalls, watches: Watches) -> None:
        self._calls = calls
        self._watches = watches

    async def fetch(
        self, key: str, *, consistency: Literal["linearizable", "stale"] = "linearizable"
    ) -> Record | None:
        """Return a key's record, or None. `stale` may answer from a server that lags behind."""
        named = self._calls.key(key)
        stale = consistency == "stale"
        record = await self._calls.call(lambda _: self._calls.backend.get(named, stale=stale))
        return None if record is None else renamed(record, key)

    async def put(
        self,
        key: str,
        data: bytes | str,
        *,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> Revision:
        """Make a key. Raises KeyExists, Fenced.

        `request_id`: the same id again is the same request, which is made once.
        """
        made = self._operation("put", key, data)
        return (await self._change(made, fence, resource, request_id)).revision

    async def update(
        self,
        key: str,
        data: bytes | str,
        *,
        expect: Revision | None = None,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> Revision:
        """Change a key. Raises KeyMissing, RevisionMismatch, Fenced.

        `expect`: the mod revision that the key must have.
        """
        made = self._operation("update", key, data, expect)
        return (await self._change(made, fence, resource, request_id)).revision

    async def upsert(
        self,
        key: str,
        data: bytes | str,
        *,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> Revision:
        """Make or change a key. Raises Fenced."""
        made = self._operation("upsert", key, data)
        return (await self._change(made, fence, resource, request_id)).revision

    async def delete(
        self,
        key: str,
        *,
        expect: Revision | None = None,
        fence: FenceLike | None = None,
        resource: Resource | None = None,
        request_id: str | None = None,
    ) -> bool:
        """Delete a key. False: it wasn't there. Raises RevisionMismatch, Fenced."""
        made = Operation("delete", self._calls.key(key), b"", expect)
        return (await self._change(made, fence, resource, request_id)).applied[0]

    async def list(
        self, namespace: str = "", *, keys_only: bool = False, page: int = 1000
    ) -> AsyncIterator[Record]:
        """Yield the records below a namespace, sorted by the bytes of their keys.

        `keys_only`: values may be empty. `page`: how many are asked for at once.
        """
        if page < 1:
            raise ConfigError(f"a page holds at least one record, not {page}")
        prefix = self._calls.prefix(namespace)
        pages = self._calls.backend.pages(prefix, keys_only=keys_only, page=page)
        while (part := await self._calls.call(lambda _: anext(pages, None))) is not None:
            for record in part.records:
                yield renamed(record, self._calls.own_key(record.key))

    async def snapshot(self, namespace: str = "") -> tuple[Revision, Mapping[str, Record]]:
        """Return all records below a namespace by key, and a revision from which to watch.

        Where lists are atomic, it is the revision that all of them show. Elsewhere a watch from it
        delivers what was missed, and maybe something that is known already.
        """
        revision = None
        records: dict[str, Record] = {}
        pages = self._calls.backend.pages(self._calls.prefix(namespace), keys_only=False, page=1000)
        while (part := await self._calls.call(lambda _: anext(pages, None))) is not None:
            revision = part.revision if revision is None else min(revision, part.revision)
            for record in part.records:
                key = self._calls.own_key(record.key)
                records[key] = renamed(record, key)
        return Revision(0) if revision is None else revision, records

    def txn(self, *, request_id: str | None = None) -> Txn:
        """Begin a transaction: conditions and changes that happen together or not at all."""
        return Txn(self._calls, request_id)

    def watch(
        self, key: str, *, after: Revision | None = None, strict: bool = False
    ) -> Watch[ValueEvent]:
        """Watch one key. The first event is its present state, unless `after` is given."""
        scope = KeyScope(self._calls.key(key))
        return self._watches.open(scope, KeyInterpreter(key), after=after, strict=strict)

    def watch_prefix(
        self,
        namespace: str,
        *,
        after: Revision | None = None,
        recursive: bool = True,
        strict: bool = False,
    ) -> Watch[ValueEvent]:
        """Watch the keys below a namespace: first one event for each that is there."""
        prefix = self._calls.prefix(namespace)
        interpreter = PrefixInterpreter(self._calls.own_key, prefix, recursive=recursive)
        return self._watches.open(PrefixScope(prefix), interpreter, after=after, strict=strict)

    def watch_keys(
        self, namespace: str, *, recursive: bool = False, buffer: int = 1024
    ) -> Watch[KeySetEvent]:
        """Watch which keys a namespace has; a change of a value is no event."""
        prefix = self._calls.prefix(namespace)
        interpreter = KeySetInterpreter(namespace, self._calls.own_key, prefix, recursive=recursive)
        return self._watches.open(PrefixScope(prefix), interpreter, buffer=buffer)

    def watch_latest(self, key: str) -> Watch[ValueEvent]:
        """As `watch`, but of several changes that wait only the last is delivered."""
        scope = KeyScope(self._calls.key(key))
        return self._watches.open(scope, KeyInterpreter(key), buffer=1)

    def _operation(
        self,
        kind: Literal["put", "update", "upsert"],
        key: str,
        data: bytes | str,
        expect: Revision | None = None,
    ) -> Operation:
        return Operation(kind, self._calls.key(key), self._calls.data(data), expect)

    async def _change(
        self,
        operation: Operation,
        fence: FenceLike | None,
        resource: Resource | None,
        request_id: str | None,
    ) -> Committed:
        fences = () if fence is None else (make_fence(self._calls, fence, resource),)
        return await self._calls.call(
            lambda session: self._calls.backend.commit(
                Commit((operation,), (), fences, request_id, session)
            ),
            changes=True,
        )
