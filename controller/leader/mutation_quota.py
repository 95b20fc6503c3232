"""How many partitions changes may create, delete or touch: one token bucket for the cluster.

Rule: the bucket is KIP-599's strict one. It holds at most `burst` tokens, one a partition, and
fills at `rate` tokens a second. A change is let in while the bucket is not below zero, and pays for
all its partitions at once, so the bucket may go below zero for one change. Later changes are
refused with THROTTLED, and with the time until the bucket is back at zero.

The bucket is soft state of the leader: it is in no record, and a new leader begins with a full one.
"""

from math import ceil

from metadata.errors import ErrorCode, LogbergError
from runtime.clock import Clock


class MutationQuota:
    """The bucket. A rate of 0 means that nothing is refused."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        """`rate` is in partitions a second, `burst` in partitions."""
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()
        self._epoch = 0
        self.charged = 0
        """Partitions of changes that were let in, since this process started."""
        self.refused = 0
        """Changes that were answered THROTTLED by the quota, since this process started."""

    @property
    def tokens(self) -> float:
        """What the bucket holds now; below zero while changes are refused."""
        since_s = self._clock.monotonic() - self._filled_at
        return min(float(self._burst), self._tokens + since_s * self._rate)

    def charge(self, partitions: int, epoch: int) -> None:
        """Let a change of so many partitions in. Raises LogbergError THROTTLED.

        `epoch` is the one that we lead in; a new one begins with a full bucket.
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
        """Give back what a change paid that was refused later."""
        if partitions > 0 and self._rate:
            self._set(min(float(self._burst), self.tokens + partitions))
            self.charged -= partitions

    def _set(self, tokens: float) -> None:
        self._tokens, self._filled_at = tokens, self._clock.monotonic()
