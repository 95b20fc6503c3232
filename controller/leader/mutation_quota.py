"""Limits how many partitions changes may create, delete or touch: one token bucket for the cluster.

The bucket is KIP-599's strict one. It holds at most `burst` tokens, one per partition, and fills at
`rate` tokens a second. A change is accepted while the bucket is not below zero, and pays for all
its partitions at once. So one change may take the bucket below zero. Later changes are refused with
THROTTLED, and are told the time until the bucket is back at zero.

The bucket is the leader's soft state. It is in no record, and a new leader begins with a full one.
"""

from math import ceil

from metadata.errors import ErrorCode, LogbergError
from runtime.clock import Clock


class MutationQuota:
    """The bucket. With a rate of 0 nothing is refused."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        """`rate` is in partitions a second, `burst` in partitions."""
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()
        self._epoch = 0
        self.charged = 0
        """Partitions of accepted changes, since this process started."""
        self.refused = 0
        """Changes that the quota refused, since this process started."""

    @property
    def tokens(self) -> float:
        """Tokens in the bucket now; below zero while changes are refused."""
        since_s = self._clock.monotonic() - self._filled_at
        return min(float(self._burst), self._tokens + since_s * self._rate)

    def charge(self, partitions: int, epoch: int) -> None:
        """Accept a change of so many partitions. Raises LogbergError THROTTLED.

        `epoch` is the one in which this controller leads. A new epoch begins with a full bucket.
        """
        if partitions <= 0 or not self._rate:
            return
        if epoch != self._epoch:
            self._epoch, self._tokens = epoch, float(self._burst)
            self._filled_at = self._clock.monotonic()
        tokens = self.tokens
        if tokens < 0:
            self.refused += 1
            wait_ms = max(1, ceil(-tokens / self._rate * 1000))
            raise LogbergError(
                ErrorCode.THROTTLED,
                f"the quota for changes of partitions is used up: it grows by {self._rate:g} "
                f"partitions a second (partition_mutations_per_s); retry in {wait_ms} ms",
                retry_after_ms=wait_ms,
            )
        self._set(tokens - partitions)
        self.charged += partitions

    def refund(self, partitions: int) -> None:
        """Give back what a change paid, because it was refused later."""
        if partitions > 0 and self._rate:
            self._set(min(float(self._burst), self.tokens + partitions))
            self.charged -= partitions

    def _set(self, tokens: float) -> None:
        self._tokens, self._filled_at = tokens, self._clock.monotonic()
