"""Reads from the controllers' metrics how long slices on their event loops were, and how late.

Rule: `/metrics` is read before and after a load, and the difference belongs to the load. The bounds
are those of `runtime.loop.slice_meter`. They contain 20 ms and 50 ms, so that a verdict is exact.
"""

import math
import re
from typing import NamedTuple

from benchmarks.instruments.cluster import Controllers, LateTicks, text

_SLICES = re.compile(r'^logberg_loop_slice_cpu_seconds_bucket{le="([^"]+)"} (\d+)$', re.MULTILINE)
_WORST = re.compile(r"^logberg_loop_slice_cpu_worst_seconds (\S+)$", re.MULTILINE)


class Slices(NamedTuple):
    """A process's histogram of slices."""

    buckets: tuple[tuple[float, int], ...]
    """Upper bound in ms, and how many slices were no longer (cumulative)."""
    worst_ms: float

    @classmethod
    def read(cls, metrics: str) -> "Slices":
        """Find it among a process's metrics."""
        worst = _WORST.search(metrics)
        assert worst is not None, "this controller does not show its slices"
        return cls(
            tuple((float(bound) * 1000, int(count)) for bound, count in _SLICES.findall(metrics)),
            float(worst[1]) * 1000,
        )

    def since(self, before: "Slices") -> "Slices":
        """What came after an earlier reading; the worst is its bucket's bound unless it is new."""
        pairs = zip(self.buckets, before.buckets, strict=True)
        buckets = tuple((bound, now - then) for (bound, now), (_, then) in pairs)
        total = buckets[-1][1]
        bound = next((bound for bound, count in buckets if count >= total), 0.0)
        return Slices(buckets, self.worst_ms if self.worst_ms > before.worst_ms else bound)

    @property
    def total(self) -> int:
        """How many slices there were."""
        return self.buckets[-1][1]

    def ms(self, share: float) -> float:
        """The bound that `share` of the slices were within."""
        wanted = math.ceil(share * self.total)
        found = next((bound for bound, count in self.buckets if count >= wanted), math.inf)
        return min(self.worst_ms, found)


class Reading(NamedTuple):
    """All controllers at one moment."""

    slices: tuple[Slices, ...]
    late: tuple[LateTicks, ...]

    def since(self, before: "Reading") -> "Cost":
        """What the worst of the controllers paid since."""
        slices = [now.since(then) for now, then in zip(self.slices, before.slices, strict=True)]
        late = [now.since(then) for now, then in zip(self.late, before.late, strict=True)]
        return Cost(
            max(one.ms(0.999) for one in slices),
            max(one.worst_ms for one in slices),
            max(one.worst_ms for one in late),
        )


class Cost(NamedTuple):
    """Milliseconds; of the controller that fared worst."""

    cpu_p999_ms: float
    cpu_worst_ms: float
    late_worst_ms: float


async def read(controllers: Controllers) -> Reading:
    """Ask all. Raises NoAnswerError."""
    texts = [await text(port, "/metrics", 30.0) for port in controllers.ports.values()]
    return Reading(
        tuple(Slices.read(one) for one in texts), tuple(LateTicks.read(one) for one in texts)
    )
