"""Moments: what people type for a place in the log's time, and the offset it stands for.

Rule: a moment becomes the end offset of a whole batch, by the rules of `audit.tables`: an offset
inside a batch stands for the batch's end, a time for the end of the last batch that is not later.
Relative times count from the log's last timestamp, so that an answer doesn't depend on when one
asks.
"""

import datetime as dt
import re
from typing import Final

from ledger.reader import LedgerReader

END: Final = "end"

_RELATIVE = re.compile(r"-(\d{1,9})(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EXPECTED: Final = (
    "an offset (4711), a time in UTC or with its zone (2026-11-20T10:00:00Z, 2026-11-20), a time "
    "before the log's last (-2h, -30m, -7d) or `end`"
)


class MomentError(ValueError):
    """What was typed names no moment of this log; the message says what does."""


def offset_of(reader: LedgerReader, at: str | None) -> int:
    """Return the end offset that a moment stands for; None is the end of the log.

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
    """Read an ISO 8601 date or time, in UTC where no zone is named. Raises MomentError."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise MomentError(f"{text!r} is no moment: {_EXPECTED} is meant.") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def _of_offset(reader: LedgerReader, offset: int) -> int:
    if offset > reader.log_end:
        raise MomentError(f"offset {offset} is not there yet: the log ends at {reader.log_end}.")
    if offset < reader.log_start:
        raise MomentError(
            f"offset {offset} is before {reader.log_start}, where the history that is here begins."
        )
    return reader.end_of_batch(offset)


def _of_time(reader: LedgerReader, timestamp_ms: int, text: str) -> int:
    offset = reader.offset_at_time(timestamp_ms)
    if offset == reader.log_start and timestamp_ms < reader.start_timestamp_ms:
        raise MomentError(
            f"{text} is before offset {reader.log_start}, where the history that is here begins."
        )
    return offset
