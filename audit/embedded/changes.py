"""The job `changes`: who changed what, by day, one row a principal, operation and record type."""

from typing import Any

from audit.embedded.days import day_of
from audit.reading.feed import Feed, Question
from audit.reading.settling import SETTLED
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES

Row = tuple[Any, ...]
_NAMES = {each: record_type_name(each) for each in RECORD_CLASSES}


def changes(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.CHANGES`."""
    feed = Feed(question)
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for offset, header, record, outcome, _, _ in feed.logged(feed.beginning()):
        if outcome != SETTLED:
            continue
        time_ms, provenance = header.timestamp_ms, header.provenance
        key = (day_of(time_ms), provenance.principal, provenance.operation, _NAMES[type(record)])
        row = found.get(key)
        if row is None:
            found[key] = [1, offset, offset, time_ms, time_ms]
        else:
            row[0] += 1
            row[2], row[4] = offset, time_ms
    return [(*key, *row) for key, row in sorted(found.items())]
