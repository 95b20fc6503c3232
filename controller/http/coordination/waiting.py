"""Who waits for what: the watches that wait for news, by key, by prefix and by resource.

Rule: a change costs as much as the watches that it wakes, and as many look-ups as there are lengths
of prefixes. It doesn't look at the watches of others.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from controller.http.coordination.feed import FeedChange
from controller.http.coordination.scopes import WatchedScope
from metadata.errors import LogbergError
from metadata.messages import CoordinationWatchReply
from metadata.messages.parts import LongMessage
from runtime.clock import Timer

OnNews = Callable[[CoordinationWatchReply | LongMessage | LogbergError], None]


class WaitingWatch:
    """A watch that waits."""

    __slots__ = ("done", "on_news", "scopes", "timer", "woken")

    def __init__(self, scopes: tuple[WatchedScope, ...], on_news: OnNews) -> None:
        self.scopes = scopes
        self.on_news = on_news
        self.timer: Timer | None = None
        self.woken = False
        self.done = False


_Places = dict[Any, dict[WaitingWatch, None]]
"""By key, prefix or resource: the watches that wait for its news, in the order of arrival."""


class WaitingWatches:
    """All watches that wait on this node."""

    def __init__(self) -> None:
        self.woken: deque[WaitingWatch] = deque()
        """Those that have news, in the order in which these came."""
        self._all: dict[WaitingWatch, None] = {}
        self._by_key: _Places = {}
        self._by_prefix: _Places = {}
        self._by_resource: _Places = {}
        self._lengths: Counter[int] = Counter()
        """Of the prefixes that are waited for."""

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[WaitingWatch]:
        return iter(tuple(self._all))

    def add(self, watch: WaitingWatch) -> None:
        """Let a watch wait from now on."""
        self._all[watch] = None
        for table, name in self._places(watch):
            table.setdefault(name, {})[watch] = None
        self._lengths.update(_prefix_lengths(watch))

    def forget(self, watch: WaitingWatch) -> None:
        """A watch waits no longer; a second call does nothing."""
        if watch.done:
            return
        watch.done = True
        if watch.timer is not None:
            watch.timer.cancel()
        self._all.pop(watch, None)
        for table, name in self._places(watch):
            waiting = table.get(name)
            if waiting is not None:
                waiting.pop(watch, None)
                if not waiting:
                    del table[name]
        for length in _prefix_lengths(watch):
            self._lengths[length] -= 1
            if not self._lengths[length]:
                del self._lengths[length]

    def wake_all(self) -> None:
        """Whatever they wait for, they may have missed it."""
        self._wake(self._all)

    def on_change(self, change: FeedChange) -> None:
        """Wake those who wait for this change."""
        if change.resource is not None:
            self._wake(self._by_resource.get(change.resource, ()))
            return
        self._wake(self._by_key.get(change.key, ()))
        for length in sorted(self._lengths):
            self._wake(self._by_prefix.get(change.key[:length], ()))

    def _wake(self, waiting: Iterable[WaitingWatch]) -> None:
        for watch in waiting:
            if not (watch.woken or watch.done):
                watch.woken = True
                self.woken.append(watch)

    def _places(self, watch: WaitingWatch) -> Iterator[tuple[_Places, Hashable]]:
        for scope in watch.scopes:
            if scope.key is not None:
                yield self._by_key, scope.key
            elif scope.prefix is not None:
                yield self._by_prefix, scope.prefix
            else:
                yield self._by_resource, scope.resource


def _prefix_lengths(watch: WaitingWatch) -> list[int]:
    return [len(scope.prefix) for scope in watch.scopes if scope.prefix is not None]
