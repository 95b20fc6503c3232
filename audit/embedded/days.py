"""Days: the UTC dates of times, and time spans cut at midnight."""

import datetime as dt
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

DAY_MS: Final = 86_400_000
_EPOCH = dt.date(1970, 1, 1)


def day_of(time_ms: int) -> str:
    """Return the UTC date of a time, `YYYY-MM-DD`."""
    return day(time_ms // DAY_MS)


@lru_cache(maxsize=4_096)
def day(number: int) -> str:
    """Return the date of a day by its number since 1970-01-01."""
    return (_EPOCH + dt.timedelta(days=number)).isoformat()


def by_day(from_ms: int, until_ms: int) -> Iterable[tuple[int, int]]:
    """Return the number of each day that a span touches, and its milliseconds on that day.

    An empty span touches one day.
    """
    first, last = from_ms // DAY_MS, (until_ms - 1) // DAY_MS
    if last <= first:
        return ((first, until_ms - from_ms),)
    return (
        (first, (first + 1) * DAY_MS - from_ms),
        *((number, DAY_MS) for number in range(first + 1, last)),
        (last, until_ms - last * DAY_MS),
    )
