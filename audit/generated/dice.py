"""Dice that throw alike on every Python.

Rule: everything is made of `Random.random()` and `getrandbits`, which Python promises to keep, and
of arithmetic that IEEE 754 fixes. `choice`, `sample` and `expovariate` may change between releases
or differ in a last bit between C libraries, and then the same seed would be another history.
"""

from collections.abc import Sequence
from typing import TypeVar

from metadata.uuids import uuid4_from
from runtime.randomness import seeded

T = TypeVar("T")


class Dice:
    """One stream of throws."""

    def __init__(self, *parts: int | str) -> None:
        """Equal parts give equal throws; other parts an independent stream."""
        self._random = seeded(*parts)
        self._throw = self._random.random

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self._throw() < probability

    def fraction(self) -> float:
        """Return a number from 0 on, below 1."""
        return self._throw()

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        return int(self._throw() * limit)

    def between(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        return low + int(self._throw() * (high - low + 1))

    def pick(self, several: Sequence[T]) -> T:
        """Return one of several."""
        return several[int(self._throw() * len(several))]

    def some(self, several: Sequence[T], count: int) -> list[T]:
        """Return `count` different ones, or all, in any order."""
        rest = list(several)
        count = min(count, len(rest))
        for place in range(count):
            other = place + self.below(len(rest) - place)
            rest[place], rest[other] = rest[other], rest[place]
        return rest[:count]

    def around(self, mean_ms: float) -> int:
        """Return a duration in ms from 1 to twice the mean."""
        return 1 + int(self._throw() * 2 * mean_ms)

    def some_bytes(self, length: int) -> bytes:
        """Return random bytes."""
        return self._random.getrandbits(8 * length).to_bytes(length, "big")

    def uuid(self) -> bytes:
        """Return a UUIDv4."""
        return uuid4_from(self._random.getrandbits(122))
