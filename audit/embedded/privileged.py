"""The job `privileged`: the changes that an auditor asks about first.

Rule: a record's class declares whether the record is privileged (`metadata.records`).
"""

from collections.abc import Iterator
from typing import Any

from audit.embedded.days import day_of
from audit.embedded.provenance import who
from audit.questions.names import Names
from audit.questions.subjects import fields_text, resource
from audit.reading.feed import Feed, Question
from audit.reading.settling import SETTLED, Logged

Row = tuple[Any, ...]


def privileged(question: Question) -> Iterator[Row]:
    """Yield the rows of `audit.tables.PRIVILEGED`."""
    feed = Feed(question)
    beginning = feed.beginning()
    names = Names(beginning.records)
    for logged in feed.logged(beginning):
        names.learn(logged.record)
        row = privileged_row(logged, names)
        if row is not None:
            yield row


def privileged_row(logged: Logged, names: Names) -> Row | None:
    """Return the row of one record; None if it doesn't count or isn't privileged.

    `names` must have learned it.
    """
    kind = logged.record.privileged() if logged.outcome == SETTLED else None
    if kind is None:
        return None
    time_ms, provenance = logged.header.timestamp_ms, logged.header.provenance
    return (
        logged.offset,
        time_ms,
        day_of(time_ms),
        kind,
        resource(logged.record, names),
        *who(provenance),
        provenance.auth_method,
        provenance.client_address,
        logged.header.acted_as,
        fields_text(logged.record),
    )
