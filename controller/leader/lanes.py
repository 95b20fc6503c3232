"""Queues for decisions: what comes first, what users ask for, and next rounds of long decisions.

`first` holds decisions of the controller, and those that brokers need to stay in service. Their
number is bounded by the number of brokers.

User requests are bounded in number and in waiting time: an answer after the caller has given up is
wasted work. The expected waiting time comes from the pace of recent decisions, so a burst is
limited before it has become a long queue.

The next round of a long decision comes after everything that is `first`. Rounds alternate with user
requests, so neither blocks the other. The proposer leaves rounds out while much is not committed
yet: what is decided between two rounds then waits for few of them at the disk and at the standbys.
"""

from collections import deque
from collections.abc import Iterator
from math import exp
from typing import Generic, TypeVar

from runtime.clock import Clock

T = TypeVar("T")

WAIT_MAX_S = 2.0
"""A user request that would wait for longer, at the recent pace, is refused. Clients give a request
five seconds or more. The pace of half a second is a rough guess: with a bound of one second, some
of 512 callers were refused on a slow machine whose longest answer took 0.65 s."""
_PACE_MAX_S = 0.1
"""The longest time that one decision adds to the pace. One slow decision says little about the
next ones."""
_PACE_OVER_S = 0.5
"""The pace is that of about so much time under way. A number of decisions would not do: the leader
takes many at once, and the first one of a group would count for the wait of all."""
_UNKNOWN_PACE_OVER = 64
"""So many decisions that took no time stand for what isn't known at first."""


class Lanes(Generic[T]):
    """The queues."""

    def __init__(self, clock: Clock, waiting_max: int) -> None:
        self._clock = clock
        self._waiting_max = waiting_max
        self._first: deque[T] = deque()
        self._waiting: deque[tuple[float, T]] = deque()
        """User requests, and since when they wait."""
        self._rounds: deque[T] = deque()
        self._round_taken = False
        self.took_round = False
        """The item that was taken last is the next round of a long decision."""
        self._taken_at = 0.0
        self._busy_s = 0.0
        self._taken = float(_UNKNOWN_PACE_OVER)
        """Seconds in which user requests waited for others, and how many were taken; both fade."""

    def __len__(self) -> int:
        return len(self._first) + len(self._rounds) + len(self._waiting)

    @property
    def overloaded(self) -> bool:
        """A user request that comes now would wait for too long."""
        waiting = self._waiting
        if not waiting:
            return False
        waited_s = self._clock.monotonic() - waiting[0][0]
        must_wait_s = max(waited_s, len(waiting) * self._busy_s / self._taken)
        return len(waiting) >= self._waiting_max or must_wait_s > WAIT_MAX_S

    def add(self, item: T, *, first: bool) -> bool:
        """Add an item; False if it is refused because too many wait."""
        if first:
            self._first.append(item)
        elif self.overloaded:
            return False
        else:
            self._waiting.append((self._clock.monotonic(), item))
        return True

    def add_round(self, item: T) -> None:
        """Add the next round of an item that was taken out."""
        self._rounds.append(item)
        self._round_taken = True

    @property
    def rounds(self) -> Iterator[T]:
        """The items whose next round waits."""
        return iter(self._rounds)

    @property
    def has_first(self) -> bool:
        """An item that goes first is waiting."""
        return bool(self._first)

    def has_more(self, *, rounds: bool = True) -> bool:
        """Return whether `take` has an item to give, with or without the next rounds."""
        return bool(self._first or self._waiting or (rounds and self._rounds))

    def take(self, *, rounds: bool = True) -> T:
        """Take out the next item; without `rounds`, no next round of a long decision."""
        self.took_round = False
        if self._first:
            return self._first.popleft()
        if rounds and self._rounds and not (self._round_taken and self._waiting):
            self._round_taken = self.took_round = True
            return self._rounds.popleft()
        self._round_taken = False
        since, item = self._waiting.popleft()
        now = self._clock.monotonic()
        if since <= self._taken_at:
            # It waited while the previous one was decided: measure the pace.
            took_s = min(now - self._taken_at, _PACE_MAX_S)
            left = exp(-took_s / _PACE_OVER_S)
            self._busy_s = self._busy_s * left + took_s
            self._taken = self._taken * left + 1
        self._taken_at = now
        return item

    def take_all(self) -> list[T]:
        """Take out all items."""
        found = [*self._first, *self._rounds, *(item for _, item in self._waiting)]
        self._first.clear()
        self._rounds.clear()
        self._waiting.clear()
        return found
