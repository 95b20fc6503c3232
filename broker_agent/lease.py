"""How long a broker may serve without hearing from a controller.

Rule: counted from the *sending* of the last request that was answered, never from the answer's
arrival: the controller noted our contact somewhere between the two, and only the sending is
surely not after it.
"""

import math
from collections.abc import Callable

from runtime.clock import Clock, Timer


class Lease:
    """A right that runs out unless it is renewed."""

    def __init__(self, clock: Clock, length_s: float, on_expired: Callable[[], None]) -> None:
        self._clock = clock
        self._length_s = length_s
        self._on_expired = on_expired
        self._renewed_at = -math.inf
        self._timer: Timer | None = None

    def renew(self, sent_at: float) -> None:
        """A request that was sent at `sent_at` (monotonic seconds) has been answered."""
        if sent_at <= self._renewed_at:
            return
        self._renewed_at = sent_at
        if self._timer is None:
            self._wake_at_the_end()

    def expired(self) -> bool:
        """Whether the right has run out by now."""
        return self.age_s() >= self._length_s

    def age_s(self) -> float:
        """Seconds since the sending of the last answered request; inf: none."""
        return self._clock.monotonic() - self._renewed_at

    def end(self) -> None:
        """Never call back again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _wake_at_the_end(self) -> None:
        # One timer that is moved on when it fires, instead of one a renewal.
        left = self._renewed_at + self._length_s - self._clock.monotonic()
        self._timer = self._clock.call_later(max(0.0, left), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.expired():
            self._on_expired()
        else:
            self._wake_at_the_end()
