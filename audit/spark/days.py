"""Availability by day: what a thing's intervals add up to, while the log grows.

Rule: an interval counts on each day from that of its first millisecond to that of its last; an
empty one counts on its first day. Time never falls in the log. So a day is over once the log has
reached a later one, and only the newest day's sums are carried on.
"""

import datetime as dt
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

DAY_MS: Final = 86_400_000
_EPOCH: Final = dt.date(1970, 1, 1)
_LAST_DAY: Final = (dt.date.max - _EPOCH).days

PRESENT, OFFLINE, UNDER_MIN_ISR, FENCED, LEADER_CHANGES = range(5)
"""The places of the sums, in the order of audit.tables.AVAILABILITY."""
Sums = list[int]


@lru_cache(maxsize=4_096)
def day_text(number: int) -> str:
    """Return the date of a day by its number since 1970; years end with 9999."""
    return (_EPOCH + dt.timedelta(days=min(number, _LAST_DAY))).isoformat()


def by_day(from_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
    """Yield each day that a span touches, and the span's milliseconds on it."""
    first = from_ms // DAY_MS
    last = max((until_ms - 1) // DAY_MS, first)
    for number in range(first, last + 1):
        begins = number * DAY_MS
        yield number, min(until_ms, begins + DAY_MS) - max(from_ms, begins)


class DaySums(msgspec.Struct, array_like=True):
    """The sums of one thing by day, and up to where its present interval is in them."""

    counted_ms: int
    days: dict[int, Sums] = {}

    def begin(self, from_ms: int) -> None:
        """Begin an interval."""
        self.counted_ms = from_ms

    def add(self, from_ms: int, until_ms: int, places: tuple[int, ...]) -> None:
        """Count the interval that began at `from_ms` up to a time, in the sums at `places`."""
        since = self.counted_ms
        if until_ms <= since and since != from_ms:
            return
        for number, length in by_day(since, until_ms):
            sums = self._of(number)
            for place in places:
                sums[place] += length
        self.counted_ms = until_ms

    def change_leader(self, time_ms: int) -> None:
        """Count a change of leader."""
        self._of(time_ms // DAY_MS)[LEADER_CHANGES] += 1

    def take_before(self, day: int) -> list[tuple[int, Sums]]:
        """Remove and return the days before this one: they are over."""
        over = [number for number in self.days if number < day]
        return [(number, self.days.pop(number)) for number in over]

    def shown(
        self, day: int, horizon_ms: int, from_ms: int | None, places: tuple[int, ...]
    ) -> Sums | None:
        """Return a day's sums with the interval since `from_ms` up to the horizon, if it has any.

        `from_ms`: None if no interval lasts.
        """
        sums = self.days.get(day)
        if from_ms is None or (horizon_ms <= self.counted_ms and self.counted_ms != from_ms):
            return None if sums is None else list(sums)
        shown = [0] * 5 if sums is None else list(sums)
        for place in places:
            shown[place] += horizon_ms - self.counted_ms
        return shown

    def _of(self, number: int) -> Sums:
        sums = self.days.get(number)
        if sums is None:
            sums = self.days[number] = [0] * 5
        return sums
