"""Holds requests until there is news for them.

A held request is released exactly once, by a wake-up or when its wait is over. A wake-up releases
in the order of arrival. If too many are held, a further request is released at once.

Rules: a wait is shorter than the caller asked for by a random part of up to a fifth, and never
longer. Otherwise the waits of thousands of brokers would end at one moment, again and again, once a
change has woken them all. What is due together is released over several passes of the event loop.

A crowd that was woken asks again at once. So after a wake-up of many requests the next one waits
for a rest, in proportion to their number. The first news after a calm time goes out at once, and
changes that follow each other closely reach a crowd together. Without it, thousands of brokers
would take all the time of a leader that is busy with changes, and their heartbeats would be late.

One timer serves all waits. They end at ticks of 10 ms, so a request that is held and released costs
no timer of its own.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from runtime.clock import Clock, Timer
from runtime.loop.slices import LoopShare
from runtime.randomness import Random

SPREAD: Final = 0.2
"""The largest part of a wait that is left out."""
CROWD: Final = 100
"""A wake-up of fewer requests has no rest behind it."""
REST_S: Final = 0.00015
"""For each request: some more time than a reply and the next request of its caller cost."""
_TICKS_PER_S: Final = 100
SHORTEST_S: Final = 2 / _TICKS_PER_S
"""A wait of at least this ends at a later tick. A shorter one may end at once."""

_Release = Callable[[], None]


class HeldRequests:
    """The requests, by number of arrival."""

    def __init__(self, clock: Clock, random: Random, room: int) -> None:
        self._clock = clock
        self._random = random
        self._room = room
        self._entries: dict[int, tuple[_Release, dict[int, None]]] = {}
        """Each with the requests that end at the same tick, itself among them."""
        self._ticks: dict[int, dict[int, None]] = {}
        """Requests by the tick at which their wait ends."""
        self._next_ticks: list[int] = []
        """The keys of `_ticks`, as a heap."""
        self._timer: Timer | None = None
        self._timer_tick = 0
        self._number = 0
        self._arrived: deque[int] = deque()
        """In order. Requests whose wait is over leave it when they come first."""
        self._woken = 0
        self._ended: deque[int] = deque()
        """Requests whose wait is over, in this order."""
        self._rest: Timer | None = None
        self._wakes_after_rest = False
        self._share = LoopShare(clock, self._go_on)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def has_room(self) -> bool:
        """Whether one more request can be held."""
        return len(self._entries) < self._room

    def park(self, wait_s: float, release: _Release) -> None:
        """Hold a request: call `release` at the next wake-up, or after `wait_s` seconds at most."""
        if not self.has_room:
            release()
            return
        self._number += 1
        wait_s *= 1.0 - SPREAD * self._random.random()
        tick = int((self._clock.monotonic() + wait_s) * _TICKS_PER_S)
        together = self._ticks.get(tick)
        if together is None:
            together = self._ticks[tick] = {}
            heappush(self._next_ticks, tick)
            self._set_timer()
        together[self._number] = None
        self._entries[self._number] = (release, together)
        self._arrived.append(self._number)
        while self._arrived[0] not in self._entries:
            self._arrived.popleft()

    def wake(self) -> None:
        """Release all requests that are held now, or after the rest of the wake-up before.

        A request that is held again meanwhile stays.
        """
        if self._rest is not None:
            self._wakes_after_rest = True
            return
        self._woken = self._number
        if len(self._entries) > CROWD:
            rest_s = len(self._entries) * REST_S
            self._rest = self._clock.call_later(rest_s, self._rested)
        self._release_woken()

    def wake_at_once(self) -> None:
        """Release all requests that are held now, whatever was woken before."""
        if self._rest is not None:
            self._rest.cancel()
        self._rest = None
        self._wakes_after_rest = False
        self.wake()

    def _rested(self) -> None:
        self._rest = None
        if self._wakes_after_rest:
            self._wakes_after_rest = False
            self.wake()

    def _set_timer(self) -> None:
        """Set the timer to the first tick."""
        if not self._next_ticks:
            return
        tick = self._next_ticks[0]
        if self._timer is not None:
            if self._timer_tick <= tick:
                return
            self._timer.cancel()
        self._timer_tick = tick
        delay_s = tick / _TICKS_PER_S - self._clock.monotonic()
        self._timer = self._clock.call_later(max(0.0, delay_s), self._tick)

    def _tick(self) -> None:
        """Waits are over."""
        self._timer = None
        # The timer may be early by the rounding of its delay.
        reached = max(self._timer_tick, int(self._clock.monotonic() * _TICKS_PER_S))
        while self._next_ticks and self._next_ticks[0] <= reached:
            self._ended.extend(self._ticks.pop(heappop(self._next_ticks)))
        self._set_timer()
        self._release_ended()

    def _go_on(self) -> None:
        self._release_ended()
        self._release_woken()

    def _release_ended(self) -> None:
        while self._ended and not self._share.spent():
            self._release(self._ended.popleft())

    def _release_woken(self) -> None:
        while self._arrived and self._arrived[0] <= self._woken and not self._share.spent():
            self._release(self._arrived.popleft())

    def _release(self, number: int) -> None:
        entry = self._entries.pop(number, None)
        if entry is None:
            return
        release, together = entry
        together.pop(number, None)
        release()
