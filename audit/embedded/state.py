"""The job `state`: the state at an offset, as each table's number of entries and share of the hash.

Rule: the state comes from the controllers' own replay. The shares follow the definition of the
state hash: the sum over the records that restore each entry. The totals are the image's state hash.
"""

from typing import Any, Final

from audit.reading.feed import Feed, Question
from audit.reading.settling import records_of
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_from_records
from metadata.image.families import TABLES
from metadata.state_hash import StateHash, part_of

Row = tuple[Any, ...]
TOTAL: Final = "*"
_BATCHES_PER_DELTA = 4_096


def state(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.STATE_COUNTS`."""
    image = image_at(Feed(question))
    entries, total = 0, StateHash()
    rows: list[Row] = []
    for table in TABLES:
        held = image.table(table)
        part = sum(part_of(table.records(key, value)) for key, value in held.unordered_items())
        share = StateHash().plus(*((0, part) if table.controllers_only else (part, 0)))
        rows.append(_row(table.name, len(held), share))
        entries += len(held)
        total = total.plus(share.shared, share.controllers)
    rows.append(_row(TOTAL, entries, total))
    rows.sort()
    return rows


def _row(table: str, entries: int, share: StateHash) -> Row:
    hashes = share.encode()
    return (table, entries, hashes[:32].hex(), hashes[32:].hex())


def image_at(feed: Feed) -> MetadataImage:
    """Return the image at the feed's end, without its state hash. Raises ReplayError."""
    beginning = feed.beginning()
    image = EMPTY
    if beginning.offset:
        image = image_from_records(
            beginning.records,
            beginning.offset,
            beginning.epoch,
            beginning.time_ms,
            with_state_hash=False,
        )
    delta = MetadataDelta(image, with_state_hash=False)
    for number, batch in enumerate(feed.batches(beginning.offset), 1):
        header = batch.header
        delta.replay_all(records_of(batch), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        if number % _BATCHES_PER_DELTA == 0:
            delta = MetadataDelta(delta.apply(), with_state_hash=False)
    return delta.apply()
