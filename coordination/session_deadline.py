"""Up to when a session certainly lives. Any thread may ask; heartbeats move it.

Rule: once anybody has found that the deadline has passed, it stays passed, whatever is acknowledged
later. So two threads never disagree about a session that was given up.
"""

import threading

from runtime.clock import Clock


class SessionDeadline:
    """The time at which the last acknowledged heartbeat was sent, plus the ttl, minus a margin."""

    def __init__(self, clock: Clock, sent_s: float, ttl_s: float, margin_s: float) -> None:
        self.ttl_s = ttl_s
        """As the store granted it last."""
        self.at_s = sent_s + ttl_s - margin_s
        """On the clock."""
        self._clock = clock
        self._margin_s = margin_s
        self._passed = False
        # A signal's handler may ask while the same thread asks.
        self._guard = threading.RLock()

    @property
    def passed(self) -> bool:
        """Whether it has passed; then it always has."""
        with self._guard:
            self._passed = self._passed or self._clock.monotonic() >= self.at_s
            return self._passed

    def extend(self, sent_s: float, ttl_s: float) -> None:
        """A heartbeat that was sent at `sent_s` was acknowledged; too late, it changes nothing."""
        with self._guard:
            if not self.passed:
                self.ttl_s = ttl_s
                self.at_s = max(self.at_s, sent_s + ttl_s - self._margin_s)
