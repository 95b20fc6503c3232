"""The job `attempts`: who tried what and was refused."""

from collections.abc import Iterator
from typing import Any

from audit.embedded.days import day_of
from audit.questions.attempts import code_word
from audit.reading.feed import Feed, Question
from audit.reading.settling import SETTLED, Logged
from metadata.records import AttemptDetail, AttemptOutcome, AttemptsRecord

Row = tuple[Any, ...]


def attempts(question: Question) -> Iterator[Row]:
    """Yield the rows of `audit.tables.ATTEMPTS`."""
    feed = Feed(question)
    for logged in feed.logged(feed.beginning()):
        row = attempts_row(logged)
        if row is not None:
            yield row


def attempts_row(logged: Logged) -> Row | None:
    """Return the row of one record; None if it counts no attempts, or doesn't count."""
    record = logged.record
    if not isinstance(record, AttemptsRecord) or logged.outcome != SETTLED:
        return None
    time_ms = logged.header.timestamp_ms
    return (
        logged.offset,
        time_ms,
        day_of(time_ms),
        code_word(AttemptOutcome, record.outcome),
        record.principal,
        record.through,
        record.auth_method,
        record.operation,
        record.resource,
        record.address,
        record.code,
        record.reason,
        record.count,
        record.first_ms,
        record.last_ms,
        record.controller_id,
        code_word(AttemptDetail, record.detail),
        record.request,
        record.client_id,
        record.body_sha256,
        record.answer,
    )
