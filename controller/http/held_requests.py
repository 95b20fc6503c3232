"""Requests that are held until there is something to say.

Rule: released exactly once, in the order of their arrival: by a wake-up, or when their time is
over. There is room for so many; beyond it nobody is held.
"""

from collections.abc import Callable

from runtime.clock import Clock, Timer
from runtime.slices import LoopShare


class _Entry:
    __slots__ = ("release", "timer")

    def __init__(self, release: Callable[[], None]) -> None:
        self.release = release
        self.timer: Timer | None = None


class HeldRequests:
    """The held requests."""

    def __init__(self, clock: Clock, room: int) -> None:
        self._clock = clock
        self._room = room
        self._entries: dict[int, _Entry] = {}
        self._number = 0
        self._woken = 0
        self._share = LoopShare(clock, self._release_woken)

    def __len__(self) -> int:
        return len(self._entries)

    def park(self, wait_s: float, release: Callable[[], None]) -> None:
        """Hold; `release` is called at the next wake-up, or after `wait_s` seconds."""
        if len(self._entries) >= self._room:
            release()
            return
        self._number += 1
        number = self._number
        entry = self._entries[number] = _Entry(release)
        entry.timer = self._clock.call_later(wait_s, lambda: self._release(number))

    def wake(self) -> None:
        """Release all that are held now; who parks again meanwhile stays.

        A crowd is released over several passes of the loop.
        """
        self._woken = self._number
        self._release_woken()

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
