"""Numbers, times and lists as the report writes them.

Rule: a number carries its unit. Times are UTC, and the page says so once. Nothing is rounded to
look better than it was: a share of time below 100 % never reads as 100 %.
"""

import datetime as dt
from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_UNITS = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"))
_TIED = "\N{NO-BREAK SPACE}"
"""Between a number and its unit."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def number(value: int) -> str:
    """Write a whole number in groups of three digits."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def counted(value: int, one: str, many: str = "") -> str:
    """Write a number with its noun. `many` is the plural if an s isn't enough."""
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def duration(length_ms: int) -> str:
    """Write a length of time in its two largest units: `3 d 4 h`, `12 min 4 s`, `840 ms`, `0`."""
    return _of_time(length_ms).replace(" ", _TIED)


def _of_time(length_ms: int) -> str:
    if length_ms < SECOND_MS:
        return f"{length_ms} ms" if length_ms else "0"
    if length_ms < 10 * SECOND_MS:
        tenths = length_ms // 100
        return f"{tenths // 10}.{tenths % 10} s"
    place = next(n for n, (unit_ms, _) in enumerate(_UNITS) if length_ms >= unit_ms)
    unit_ms, unit = _UNITS[place]
    whole, rest = divmod(length_ms, unit_ms)
    said = f"{number(whole)} {unit}"
    for small_ms, small in _UNITS[place + 1 : place + 2]:
        if rest >= small_ms:
            said += f" {rest // small_ms} {small}"
    return said


def share(part: int, whole: int) -> str:
    """Write a part of a whole in percent, cut and never rounded up; a dash if the whole is 0.

    A share that is not all shows its first digits that differ from 100: `99.9993 %`.
    """
    if whole <= 0:
        return "\N{EN DASH}"
    if part >= whole:
        return f"100{_TIED}%"
    exact = Decimal(part) * 100 / Decimal(whole)
    for places in ("0.1", "0.01", "0.001", "0.0001", "0.00001", "0.000001"):
        cut = exact.quantize(Decimal(places), rounding=ROUND_DOWN)
        if exact < 99 or 2 * Decimal(places) <= 100 - cut:
            if part and not cut:
                return f"under 0.1{_TIED}%"
            return f"{cut.normalize():f}{_TIED}%"
    return f"over 99.999998{_TIED}%"


def moment(timestamp_ms: int) -> str:
    """Write a time to the second, in UTC."""
    return f"{_datetime(timestamp_ms):%Y-%m-%d %H:%M:%S}"


def minute(timestamp_ms: int) -> str:
    """Write a time to the minute, in UTC."""
    return f"{_datetime(timestamp_ms):%Y-%m-%d %H:%M}"


def utc(timestamp_ms: int) -> str:
    """Write a time as a command's option takes it: `2026-10-25T01:40:00Z`."""
    return f"{_datetime(timestamp_ms):%Y-%m-%dT%H:%M:%SZ}"


def tick(timestamp_ms: int) -> str:
    """Write a time on an axis: its hour and minute, or its day if it is midnight."""
    at = _datetime(timestamp_ms)
    return f"{at:%-d %b}" if timestamp_ms % DAY_MS == 0 else f"{at:%H:%M}"


def day_of(timestamp_ms: int) -> str:
    """Return the UTC date of a time."""
    return f"{_datetime(timestamp_ms):%Y-%m-%d}"


def day_ms(day: str) -> int:
    """Return when a UTC date begins."""
    return (dt.date.fromisoformat(day) - _EPOCH.date()).days * DAY_MS


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _datetime(timestamp_ms: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=timestamp_ms)
