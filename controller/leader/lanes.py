"""What waits to be decided, in two lanes, and the rounds of what is decided bit by bit.

Rule: decisions of our own and those that brokers need to stay in service come before what people
ask for, and are bounded by the number of brokers. What people ask for is bounded twice: in number,
and in time, for an answer that comes after its asker has given up is work that helps nobody. Who
would wait for too long is known by the pace of those before: a burst is judged before it has
become a queue.

The next round of a long decision comes after all that is first. It takes turns with what people ask
for, so that neither keeps the other waiting.
"""

from collections import deque
from typing import Generic, TypeVar

from runtime.clock import Clock

T = TypeVar("T")

WAIT_MAX_S = 1.0
"""Nobody is let in who would wait for longer, by the pace of the last decisions."""
_PACE_MAX_S = 0.1
"""One decision that takes long says little of those behind it."""
_PACE_OVER = 16
"""Decisions over which the pace is smoothed."""


class Lanes(Generic[T]):
    """The queues."""

    def __init__(self, clock: Clock, waiting_max: int) -> None:
        self._clock = clock
        self._waiting_max = waiting_max
        self._first: deque[T] = deque()
        self._waiting: deque[tuple[float, T]] = deque()
        """What people ask for, and since when."""
        self._rounds: deque[T] = deque()
        self._round_taken = False
        self._taken_at = 0.0
        self._pace_s = 0.0
        """How long one of them keeps the next one waiting."""

    def __len__(self) -> int:
        return len(self._first) + len(self._rounds) + len(self._waiting)

    @property
    def overloaded(self) -> bool:
        """Whoever comes now would wait for too long."""
        waiting = self._waiting
        if not waiting:
            return False
        waited_s = self._clock.monotonic() - waiting[0][0]
        must_wait_s = max(waited_s, len(waiting) * self._pace_s)
        return len(waiting) >= self._waiting_max or must_wait_s > WAIT_MAX_S

    def add(self, item: T, *, first: bool) -> bool:
        """Let it in, or not."""
        if first:
            self._first.append(item)
        elif self.overloaded:
            return False
        else:
            self._waiting.append((self._clock.monotonic(), item))
        return True

    def add_round(self, item: T) -> None:
        """Let in the next round of what was taken out."""
        self._rounds.append(item)
        self._round_taken = True

    @property
    def has_first(self) -> bool:
        """Something of our own, or of a broker, waits."""
        return bool(self._first)

    def take(self) -> T:
        """Take out what is next."""
        if self._first:
            return self._first.popleft()
        if self._rounds and not (self._round_taken and self._waiting):
            self._round_taken = True
            return self._rounds.popleft()
        self._round_taken = False
        since, item = self._waiting.popleft()
        now = self._clock.monotonic()
        if since <= self._taken_at:
            # It waited for the one before: that is the pace of a crowd.
            took_s = min(now - self._taken_at, _PACE_MAX_S)
            self._pace_s += (took_s - self._pace_s) / _PACE_OVER
        self._taken_at = now
        return item

    def take_all(self) -> list[T]:
        """Take out everything."""
        found = [*self._first, *self._rounds, *(item for _, item in self._waiting)]
        self._first.clear()
        self._rounds.clear()
        self._waiting.clear()
        return found
