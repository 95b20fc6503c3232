"""Watches on the controllers: one held request asks for the news of many watches.

Rule: an answer's revision says up to where everything was told, for each watch that it was asked
for. It is where the next request goes on, so nothing is missed between two requests, and a request
that is abandoned loses nothing. The leader is asked, because a follower that is cut off would hold
a request and know nothing.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from coordination.backend import (
    BatchKind,
    KeyScope,
    PrefixScope,
    ResourceEntries,
    ValueChange,
    WatchBatch,
    WatchScope,
)
from coordination.backends.quorum.asking import (
    TRANSIENT,
    ControllerRequests,
    UnreadableReplyError,
    read_error,
    read_reply,
)
from coordination.backends.quorum.readings import entries_of, record_of
from coordination.backends.quorum.refusals import error_of
from coordination.errors import CoordinationError
from coordination.scopes import sleep
from coordination.types import Record, Revision
from metadata.messages.coordination_watch import (
    CoordinationWatchReply,
    CoordinationWatchRequest,
    ScopeNews,
)
from metadata.messages.coordination_watch import WatchScope as ScopeMessage
from metadata.messages.errors import ErrorReply
from runtime.http.requests import Unreachable

WATCH: Final = "/v1/coordination/watch"
SCOPES_PER_POLL: Final = 250
WAIT_S: Final = 5.0
PROGRESS_S: Final = WAIT_S
"""A watch without news hears of progress no more often, however much news its neighbours have."""
LATE_S: Final = 2.0
"""How much longer than it waits an answer may take."""
PAUSE_S: Final = 0.1
POSTPONED: Final = "postponed"
_SCOPE: Final = re.compile(r"scopes\[(\d+)\]")
"""How a controller names the scope that it refuses."""
_KINDS: Final[Mapping[str, BatchKind]] = {"snapshot": "snapshot", "resync": "resync"}
ListAll = Callable[[str], Awaitable[tuple[Revision, tuple[Record, ...]]]]


class QuorumWatch:
    """`coordination.backend.BackendWatch` as a part of a poll."""

    def __init__(self, poll: "Poll", scope: WatchScope, after: Revision | None) -> None:
        self.scope = scope
        self.after = after
        self.failed = False
        """An error ended it; it waits to be closed."""
        self._poll = poll
        self._batches: asyncio.Queue[WatchBatch | CoordinationError | None] = asyncio.Queue()
        self._over = False

    def __aiter__(self) -> "QuorumWatch":
        return self

    async def __anext__(self) -> WatchBatch:
        batch = None if self._over else await self._batches.get()
        if batch is None:
            raise StopAsyncIteration
        if isinstance(batch, CoordinationError):
            raise batch
        return batch

    async def aclose(self) -> None:
        if not self._over:
            self._over = True
            self._batches.put_nowait(None)
            await self._poll.remove(self)

    def put(self, batch: WatchBatch) -> None:
        """Deliver news."""
        self._batches.put_nowait(batch)

    def fail(self, error: CoordinationError) -> None:
        """End the watch; the next read of it raises the error."""
        self.failed = True
        self._batches.put_nowait(error)

    def asked(self) -> ScopeMessage:
        """Return the watch as a request names it."""
        if isinstance(self.scope, KeyScope):
            return ScopeMessage(key=self.scope.key, after=self.after)
        if isinstance(self.scope, PrefixScope):
            return ScopeMessage(prefix=self.scope.prefix, after=self.after)
        return ScopeMessage(kind=self.scope.kind, name=self.scope.name, after=self.after)


class Poll:
    """Up to `SCOPES_PER_POLL` watches in one held request, asked again and again."""

    def __init__(
        self,
        requests: ControllerRequests,
        seen: Callable[[], Revision],
        list_all: ListAll,
        log: FilteringBoundLogger,
    ) -> None:
        """`seen`: what this client knows to be written; `list_all` lists a prefix that is large."""
        self._requests = requests
        self._seen = seen
        self._list_all = list_all
        self._log = log
        self._watches: list[QuorumWatch] = []
        self._asking: asyncio.Task[None] | None = None
        self._held: asyncio.Task[None] | None = None
        self._progress_s = requests.clock.monotonic()
        requests.on_move(self._renew)

    @property
    def full(self) -> bool:
        """Whether no more watches fit."""
        return len(self._watches) >= SCOPES_PER_POLL

    def add(self, scope: WatchScope, after: Revision | None) -> QuorumWatch:
        """Watch one more scope."""
        watch = QuorumWatch(self, scope, after)
        self._watches.append(watch)
        self._renew()
        if self._asking is None:
            self._asking = asyncio.create_task(self._run(), name="coordination watches")
        return watch

    async def remove(self, watch: QuorumWatch) -> None:
        """Watch a scope no more; the held request goes when none is left."""
        if watch in self._watches:
            self._watches.remove(watch)
        if not self._watches and self._asking is not None:
            asking, self._asking = self._asking, None
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def aclose(self) -> None:
        """End all watches."""
        for watch in list(self._watches):
            await watch.aclose()

    def _renew(self) -> None:
        """Ask anew: there are other watches, or there is another leader."""
        if self._held is not None and self._held is not asyncio.current_task():
            self._held.cancel()

    async def _run(self) -> None:
        while True:
            watches = [watch for watch in self._watches if not watch.failed]
            held = self._held = asyncio.create_task(self._ask(watches))
            try:
                await asyncio.wait({held})
            finally:
                if not held.done():
                    held.cancel()
                    await asyncio.gather(held, return_exceptions=True)
            if not held.cancelled() and (error := held.exception()) is not None:
                self._log.error("coordination_poll_failed", error=repr(error))
                await sleep(self._requests.clock, PAUSE_S)

    async def _ask(self, watches: list[QuorumWatch]) -> None:
        requests = self._requests
        if not watches:
            await asyncio.Event().wait()  # `_renew` ends it.
        request = CoordinationWatchRequest(
            tuple(watch.asked() for watch in watches), int(WAIT_S * 1000), self._seen()
        )
        url = requests.url
        answer = await requests.once(url, "POST", WATCH, request, {}, None, WAIT_S + LATE_S)
        if isinstance(answer, Unreachable):
            requests.try_next(url)
            await sleep(requests.clock, PAUSE_S)
        elif answer.status < 300:
            try:
                news = read_reply(answer, CoordinationWatchReply)
            except UnreadableReplyError:
                requests.try_next(url)
                raise
            await self._tell(watches, news)
        else:
            await self._refused(watches, url, answer.status, read_error(answer, url))

    async def _refused(
        self, watches: list[QuorumWatch], url: str, status: int, refusal: ErrorReply
    ) -> None:
        """End the watches that can never be served; ask another controller for the others."""
        requests = self._requests
        if 400 <= status < 500 and status not in TRANSIENT:
            scope = _SCOPE.match(refusal.details.get("field", ""))
            for watch in watches if scope is None else [watches[int(scope[1])]]:
                watch.fail(error_of(refusal, status))
            return
        if not requests.follow(url, refusal.leader_url):
            requests.try_next(url)
        await sleep(requests.clock, (refusal.retry_after_ms or PAUSE_S * 1000) / 1000)

    async def _tell(self, watches: list[QuorumWatch], reply: CoordinationWatchReply) -> None:
        revision = Revision(reply.revision)
        told = set()
        for news in reply.scopes:
            watch = watches[news.scope]
            told.add(news.scope)
            if news.kind == POSTPONED:
                continue  # The next request asks behind the same revision.
            batch = await self._batch(watch, news, revision)
            watch.after = max(batch.revision, watch.after or batch.revision)
            watch.put(batch)
        now_s = self._requests.clock.monotonic()
        tells_progress = not told or now_s - self._progress_s >= PROGRESS_S
        if tells_progress:
            self._progress_s = now_s
        for index, watch in enumerate(watches):
            if index not in told:
                watch.after = revision if watch.after is None else max(watch.after, revision)
                if tells_progress:
                    watch.put(WatchBatch("progress", watch.after))

    async def _batch(self, watch: QuorumWatch, news: ScopeNews, revision: Revision) -> WatchBatch:
        if not isinstance(watch.scope, KeyScope | PrefixScope):
            entries = ResourceEntries(revision, entries_of(news.entries))
            return WatchBatch(_KINDS.get(news.kind, "changes"), revision, entries=entries)
        if news.kind == "changes":
            return WatchBatch("changes", revision, changes=changes_of(news))
        records = tuple(record_of(each) for each in news.records)
        if news.truncated and isinstance(watch.scope, PrefixScope):
            revision, records = await self._list_all(watch.scope.prefix)
        state = tuple(ValueChange(each.key, each, each.mod_revision) for each in records)
        if news.kind == "resync":
            return WatchBatch("resync", revision, coalesced=True, changes=state)
        return WatchBatch("snapshot", revision, changes=state)


def changes_of(news: ScopeNews) -> tuple[ValueChange, ...]:
    """Return the changes of keys in their order."""
    return tuple(
        ValueChange(
            change.key,
            None if change.record is None else record_of(change.record),
            Revision(change.revision),
        )
        for change in news.changes
    )
