"""Days: UTC dates of times, and a span of time cut at midnights."""

import datetime as dt
from collections.abc import Iterator
from functools import lru_cache

DAY_MS = 86_400_000
_EPOCH = dt.date(1970, 1, 1)


def day_of(time_ms: int) -> str:
    """Return the UTC date of a time, `YYYY-MM-DD`."""
    return _date(time_ms // DAY_MS)


@lru_cache(maxsize=4_096)
def _date(number: int) -> str:
    return (_EPOCH + dt.timedelta(days=number)).isoformat()


def by_day(from_ms: int, until_ms: int) -> Iterator[tuple[str, int]]:
    """Yield each day that a span touches, and how many ms of it; an empty one touches one day."""
    for number in range(from_ms // DAY_MS, max(from_ms, until_ms - 1) // DAY_MS + 1):
        begin, end = number * DAY_MS, (number + 1) * DAY_MS
        yield _date(number), min(until_ms, end) - max(from_ms, begin)
