"""Watches by polling: one mirror for each scope, which polls an epoch and reads when it changed.

Rule: Cassandra sends no changes. The mirror polls every `poll_s` seconds, and at once when this
client itself has changed something in the scope's space.
"""

from typing import Any, Final

from coordination.backend import KeyScope, PrefixScope, WatchScope
from coordination.backends.cassandra.queues import CassandraQueues
from coordination.backends.cassandra.spaces import CassandraSpaces
from coordination.backends.cassandra.storage import CassandraStorage
from coordination.backends.cassandra.views import (
    CassandraKeysView,
    CassandraQueueView,
    CassandraView,
)
from coordination.mirrors import Mirror, MirrorReading, Mirrors, MirrorWatch, S
from coordination.types import Revision
from coordination.until import Until

_PROGRESS_S: Final = 2.0
"""A watch without changes reports progress about so often."""


class CassandraMirror(Mirror[S]):
    """The state of one scope, as the last poll found it."""

    def __init__(self, view: CassandraView[S], poll_s: float, timeout_s: float) -> None:
        super().__init__(view, every_s=poll_s, pause_s=poll_s)
        self._source = view
        self._timeout_s = timeout_s
        self._epoch = -1
        self._last: MirrorReading[S] | None = None

    def is_in(self, space: str) -> bool:
        return self._source.is_in(space)

    async def _read(self, *, anew: bool) -> MirrorReading[S]:
        until = Until.after(self._timeout_s)
        epoch = await self._source.epoch(until)
        if epoch != self._epoch or anew or self._last is None:
            state = await self._source.read(until)
            self._last = MirrorReading(state, calm=self.view.whole(state).revision)
            self._epoch = epoch
        return self._last


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
        self._mirrors = Mirrors(self._mirror, progress_every=round(_PROGRESS_S / poll_s) or 1)
        spaces.on_change = self._wake

    def watch(self, scope: WatchScope, after: Revision | None) -> MirrorWatch[Any]:
        return self._mirrors.watch(scope, after)

    async def aclose(self) -> None:
        await self._mirrors.aclose()

    def _wake(self, space: str) -> None:
        for mirror in self._mirrors:
            if mirror.is_in(space):
                mirror.wake()

    def _mirror(self, scope: WatchScope) -> CassandraMirror[Any]:
        return CassandraMirror(self._view(scope), self._poll_s, self._timeout_s)

    def _view(self, scope: WatchScope) -> CassandraView[Any]:
        if isinstance(scope, KeyScope):
            return CassandraKeysView(self._spaces, self._storage, scope.key, prefix=False)
        if isinstance(scope, PrefixScope):
            return CassandraKeysView(self._spaces, self._storage, scope.prefix, prefix=True)
        return CassandraQueueView(self._spaces, self._queues, scope)
