"""From an image to the records of its snapshot, and back.

Rule: the records are in one canonical order, full (no change records, no transaction markers), and
each can be replayed after those before it; the same state gives the same bytes. What brokers
share comes first; what only controllers hold follows, and brokers don't get it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from metadata.buckets import STEP
from metadata.image.delta import MetadataDelta
from metadata.image.families import TABLES
from metadata.image.metadata_image import EMPTY, MetadataImage
from metadata.image.table import ImageTable
from metadata.image.topics import partition_record
from metadata.records import Record

_RECORDS_PER_DELTA = 1 << 18
"""More at once is quicker, and takes more memory for a while."""


def image_to_records(image: MetadataImage, *, for_brokers: bool = False) -> Iterator[Record]:
    """Yield the snapshot of an image; a broker's leaves out what only controllers hold.

    Raises ValueError, at the call, while a transaction is open: a snapshot stops before it, so it
    is made of an older image.
    """
    if image.transaction is not None:
        raise ValueError(f"a transaction is open since offset {image.transaction.offset}")
    if for_brokers:
        return shared_records(image)
    return chain(shared_records(image), controllers_records(image))


def shared_records(image: MetadataImage) -> Iterator[Record]:
    """Yield what brokers hold too, in order. A generator: may be run in slices."""
    for table in TABLES:
        if table.name == "topics":
            yield from _topics(image)
        elif table.name != "partitions" and not table.controllers_only:
            yield from _table(image, table)


def controllers_records(image: MetadataImage) -> Iterator[Record]:
    """Yield what only controllers hold, in order."""
    for table in TABLES:
        if table.controllers_only:
            yield from _table(image, table)


def _table(image: MetadataImage, table: ImageTable) -> Iterator[Record]:
    entries = image.table(table)
    # The outcomes may be a million; their order is kept.
    for key in image.outcomes.order if table.name == "outcomes" else entries:
        yield from table.records(key, entries[key])


def _topics(image: MetadataImage) -> Iterator[Record]:
    """Each topic with its partitions behind it: no need to sort all partitions at once."""
    for topic_id in image.topics.ids:
        yield image.topics.by_id[topic_id]
        for partition_id, partition in image.topics.partitions_of(topic_id):
            yield partition_record((topic_id, partition_id), partition)


def image_from_records(
    records: Iterable[Record],
    offset: int,
    epoch: int,
    timestamp_ms: int,
    *,
    with_state_hash: bool = True,
    keep_outcomes: bool = True,
) -> MetadataImage:
    """Return the image whose snapshot these records are. Raises ReplayError.

    `offset`, `epoch` and `timestamp_ms` are the image's. Brokers load a controllers' snapshot
    with `keep_outcomes=False`.
    """
    loading = load_image(
        records,
        offset,
        epoch,
        timestamp_ms,
        with_state_hash=with_state_hash,
        keep_outcomes=keep_outcomes,
    )
    image = EMPTY
    for image in loading:  # noqa: B007 - the last one is the whole
        pass
    return image


def load_image(
    records: Iterable[Record],
    offset: int,
    epoch: int,
    timestamp_ms: int,
    *,
    with_state_hash: bool = True,
    keep_outcomes: bool = True,
) -> Iterator[MetadataImage]:
    """Do the same in steps of milliseconds, so that a loop can go on between: yields images.

    The last one is the whole; those before it are of no use to anybody.
    """
    image = MetadataImage()
    rest = iter(records)
    done = False
    while not done:
        delta = MetadataDelta(
            image,
            with_state_hash=with_state_hash,
            keep_outcomes=keep_outcomes,
            from_snapshot=True,
        )
        for count, record in enumerate(rest, 1):
            delta.replay(record, offset)
            if count == _RECORDS_PER_DELTA:
                break
            if count % STEP == 0:
                yield image
        else:
            done = True
        delta.finish_batch(offset, epoch, timestamp_ms)
        for _ in delta.apply_in_steps():
            yield image
        image = delta.apply()
        yield image
