"""Who touched a thing: what each batch did to it, the newest first.

Rule: a touch is a batch with records that match. Records of aborted and open transactions are
touches too, and their outcome says so.
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

from audit.questions.search import FoundRecord
from ledger.batch import BatchHeader
from metadata.messages.records_json import record_type_name


class Touch(NamedTuple):
    """What one batch did to a thing."""

    header: BatchHeader
    offset: int
    """That of the first record that matches."""
    outcomes: list[str]
    """`settled`, `aborted`, `open`."""
    records: dict[str, int]
    """The number of records of each type."""
    subjects: list[str]
    """What the records are about, each once."""


class Touches(NamedTuple):
    """The newest touches, newest first, and how many there are in all."""

    newest: list[Touch]
    total: int


def touches(found: Iterable[FoundRecord], limit: int) -> Touches:
    """Return the newest `limit` touches of records that a search yields in the log's order."""
    newest: deque[list[FoundRecord]] = deque(maxlen=limit)
    total = 0
    for one in found:
        if newest and newest[-1][0].logged.header is one.logged.header:
            newest[-1].append(one)
        else:
            newest.append([one])
            total += 1
    return Touches([touch_of(some) for some in reversed(newest)], total)


def touch_of(found: list[FoundRecord]) -> Touch:
    """Return the touch of a batch's records that match."""
    types = Counter(record_type_name(type(one.logged.record)) for one in found)
    return Touch(
        found[0].logged.header,
        found[0].logged.offset,
        sorted({one.logged.outcome for one in found}),
        dict(types),
        list(dict.fromkeys(one.subjects[0] for one in found)),
    )
