"""A watch on Consul: the state now, then the difference to each later state.

Rule: Consul keeps no history, so every batch is `coalesced`: changes between two states may be
missing, the last one never is. A watch that begins after a revision reports a `resync`, with all
that is there, if the place has changed since.
"""

import asyncio
from typing import Final

from coordination.backend import (
    BatchKind,
    KeyScope,
    PrefixScope,
    Resource,
    ValueChange,
    WatchBatch,
    WatchScope,
)
from coordination.backends.consul.gateway import FoundKeys
from coordination.backends.consul.layout import ConsulLayout
from coordination.backends.consul.messages import ConsulKey
from coordination.backends.consul.polls import ConsulPolls, WatchedPlace
from coordination.errors import AuthFailed, CoordinationError
from coordination.types import Revision

_PAUSE_S: Final = 0.1


class ConsulWatch:
    """`BackendWatch` over the states of one place."""

    def __init__(
        self,
        scope: WatchScope,
        after: Revision | None,
        layout: ConsulLayout,
        polls: ConsulPolls,
    ) -> None:
        self._scope = scope
        self._after = after
        self._layout = layout
        self._polls = polls
        self._key = _place(scope, layout)
        self._place: WatchedPlace | None = None
        self._turn = 0
        self._known: dict[str, ConsulKey] | None = None
        """What was reported; None: nothing yet."""
        self._index = 0
        self._gaps = 0
        self._closed = asyncio.Event()

    def __aiter__(self) -> "ConsulWatch":
        return self

    async def __anext__(self) -> WatchBatch:
        while not self._closed.is_set():
            if self._known is None:
                batch = await self._first()
            else:
                batch = await self._next()
            if batch is not None:
                return batch
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the watch."""
        if not self._closed.is_set():
            self._closed.set()
            if self._place is not None:
                self._polls.end(self._place)

    async def _first(self) -> WatchBatch | None:
        """Report the state, read freshly: that of the shared query may be a moment old."""
        found = await self._read()
        if found is None or self._closed.is_set():
            return None
        recurse = not isinstance(self._scope, KeyScope)
        self._place = self._polls.begin(self._key, found, recurse=recurse)
        self._gaps = self._place.gaps
        self._known = {each.Key: each for each in found.keys}
        self._index = found.revision
        if self._after is None:
            return self._whole("snapshot")
        if found.revision > self._after:
            return self._whole("resync")
        return None

    async def _read(self) -> FoundKeys | None:
        try:
            return await self._polls.read(self._key, recurse=not isinstance(self._scope, KeyScope))
        except AuthFailed:
            self._closed.set()
            raise
        except CoordinationError:
            await asyncio.sleep(_PAUSE_S)
            return None

    async def _next(self) -> WatchBatch | None:
        """Wait for the next state, and report what is different."""
        place = self._place
        assert place is not None
        if place.turn == self._turn:
            await self._wait(place.answered)
        if self._closed.is_set() or place.turn == self._turn:
            return None
        self._turn = place.turn
        if place.error is not None:
            self._closed.set()
            raise place.error
        found = place.found
        if found.revision < self._index:
            return None  # older than what was reported
        missed, self._gaps = place.gaps > self._gaps, place.gaps
        return self._different(found, missed=missed)

    async def _wait(self, answered: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(each.wait()) for each in (answered, self._closed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _different(self, found: FoundKeys, *, missed: bool) -> WatchBatch:
        """Report what is different. `missed`: for a while nobody looked."""
        assert self._known is not None
        known, self._known = self._known, {each.Key: each for each in found.keys}
        grown = found.revision > self._index
        self._index = found.revision
        revision = Revision(found.revision)
        changed = [
            each for each in found.keys if each.ModifyIndex != _index_of(known.get(each.Key))
        ]
        gone = [each for key, each in known.items() if key not in self._known]
        if not changed and not gone:
            if missed and grown:
                return self._whole("resync")  # a key may have come and gone meanwhile
            return WatchBatch("progress", revision)
        if isinstance(self._scope, Resource):
            return self._whole("changes")
        changes = [
            ValueChange(
                self._layout.key_name(each),
                self._layout.record(each),
                Revision(each.ModifyIndex),
            )
            for each in changed
        ]
        changes += [ValueChange(self._layout.key_name(each), None, revision) for each in gone]
        changes.sort(key=lambda each: each.revision)
        return WatchBatch("changes", revision, coalesced=True, changes=tuple(changes))

    def _whole(self, kind: BatchKind) -> WatchBatch:
        assert self._known is not None
        revision = Revision(self._index)
        coalesced = kind != "snapshot"
        if isinstance(self._scope, Resource):
            entries = self._layout.entries(self._scope, self._known.values(), self._index)
            return WatchBatch(kind, revision, coalesced=coalesced, entries=entries)
        changes = tuple(
            ValueChange(self._layout.key_name(each), self._layout.record(each), revision)
            for each in self._known.values()
        )
        return WatchBatch(kind, revision, coalesced=coalesced, changes=changes)


def _index_of(known: ConsulKey | None) -> int:
    return known.ModifyIndex if known is not None else 0


def _place(scope: WatchScope, layout: ConsulLayout) -> str:
    if isinstance(scope, KeyScope):
        return layout.key(scope.key)
    return layout.key(scope.prefix) if isinstance(scope, PrefixScope) else layout.resource(scope)
