"""Quantiles of many durations in little memory.

Rule: a fixed array of counts, eight to a doubling, so any quantile is known within 9 % (and the
worst exactly), however many durations there were: no list that grows, nothing to sort.
"""

import math

STEPS = 8
"""Buckets to a doubling."""
SHORTEST_S = 1e-6
DOUBLINGS = 27
"""From 1 us to 134 s."""


class Durations:
    """Durations in seconds, by size."""

    def __init__(self) -> None:
        self._counts = [0] * (STEPS * DOUBLINGS + 1)
        self.count = 0
        self.worst_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration; those outside the range go to its ends."""
        self.count += 1
        self.worst_s = max(self.worst_s, seconds)
        self._counts[_bucket(seconds)] += 1

    def quantile_s(self, share: float) -> float:
        """Return the duration that `share` (0 to 1) of all do not exceed; 0 when there are none.

        The upper bound of its bucket: at most 9 % too long, never too short.
        """
        wanted = math.ceil(share * self.count)
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(self.worst_s, SHORTEST_S * math.pow(2, bucket / STEPS))
        return 0.0

    def clear(self) -> None:
        """Forget all."""
        self._counts = [0] * len(self._counts)
        self.count = 0
        self.worst_s = 0.0


def _bucket(seconds: float) -> int:
    if seconds <= SHORTEST_S:
        return 0
    return min(STEPS * DOUBLINGS, math.ceil(math.log2(seconds / SHORTEST_S) * STEPS))
