"""The times between acknowledged writes, and in which change of the voters they fell."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Pause(NamedTuple):
    """Between two writes that were acknowledged one after the other."""

    began: float
    """Monotonic seconds."""
    took_s: float


def longest_within(answered_at: Sequence[float], began: float, ended: float) -> Pause:
    """Return the longest pause that has a moment in common with a span of time.

    A pause that no write ends lasts until the span's end.
    """
    at = sorted(answered_at)
    pauses = [Pause(one, other - one) for one, other in pairwise(at)]
    if at and at[-1] < ended:
        pauses.append(Pause(at[-1], ended - at[-1]))
    within = [p for p in pauses if p.began < ended and p.began + p.took_s > began]
    return max(within, key=lambda pause: pause.took_s, default=Pause(began, ended - began))
