"""The lease: how long a broker may serve without an answer from a controller.

Rule: the lease counts from the *sending* of the last answered request, never from the arrival of
the answer. The controller noted the contact at some moment between the two, and only the sending is
certainly not later than that moment.
"""

import math
from collections.abc import Callable

from runtime.clock import Clock, Timer

_STEP_S = 0.001
"""The shortest timer. A timer may fire early by a rounding error; without this, the lease would set
one for the same instant again and again."""


class Lease:
    """The right to serve; it expires unless it is renewed."""

    def __init__(self, clock: Clock, length_s: float, on_expired: Callable[[], None]) -> None:
        self._clock = clock
        self._length_s = length_s
        self._on_expired = on_expired
        self._renewed_at = -math.inf
        self._timer: Timer | None = None
        self._ended = False

    @property
    def length_s(self) -> float:
        """How long a renewal holds, in seconds from the sending of its request."""
        return self._length_s

    def set_length(self, length_s: float) -> None:
        """Change the length, for the present renewal too."""
        if length_s != self._length_s:
            self._length_s = length_s
            self._wake_at_the_end()

    def renew(self, sent_at: float) -> None:
        """A controller answered a request that was sent at `sent_at` (monotonic seconds)."""
        if sent_at <= self._renewed_at:
            return
        self._renewed_at = sent_at
        if self._timer is None:
            self._wake_at_the_end()

    def expired(self) -> bool:
        """Whether the lease has run out."""
        return self.age_s() >= self._length_s

    def age_s(self) -> float:
        """Seconds since the sending of the last answered request; inf: none was answered."""
        return self._clock.monotonic() - self._renewed_at

    def end(self) -> None:
        """Stop: `on_expired` is not called any more."""
        self._ended = True
        self._cancel()

    def _wake_at_the_end(self) -> None:
        # When the timer fires early because of renewals, it is set again. That is cheaper than to
        # cancel and set a timer at every renewal.
        self._cancel()
        if not self._ended and self._renewed_at > -math.inf:
            left = self._renewed_at + self._length_s - self._clock.monotonic()
            self._timer = self._clock.call_later(max(_STEP_S, left), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.expired():
            self._on_expired()
        else:
            self._wake_at_the_end()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
