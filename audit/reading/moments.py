"""Moments: what people type for a point in the log, and the offset that it means.

Rule: a moment becomes the end offset of a whole batch, as `audit.tables` defines it. An offset
inside a batch means the batch's end. A time means the end of the last batch that is not later.
Relative times count back from the log's last timestamp, so an answer does not depend on when
somebody asks.
"""

import datetime as dt
import re
from typing import Final, Protocol

END: Final = "end"

_RELATIVE = re.compile(r"-(\d{1,9})(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EXPECTED: Final = (
    "an offset (4711), a time in UTC or with a zone (2026-11-20T10:00:00Z, 2026-11-20), a time "
    "before the log's last one (-2h, -30m, -7d) or `end`"
)


class DatedLog(Protocol):
    """What must be known of a log to read a moment of it, as `ReadableLog` says."""

    @property
    def log_start(self) -> int: ...
    @property
    def log_end(self) -> int: ...
    @property
    def start_timestamp_ms(self) -> int: ...
    def end_of_batch(self, offset: int) -> int: ...
    def last_timestamp_ms(self) -> int: ...
    def offset_at_time(self, timestamp_ms: int) -> int: ...


class MomentError(ValueError):
    """The text names no moment of this log. The message says what does."""


def offset_of(reader: DatedLog, at: str | None) -> int:
    """Return the end offset that a moment means; None means the end of the log.

    Raises MomentError, LedgerError, OSError.
    """
    text = (at or END).strip()
    if text == END:
        return reader.log_end
    if text.isascii() and text.isdecimal():
        return _of_offset(reader, int(text))
    found = _RELATIVE.fullmatch(text)
    if found:
        back_ms = int(found[1]) * _SECONDS[found[2]] * 1_000
        return _of_time(reader, reader.last_timestamp_ms() - back_ms, text)
    return _of_time(reader, time_ms(text), text)


def time_ms(text: str) -> int:
    """Read an ISO 8601 date or time; UTC if it has no zone. Raises MomentError."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise MomentError(f"{text!r} is not a moment. Use {_EXPECTED}.") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def _of_offset(reader: DatedLog, offset: int) -> int:
    if offset > reader.log_end:
        raise MomentError(f"offset {offset} is not there yet: the log ends at {reader.log_end}.")
    if offset < reader.log_start:
        raise MomentError(
            f"offset {offset} is before {reader.log_start}, where the history here begins."
        )
    return reader.end_of_batch(offset)


def _of_time(reader: DatedLog, timestamp_ms: int, text: str) -> int:
    offset = reader.offset_at_time(timestamp_ms)
    if offset == reader.log_start and timestamp_ms < reader.start_timestamp_ms:
        raise MomentError(
            f"{text} is before offset {reader.log_start}, where the history here begins."
        )
    return offset
