"""Limits how many partitions changes may create, delete or touch: one token bucket for the cluster.

A change pays one token for each of its partitions (`token_bucket`). One that is refused gets
THROTTLED and the time until the bucket is back at zero.

The bucket is the leader's soft state. It is in no record, and a new leader begins with a full one.
"""

from controller.leader.token_bucket import TokenBucket
from metadata.errors import ErrorCode, LogbergError
from runtime.clock import Clock


class MutationQuota:
    """The cluster's bucket. With a rate of 0 nothing is refused."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        """`rate` is in partitions a second, `burst` in partitions."""
        self._bucket = TokenBucket(clock, rate, float(burst))
        self._epoch = 0
        self.charged = 0
        """Partitions of accepted changes, since this process started."""
        self.refused = 0
        """Changes that the quota refused, since this process started."""

    @property
    def tokens(self) -> float:
        """Tokens in the bucket now; below zero while changes are refused."""
        return self._bucket.tokens

    def charge(self, partitions: int, epoch: int) -> None:
        """Accept a change of so many partitions. Raises LogbergError THROTTLED.

        `epoch` is the one in which this controller leads. A new epoch begins with a full bucket.
        """
        if partitions <= 0 or not self._bucket.rate:
            return
        if epoch != self._epoch:
            self._epoch = epoch
            self._bucket.fill()
        wait_ms = self._bucket.wait_ms()
        if wait_ms:
            self.refused += 1
            raise LogbergError(
                ErrorCode.THROTTLED,
                f"the quota for changes of partitions is used up: it grows by "
                f"{self._bucket.rate:g} partitions a second (partition_mutations_per_s); "
                f"retry in {wait_ms} ms",
                retry_after_ms=wait_ms,
            )
        self._bucket.take(partitions)
        self.charged += partitions

    def refund(self, partitions: int) -> None:
        """Give back what a change paid, because it was refused later."""
        if partitions > 0 and self._bucket.rate:
            self._bucket.take(-partitions)
            self.charged -= partitions
