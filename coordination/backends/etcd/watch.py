"""A watch on etcd: the state at a revision, then every change after it.

Rule: the state is read at one revision, and the subscription begins at the next one. So nothing is
missed between the two. When etcd has compacted what comes next, the watch reads the state again and
reports it as a `resync`.
"""

import asyncio
from collections import deque
from itertools import groupby
from typing import Final

from coordination.backend import (
    BatchKind,
    KeyScope,
    PrefixScope,
    Resource,
    ResourceEntry,
    ValueChange,
    WatchBatch,
    WatchScope,
)
from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import EtcdGateway, RevisionCompacted
from coordination.backends.etcd.layout import EtcdLayout, queue
from coordination.backends.etcd.subscriptions import (
    DeliveredChanges,
    EtcdSubscriptions,
    Forgotten,
    Refused,
    Subscription,
)
from coordination.errors import AuthFailed, CoordinationError, OutcomeUnknown
from coordination.types import Revision

_PAUSE_S: Final = 0.1


class EtcdWatch:
    """`BackendWatch` over one subscription."""

    def __init__(
        self,
        scope: WatchScope,
        after: Revision | None,
        gateway: EtcdGateway,
        layout: EtcdLayout,
        subscriptions: EtcdSubscriptions,
    ) -> None:
        self._scope = scope
        self._after = after
        self._gateway = gateway
        self._layout = layout
        self._subscriptions = subscriptions
        self._key, self._range_end = _range(scope, layout)
        self._subscription: Subscription | None = None
        self._entries: dict[bytes, ResourceEntry] = {}
        """Of a resource. Changes of keys need no state."""
        self._ready: deque[WatchBatch] = deque()
        self._fresh: BatchKind | None = "snapshot" if after is None else None
        self._closed = False

    def __aiter__(self) -> "EtcdWatch":
        return self

    async def __anext__(self) -> WatchBatch:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            if self._subscription is None:
                await self._begin()
            else:
                await self._take(self._subscription)
        return self._ready.popleft()

    async def aclose(self) -> None:
        """End the watch."""
        self._closed = True
        if self._subscription is not None:
            await self._subscriptions.end(self._subscription)

    async def _begin(self) -> None:
        """Read the state where it is needed, then subscribe."""
        revision = int(self._after or 0)
        if self._fresh is not None:
            reply = await self._load(0)
            revision = reply.header.revision
            self._ready.append(self._whole(self._fresh, reply))
        elif isinstance(self._scope, Resource):
            try:
                self._keep(self._scope, await self._load(revision))
            except RevisionCompacted:
                self._fresh = "resync"
                return
        self._fresh = None
        begun = await self._subscriptions.begin(self._key, self._range_end, revision + 1)
        self._subscription = begun
        if self._closed:
            await self._subscriptions.end(begun)

    async def _load(self, revision: int) -> wire.RangeReply:
        """Read the state at a revision, 0 for now. Waits for a server."""
        request = wire.RangeRequest(key=self._key, range_end=self._range_end, revision=revision)
        while True:
            try:
                return await self._gateway.ask("/v3/kv/range", request, wire.RangeReply)
            except (AuthFailed, RevisionCompacted, OutcomeUnknown):
                raise
            except CoordinationError:
                if self._closed:
                    raise StopAsyncIteration from None
                await asyncio.sleep(_PAUSE_S)

    async def _take(self, subscription: Subscription) -> None:
        message = await self._subscriptions.next(subscription)
        if isinstance(message, DeliveredChanges):
            self._ready.extend(self._batches(message))
        elif isinstance(message, Forgotten):
            self._fresh = "resync"
            self._subscription = None
        elif isinstance(message, Refused):
            self._closed = True
            raise message.error
        else:
            self._closed = True

    def _whole(self, kind: BatchKind, reply: wire.RangeReply) -> WatchBatch:
        """Return all that is there now."""
        revision = reply.header.revision
        if isinstance(self._scope, Resource):
            self._keep(self._scope, reply)
            return self._of_resource(self._scope, kind, revision)
        changes = tuple(
            ValueChange(
                self._layout.key_name(found), self._layout.record(found), Revision(revision)
            )
            for found in reply.kvs
        )
        return WatchBatch(kind, Revision(revision), changes=changes)

    def _of_resource(self, resource: Resource, kind: BatchKind, revision: int) -> WatchBatch:
        entries = queue(resource, self._entries.values(), revision)
        return WatchBatch(kind, Revision(revision), entries=entries)

    def _batches(self, delivery: DeliveredChanges) -> list[WatchBatch]:
        revision = Revision(delivery.revision)
        if not delivery.changes:
            return [WatchBatch("progress", revision)]
        if isinstance(self._scope, Resource):
            # One batch for each revision, so that no state of the resource is left out.
            batches = []
            for changed_at, changes in groupby(delivery.changes, lambda each: each.kv.mod_revision):
                for change in changes:
                    self._apply(self._scope, change)
                batches.append(self._of_resource(self._scope, "changes", changed_at))
            return batches
        return [
            WatchBatch(
                "changes", revision, changes=tuple(self._change(each) for each in delivery.changes)
            )
        ]

    def _keep(self, resource: Resource, reply: wire.RangeReply) -> None:
        self._entries = {found.key: self._layout.waiting(resource, found) for found in reply.kvs}

    def _apply(self, resource: Resource, change: wire.WatchedChange) -> None:
        if change.type == "DELETE":
            self._entries.pop(change.kv.key, None)
        else:
            self._entries[change.kv.key] = self._layout.waiting(resource, change.kv)

    def _change(self, change: wire.WatchedChange) -> ValueChange:
        record = self._layout.record(change.kv) if change.type == "PUT" else None
        return ValueChange(
            self._layout.key_name(change.kv), record, Revision(change.kv.mod_revision)
        )


def _range(scope: WatchScope, layout: EtcdLayout) -> tuple[bytes, bytes]:
    """Return the first key of a scope and the end of its range; no end: the one key."""
    if isinstance(scope, KeyScope):
        return layout.key(scope.key), b""
    start = layout.key(scope.prefix) if isinstance(scope, PrefixScope) else layout.resource(scope)
    return start, wire.prefix_end(start)
