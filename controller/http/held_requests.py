"""Holds requests until there is news for them.

A held request is released exactly once, by a wake-up or when its wait is over. Requests are
released in the order of their arrival. If too many are held, a further request is released at once.

Rule: many that are due together are released over several passes of the event loop. The waits of
thousands of brokers end at one moment if one change has woken them all.
"""

from collections import deque
from collections.abc import Callable

from runtime.clock import Clock, Timer
from runtime.loop.slices import LoopShare


class _Entry:
    __slots__ = ("release", "timer")

    def __init__(self, release: Callable[[], None]) -> None:
        self.release = release
        self.timer: Timer | None = None


class HeldRequests:
    """The requests, by number of arrival."""

    def __init__(self, clock: Clock, room: int) -> None:
        self._clock = clock
        self._room = room
        self._entries: dict[int, _Entry] = {}
        self._number = 0
        self._woken = 0
        self._ended: deque[int] = deque()
        """Requests whose wait is over, in this order."""
        self._share = LoopShare(clock, self._go_on)

    def __len__(self) -> int:
        return len(self._entries)

    def park(self, wait_s: float, release: Callable[[], None]) -> None:
        """Hold a request: call `release` at the next wake-up, or after `wait_s` seconds."""
        if len(self._entries) >= self._room:
            release()
            return
        self._number += 1
        number = self._number
        entry = self._entries[number] = _Entry(release)
        entry.timer = self._clock.call_later(wait_s, lambda: self._end(number))

    def wake(self) -> None:
        """Release all requests that are held now. A request that is held again meanwhile stays."""
        self._woken = self._number
        self._release_woken()

    def _end(self, number: int) -> None:
        """The wait of a request is over."""
        self._ended.append(number)
        self._release_ended()

    def _go_on(self) -> None:
        self._release_ended()
        self._release_woken()

    def _release_ended(self) -> None:
        while self._ended and not self._share.spent():
            self._release(self._ended.popleft())

    def _release_woken(self) -> None:
        while self._entries and not self._share.spent():
            number = next(iter(self._entries))
            if number > self._woken:
                return
            self._release(number)

    def _release(self, number: int) -> None:
        entry = self._entries.pop(number, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        entry.release()
