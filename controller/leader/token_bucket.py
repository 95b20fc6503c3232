"""KIP-599's strict token bucket.

It holds at most `burst` tokens and fills at `rate` tokens a second. A charge is accepted while the
bucket is not below zero, and takes all of its tokens at once. So one charge may take the bucket
below zero; later ones must wait until it is back at zero.
"""

from math import ceil

from runtime.clock import Clock


class TokenBucket:
    """One bucket, full when it is made."""

    def __init__(self, clock: Clock, rate: float, burst: float) -> None:
        """`rate` is in tokens a second."""
        self._clock = clock
        self._tokens = burst
        self._filled_at = clock.monotonic()
        self.rate = rate
        self.burst = burst

    @property
    def tokens(self) -> float:
        """Tokens in the bucket now; below zero while charges are refused."""
        since_s = self._clock.monotonic() - self._filled_at
        return min(self.burst, self._tokens + since_s * self.rate)

    def wait_ms(self) -> int:
        """Return after how many ms a charge is accepted; 0: now."""
        tokens = self.tokens
        return 0 if tokens >= 0 else max(1, ceil(-tokens / self.rate * 1000))

    def take(self, tokens: float) -> None:
        """Take tokens out; a negative number puts them back."""
        self._tokens = min(self.burst, self.tokens - tokens)
        self._filled_at = self._clock.monotonic()

    def fill(self) -> None:
        """Fill the bucket up."""
        self._tokens, self._filled_at = self.burst, self._clock.monotonic()
