"""Watchers of the same resource that wait at the same place: one reading and one answer for all.

Rule: watchers share a reading only if it must give each of them the same records. That is so if
they have read everything up to the same place and found nothing, and their rights show the same
(`RecordFinder.common`). A thousand
watchers of a topic then cost one reading of what is new, and an answer that is encoded once for
each format. The answers go out in slices.
"""

from collections.abc import Callable, Generator
from typing import NamedTuple

from controller.http.held_requests import HeldRequests
from controller.http.watched_records import RecordFinder
from metadata.errors import LogbergError
from metadata.messages.parts import EncodedOnce, LongMessage
from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

Outcome = LongMessage | EncodedOnce | LogbergError
OnAnswer = Callable[[Outcome], None]


class Log(NamedTuple):
    """How groups read the log and answer."""

    end: Callable[[], int]
    """The offset up to which may be read."""
    read_on: Callable[[RecordFinder, list[LogbergError]], Generator[None, None, None]]
    """Reads up to a limit, in steps. Puts an error into the list."""
    message: Callable[[RecordFinder], EncodedOnce]
    """The answer from what a finder has found."""


class _Watcher(NamedTuple):
    until: float
    """Monotonic seconds when its wait is over."""
    on_answer: OnAnswer
    seen: int
    """The group had read up to this offset when the watcher began to wait."""


class _Group:
    """Watchers that share a finder."""

    def __init__(self, finder: RecordFinder) -> None:
        self.finder = finder
        self.is_reading = False
        self.joined: list[_Watcher] = []
        """Those that wait for the reading that is under way."""
        self.outcome: EncodedOnce | LogbergError | None = None
        """What each of them is answered, once there is something."""
        self.size = 0
        """Watchers that are not answered yet."""


class WatchGroups:
    """All watchers that wait."""

    def __init__(self, clock: Clock, held_requests: HeldRequests, log: Log) -> None:
        self._clock = clock
        self._held_requests = held_requests
        self._log = log
        self._groups: dict[object, _Group] = {}
        """The groups that others may join, by `RecordFinder.common`."""

    def __len__(self) -> int:
        """How many groups others may join."""
        return len(self._groups)

    def wait(self, finder: RecordFinder, until: float, on_answer: OnAnswer) -> None:
        """Answer when there is something about the resource, or when the wait is over.

        The finder has found nothing, and has read up to the end.
        """
        common = finder.common
        group = None if common is None else self._groups.get(common)
        if group is None:
            group = _Group(finder)
            if common is not None:
                self._groups[common] = group
        group.size += 1
        self._hold(group, until, on_answer)

    def _hold(self, group: _Group, until: float, on_answer: OnAnswer) -> None:
        watcher = _Watcher(until, on_answer, group.finder.read_to)
        left = max(0.0, until - self._clock.monotonic())
        self._held_requests.park(left, lambda: self._released(group, watcher))

    def _released(self, group: _Group, watcher: _Watcher) -> None:
        """Something was committed, the wait is over, or too many watchers wait."""
        if group.outcome is not None:
            self._answer(group, watcher, group.outcome)
        elif group.is_reading or self._log.end() > group.finder.read_to:
            group.joined.append(watcher)
            self._read(group)
        elif group.finder.read_to > watcher.seen and watcher.until > self._clock.monotonic():
            # Another watcher has made the group read on, and that was about something else.
            self._hold(group, watcher.until, watcher.on_answer)
        else:
            self._answer(group, watcher, self._log.message(group.finder))

    def _answer(
        self, group: _Group, watcher: _Watcher, outcome: EncodedOnce | LogbergError
    ) -> None:
        group.size -= 1
        if not group.size:
            self._close(group)
        watcher.on_answer(outcome)

    def _close(self, group: _Group) -> None:
        """Nobody may join the group any more: its place changes, or nobody is left in it."""
        common = group.finder.common
        if common is not None and self._groups.get(common) is group:
            del self._groups[common]

    def _read(self, group: _Group) -> None:
        if group.is_reading:
            return
        self._close(group)
        group.is_reading = True
        failed: list[LogbergError] = []

        def done() -> None:
            group.is_reading = False
            finder = group.finder
            if failed:
                group.outcome = failed[0]
            elif finder.found or finder.next_offset < self._log.end():
                group.outcome = self._log.message(finder)
            elif (common := finder.common) is not None:
                self._groups.setdefault(common, group)
            run_in_slices(self._clock, self._tell(group), lambda: None)

        run_in_slices(self._clock, self._log.read_on(group.finder, failed), done)

    def _tell(self, group: _Group) -> Generator[None, None, None]:
        """Answer those that waited for the reading, or let them wait on."""
        joined, group.joined = group.joined, []
        for watcher in joined:
            self._released(group, watcher)
            yield
