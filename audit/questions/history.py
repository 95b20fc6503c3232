"""The history of one thing: every change, with its cause and the values before and after.

Rule: the controllers' own code replays the records of the thing, and no others. The values before
and after come from the images on both sides of a moment. So the history shows exactly what the
cluster held, also if the thing was removed and created again. It takes one pass over the log.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from audit.questions.history_things import ABOUT, NOT, Thing
from audit.questions.history_values import called, differing
from audit.reading.feed import Beginning
from audit.reading.settling import Logged, Moment
from ledger.batch import BatchHeader
from metadata.image import EMPTY, KeyChange, MetadataDelta, MetadataImage, image_from_records


class EntryDifference(NamedTuple):
    """What happened to one entry of the state."""

    what: str
    """`partition:orders-3`."""
    kind: str
    """`created`, `changed` or `removed`."""
    fields: dict[str, tuple[Any, Any]]
    """Before and after of each field that differs. None means that the field was or is not
    there."""


class HistoryEvent(NamedTuple):
    """All that happened to a thing in one moment."""

    moment: Moment
    records: list[Logged]
    """The records that name the thing; if none does, those that changed it."""
    differences: list[EntryDifference]
    """Empty if the record set what was already so."""

    @property
    def causes(self) -> list[BatchHeader]:
        """The batches that hold the records. A transaction may have many."""
        return list({one.header.base_offset: one.header for one in self.records}.values())


def history(
    thing: Thing,
    moments: Iterable[Moment],
    beginning: Beginning | None = None,
    *,
    show_secrets: bool = False,
) -> Iterator[HistoryEvent]:
    """Yield what happened to a thing, moment by moment.

    `beginning`: the state from which the moments begin, if the log was cut. Raises ReplayError.
    """
    image = EMPTY
    if beginning is not None and beginning.offset:
        known = (record for record in beginning.records if thing.judge(record) != NOT)
        place = (beginning.offset, beginning.epoch, beginning.time_ms)
        image = image_from_records(known, *place, with_state_hash=False)
    for moment in moments:
        taken, about = [], []
        for one in moment.records:
            weight = thing.judge(one.record)
            if weight != NOT:
                taken.append(one)
                if weight == ABOUT:
                    about.append(one)
        if not taken:
            continue
        after, differences = _replayed(image, taken, thing, show_secrets=show_secrets)
        if about or differences:
            yield HistoryEvent(moment, about or taken, differences)
        image = after


def _replayed(
    image: MetadataImage, taken: list[Logged], thing: Thing, *, show_secrets: bool
) -> tuple[MetadataImage, list[EntryDifference]]:
    delta = MetadataDelta(image, with_state_hash=False)
    for header, batch in groupby(taken, attrgetter("header")):
        for one in batch:
            delta.replay(one.record, one.offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    after = delta.apply()
    differences = []
    for table, change in delta.changes:
        if table not in thing.other_tables:
            fields = differing(table, change, show_secrets=show_secrets)
            what = called(table, change.key, image, after)
            differences.append(EntryDifference(what, _kind(table, change), fields))
    return after, differences


def _kind(table: str, change: KeyChange[Any, Any]) -> str:
    """Return what happened to an entry. A config or quota changes the thing that has it."""
    if table in _FIELDS_ONLY or (change.before is not None and change.after is not None):
        return "changed"
    return "created" if change.before is None else "removed"


_FIELDS_ONLY = ("configs", "client_quotas")
