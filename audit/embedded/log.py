"""The job `log`: every record, with who, when, its outcome, and what it is about."""

from collections.abc import Iterator
from typing import Any

from audit.embedded.days import day_of
from audit.embedded.provenance import who
from audit.questions.names import Names
from audit.questions.subjects import fields_text, place, resource
from audit.reading.feed import Feed, Question
from audit.reading.settling import Logged, settled
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES

Row = tuple[Any, ...]
_TYPES = {each: record_type_name(each) for each in RECORD_CLASSES}


def log(question: Question) -> Iterator[Row]:
    """Yield the rows of `audit.tables.LOG`."""
    return log_rows(Feed(question))


def log_rows(feed: Feed) -> Iterator[Row]:
    """Yield the rows in order, as soon as their outcomes are known."""
    names = Names(feed.known())
    for logged in settled(feed.batches()):
        names.learn(logged.record)
        yield log_row(logged, names)


def log_row(logged: Logged, names: Names) -> Row:
    """Return the row of one record. `names` must have learned it."""
    header, record = logged.header, logged.record
    provenance = header.provenance
    return (
        logged.offset,
        header.timestamp_ms,
        day_of(header.timestamp_ms),
        header.epoch,
        header.base_offset,
        provenance.auth_method,
        provenance.client_address,
        provenance.client_id,
        *who(provenance),
        _TYPES[type(record)],
        record.VERSION,
        logged.outcome,
        logged.settled_base,
        logged.settled_ms,
        *place(record, names),
        resource(record, names),
        fields_text(record),
        header.acted_as,
    )
