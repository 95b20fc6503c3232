"""Answers `POST /v1/coordination/watch`: the news in many scopes, and waits for some.

Any node answers, from what it has applied. Rules: an answer's revision is one up to which every
scope was told everything; there is never a silent gap. If the history that a scope needs is gone,
the scope gets the present state, and the news say `resync`.

A change wakes only those who watch it: waiting watches are found by key, by prefix or by resource.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from controller.config import CoordinationLimits
from controller.http.coordination.describing import revision_of
from controller.http.coordination.feed import CoordinationFeed, FeedChange, TransactionFilter
from controller.http.coordination.scopes import (
    RESYNC,
    SNAPSHOT,
    AnswerRoom,
    News,
    WatchedScope,
    watch_reply,
)
from controller.http.coordination.waiting import OnNews, WaitingWatch, WaitingWatches
from controller.http.describe import readable_offset
from ledger.batch import Batch, parse
from ledger.errors import HistoryMissingError, LedgerError
from ledger.ledger import Ledger
from metadata.codec import RecordDecodeError
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import CoordinationWatchReply, CoordinationWatchRequest
from metadata.messages.parts import LongMessage
from runtime.clock import Clock, Timer
from runtime.loop.slices import LoopShare, run_in_slices

WAIT_MS_MAX: Final = 60_000
CHANGES_MAX: Final = 1_000
CHANGES_BYTES_MAX: Final = 1024 * 1024
"""An answer ends behind the change that goes beyond one of these."""
HISTORY_BYTES_MAX: Final = 16 * 1024 * 1024
"""A watch that needs more of the log than this gets the present state instead."""
IDLE_S: Final = 120.0
"""The feed keeps changes for so long after the last watch."""
_PIECE_BYTES: Final = 64 * 1024


class CoordinationWatches:
    """All watches of this node."""

    def __init__(
        self,
        clock: Clock,
        limits: CoordinationLimits,
        waiting_max: int,
        image: Callable[[], MetadataImage],
        idle: Callable[[], bool],
        ledger: Callable[[], Ledger],
        at_least: Callable[[int, Callable[[bool], None]], None],
    ) -> None:
        """`idle`: everything that was delivered is applied. `at_least` waits for an offset."""
        self._clock = clock
        self._limits = limits
        self._waiting_max = waiting_max
        self._image = image
        self._idle = idle
        self._ledger = ledger
        self._at_least = at_least
        self._waiting = WaitingWatches()
        self._feed = CoordinationFeed(self._waiting.on_change)
        self._not_level: deque[Callable[[], None]] = deque()
        self._share = LoopShare(clock, self.on_progress)
        self._last_asked = 0.0
        self._idle_timer: Timer | None = None

    def __len__(self) -> int:
        """How many watches wait."""
        return len(self._waiting)

    @property
    def scopes(self) -> int:
        """How many keys, prefixes and queues the waiting watches are about, each time counted."""
        return sum(len(watching.scopes) for watching in self._waiting)

    def on_batch(self, batch: Batch) -> None:
        """A batch was applied."""
        self._feed.take(batch, self._image())

    def on_progress(self) -> None:
        """A slice of batches was applied: answer whoever has news."""
        if not self._is_level():
            return
        while self._not_level and not self._share.spent():
            self._not_level.popleft()()
        woken = self._waiting.woken
        while woken and not self._share.spent():
            self._answer(woken.popleft())

    def stop(self) -> None:
        """The node stops: answer everybody."""
        for watching in self._waiting:
            self._waiting.forget(watching)
            watching.on_news(LogbergError(ErrorCode.SHUTTING_DOWN))
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def read(self, request: CoordinationWatchRequest, on_news: OnNews) -> None:
        """Answer with news; if there are none, wait for some. Raises LogbergError."""
        if len(request.scopes) > self._limits.watch_scopes:
            raise LogbergError(
                ErrorCode.TXN_TOO_LARGE,
                f"scopes: the most are {self._limits.watch_scopes}",
                {"limit": str(self._limits.watch_scopes)},
            )
        scopes = tuple(
            WatchedScope.read(index, scope, self._limits)
            for index, scope in enumerate(request.scopes)
        )
        wait_s = min(request.wait_ms, WAIT_MS_MAX) / 1000
        needed = max((s.after for s in scopes if s.after is not None), default=-1)
        self._keep_feeding()
        until = self._clock.monotonic() + wait_s

        def reached(ok: bool) -> None:
            if ok:
                self._when_level(lambda: self._begin(scopes, until, on_news))
            else:
                on_news(LogbergError(ErrorCode.OFFSET_NOT_AVAILABLE))

        # A node that answered before may have been ahead of this one.
        self._at_least(max(needed, request.min_revision) + 1, reached)

    # -- level: the feed is as new as the image -------------------------------------------

    def _is_level(self) -> bool:
        image = self._image()
        revision = revision_of(image)
        if self._feed.revision < revision and self._idle() and image.transaction is None:
            # The image came from a checkpoint or from another node: no batch led to it.
            self._feed.begin(revision, image)
            self._waiting.wake_all()
            self._clock.call_soon(self.on_progress)
        return self._feed.revision >= revision

    def _when_level(self, go_on: Callable[[], None]) -> None:
        if self._is_level():
            go_on()
        else:
            self._not_level.append(go_on)

    def _keep_feeding(self) -> None:
        self._last_asked = self._clock.monotonic()
        if not self._feed.active:
            self._feed.active = True
            image = self._image()
            if image.transaction is None:
                self._feed.begin(revision_of(image), image)
            self._idle_timer = self._clock.call_later(IDLE_S, self._look_whether_idle)

    def _look_whether_idle(self) -> None:
        left = self._last_asked + IDLE_S - self._clock.monotonic()
        self._idle_timer = None
        if self._waiting or left > 0:
            self._idle_timer = self._clock.call_later(max(left, 1.0), self._look_whether_idle)
        else:
            self._feed.active = False

    # -- answers --------------------------------------------------------------------------

    def _begin(self, scopes: tuple[WatchedScope, ...], until: float, on_news: OnNews) -> None:
        """Answer at once if there are news; else wait."""
        old = [s for s in scopes if s.after is not None and s.after + 1 < self._feed.floor]
        if old:
            self._read_history(scopes, old, on_news)
            return
        revision, news = self._news(scopes)
        left = until - self._clock.monotonic()
        if news or left <= 0 or len(self._waiting) >= self._waiting_max:
            on_news(watch_reply(self._image(), revision, news))
            return
        # From here on the feed tells. Until now there was nothing.
        watching = WaitingWatch(tuple(s._replace(after=revision) for s in scopes), on_news)
        self._waiting.add(watching)
        watching.timer = self._clock.call_later(left, lambda: self._answer(watching))

    def _answer(self, watching: WaitingWatch) -> None:
        """Answer a watch that was woken, or whose wait is over."""
        if watching.done:
            return
        self._waiting.forget(watching)
        self._when_level(lambda: self._begin(watching.scopes, 0.0, watching.on_news))

    def _news(self, scopes: tuple[WatchedScope, ...]) -> tuple[int, list[News]]:
        """Return the news behind each scope's revision, and up to where they are all."""
        image, feed, room = self._image(), self._feed, AnswerRoom()
        news: dict[int, News] = {}
        found: list[tuple[WatchedScope, list[FeedChange]]] = []
        for scope in scopes:
            if scope.after is None:
                news[scope.number] = scope.state(image.coordination, SNAPSHOT, room)
            elif changes := scope.changes(feed, scope.after):
                found.append((scope, changes))
        revision = self._told_up_to(found)
        for scope, changes in found:
            told = [change for change in changes if change.revision <= revision]
            if told:
                news[scope.number] = scope.news(image.coordination, told, room)
        return revision, _in_order(news)

    def _told_up_to(self, found: list[tuple[WatchedScope, list[FeedChange]]]) -> int:
        """Return the revision up to which the changes fit into one answer."""
        number = size = 0
        every = sorted({c.revision: c.size for _, changes in found for c in changes}.items())
        for revision, bytes_of_it in every:
            number, size = number + 1, size + bytes_of_it
            if number >= CHANGES_MAX or size >= CHANGES_BYTES_MAX:
                return revision
        return self._feed.revision

    # -- history --------------------------------------------------------------------------

    def _read_history(
        self, scopes: tuple[WatchedScope, ...], old: list[WatchedScope], on_news: OnNews
    ) -> None:
        """Read what is older than the feed from the ledger, in slices, and answer with it."""
        found: dict[int, list[FeedChange]] = {}
        start = min(scope.after for scope in old if scope.after is not None) + 1
        complete: list[int] = []

        def done() -> None:
            self._when_level(lambda: on_news(self._history_reply(scopes, found, complete)))

        run_in_slices(self._clock, self._history(start, scopes, found, complete), done)

    def _history(
        self,
        start: int,
        scopes: tuple[WatchedScope, ...],
        found: dict[int, list[FeedChange]],
        complete: list[int],
    ) -> Generator[None, None, None]:
        """Collect the changes from an offset on. `complete` gets the last revision, if all are."""
        at, size, number, transactions = start, 0, 0, TransactionFilter()
        settled = start - 1
        try:
            while size < HISTORY_BYTES_MAX:
                piece = self._ledger().read_from(at, _PIECE_BYTES, readable_offset(self._image()))
                if not piece or (number >= CHANGES_MAX and not transactions.in_transaction):
                    complete.append(settled)
                    return
                yield
                for encoded in piece:
                    batch = parse(encoded)
                    at, size = batch.header.end_offset, size + len(encoded)
                    for change in transactions.take(batch):
                        number += _collect(scopes, change, found)
                    if not transactions.in_transaction:
                        settled = at - 1
                    yield
        except (HistoryMissingError, LedgerError, RecordDecodeError, OSError):
            # The present state answers the question as well, and the news say so.
            return

    def _history_reply(
        self,
        scopes: tuple[WatchedScope, ...],
        found: dict[int, list[FeedChange]],
        complete: list[int],
    ) -> CoordinationWatchReply | LongMessage:
        image, room = self._image(), AnswerRoom()
        news: dict[int, News] = {}
        revision = complete[0] if complete else self._feed.revision
        for scope in scopes:
            if scope.after is None:
                # It may be newer than the reply's revision: some of its changes come once more.
                news[scope.number] = scope.state(image.coordination, SNAPSHOT, room)
            elif not complete:
                news[scope.number] = scope.state(image.coordination, RESYNC, room)
            elif changes := found.get(scope.number):
                news[scope.number] = scope.news(image.coordination, changes, room)
        return watch_reply(image, revision, _in_order(news))


def _in_order(news: dict[int, News]) -> list[News]:
    return [news[number] for number in sorted(news)]


def _collect(
    scopes: tuple[WatchedScope, ...], change: FeedChange, found: dict[int, list[FeedChange]]
) -> int:
    """Add a change to the scopes that it is about, and return to how many."""
    number = 0
    for scope in scopes:
        if scope.after is not None and change.revision > scope.after and scope.includes(change):
            found.setdefault(scope.number, []).append(change)
            number += 1
    return number
