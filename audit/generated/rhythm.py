"""Day and night, weekdays and weekends: how busy a cluster's people and services are.

Rule: only integers and fixed tables, so a moment's weight is the same everywhere. Times are UTC.
"""

import datetime as dt
from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
START_MS: Final = 1_791_180_000_000
"""Monday 2026-10-05, 06:00 UTC: when every generated history begins."""

_BY_HOUR: Final = (
    *(25, 20, 20, 20, 25, 40, 70, 110, 170, 220, 220, 200),
    *(150, 190, 210, 210, 190, 150, 110, 80, 60, 45, 35, 30),
)
"""Percent of the average hour."""
_WEEKEND: Final = 35
"""Percent of a weekday."""
_DAYS_TO_MONDAY: Final = 3
"""1970-01-01 was a Thursday."""


def weekday(time_ms: int) -> int:
    """Return 0 for Monday to 6 for Sunday."""
    return (time_ms // DAY_MS + _DAYS_TO_MONDAY) % 7


def hour(time_ms: int) -> int:
    """Return the hour of the day."""
    return time_ms % DAY_MS // HOUR_MS


def busy_percent(time_ms: int) -> int:
    """Return how busy a moment is, in percent of a weekday's average."""
    weight = _BY_HOUR[hour(time_ms)]
    return weight * _WEEKEND // 100 if weekday(time_ms) >= 5 else weight


def by_day(time_ms: int) -> bool:
    """Whether people are awake."""
    return 7 <= hour(time_ms) < 19


def office_hours(time_ms: int) -> bool:
    """Whether people are at work."""
    return weekday(time_ms) < 5 and by_day(time_ms)


def moment(time_ms: int) -> str:
    """Return a time as a story tells it."""
    when = dt.datetime.fromtimestamp(time_ms // SECOND_MS, dt.UTC)
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
