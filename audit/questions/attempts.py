"""Refused attempts in words: on what, by whom, from where, why, and how often.

Rule: an attempt is not a change. It never counts as one, and it is shown apart from changes.
"""

from collections import deque
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from audit.questions.search import Filter, FoundRecord
from audit.reading.callers import caller
from audit.reading.dump import utc
from audit.reading.settling import SETTLED
from metadata.messages.records_json import record_type_name
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.records import AttemptOutcome, AttemptsRecord

ATTEMPTS_TYPE: Final = record_type_name(AttemptsRecord)
_VERBS: Final = {
    AttemptOutcome.REFUSED: "refused",
    AttemptOutcome.WOULD_BE_REFUSED: "would be refused",
    AttemptOutcome.ACCEPTED: "accepted",
}
NOBODY: Final = "nobody known"
"""Who was not authenticated."""


class FoundAttempts(NamedTuple):
    """Attempts of one kind."""

    offset: int
    timestamp_ms: int
    record: AttemptsRecord


class NewestAttempts(NamedTuple):
    """The newest, newest first, and how many records and attempts there are in all."""

    newest: list[FoundAttempts]
    records: int
    attempts: int


def attempts_on(*things: str) -> Filter:
    """Return the search for attempts on any of some things.

    They are as people type them: `topic:orders`, or `orders`.
    """
    patterns = (f"tried:{each}" if ":" in each else f"tried:*:{each}" for each in things)
    return Filter(resources=tuple(patterns), types=(ATTEMPTS_TYPE,), outcomes=(SETTLED,))


def newest_attempts(found: Iterable[FoundRecord], limit: int) -> NewestAttempts:
    """Return the newest `limit` attempts of what a search yields in the log's order."""
    newest: deque[FoundAttempts] = deque(maxlen=limit)
    records = attempts = 0
    for one in found:
        record = one.logged.record
        assert isinstance(record, AttemptsRecord)
        records += 1
        attempts += record.count
        newest.append(FoundAttempts(one.logged.offset, one.logged.header.timestamp_ms, record))
    return NewestAttempts(list(reversed(newest)), records, attempts)


def attempts_line(found: FoundAttempts, opener: PersonOpener = NO_OPENER) -> str:
    """Return attempts as one line for people. `opener` opens the name of who tried."""
    record = found.record
    who = caller(
        opener.shown(record.principal) or NOBODY,
        auth_method=record.auth_method if record.principal else "",
        client_address=record.address,
    )
    through = f" through {record.through}" if record.through else ""
    what = f"{record.operation} {record.resource}".rstrip()
    why = f": {record.reason or record.code}" if record.reason or record.code else ""
    span = utc(record.first_ms)
    if record.last_ms != record.first_ms:
        span += f" to {utc(record.last_ms)}"
    return (
        f"{found.offset}  {span}  {who}{through}  {_verb(record)} {record.count} times  {what}{why}"
    )


def attempts_json(found: FoundAttempts, opener: PersonOpener = NO_OPENER) -> dict[str, Any]:
    """Return attempts as plain values. `opener` opens the name of who tried."""
    return {
        "offset": found.offset,
        "time": utc(found.timestamp_ms),
        "attempts": opener.record_words(found.record)["data"],
    }


def code_word(codes: type[IntEnum], number: int) -> str:
    """Return the word for a code; for a code of a later release its number."""
    try:
        return codes(number).name.lower()
    except ValueError:
        return str(number)


def _verb(record: AttemptsRecord) -> str:
    try:
        return _VERBS.get(AttemptOutcome(record.outcome), "counted")
    except ValueError:
        return "counted"
