"""Turns an image into the records of its snapshot, and back.

Rule: equal states give equal bytes. The records are in one canonical order, in which each can be
replayed after those before it. Each holds the whole state of an entry: there are no change records
and no transaction markers. The records that brokers share come first. Those that only controllers
hold follow, and brokers don't get them.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import msgspec

from metadata.buckets import STEP
from metadata.image.delta import MetadataDelta
from metadata.image.families import TABLES
from metadata.image.metadata_image import EMPTY, MetadataImage
from metadata.image.partition import partition_of, partition_record
from metadata.image.table import ImageTable
from metadata.image.topics_loading import TopicsLoading
from metadata.records import PartitionRecord, Record, TopicRecord
from metadata.state_hash import part_of

_RECORDS_PER_DELTA = 1 << 18
"""How many records a load replays into one delta. More would be quicker and take more memory."""


def image_to_records(image: MetadataImage, *, for_brokers: bool = False) -> Iterator[Record]:
    """Yield the records of an image's snapshot.

    `for_brokers` leaves out the records that only controllers hold. Raises ValueError at the call
    if a transaction is open: take an image from before its Begin.
    """
    if image.transaction is not None:
        raise ValueError(f"a transaction is open since offset {image.transaction.offset}")
    if for_brokers:
        return shared_records(image)
    return chain(shared_records(image), controllers_records(image))


def shared_records(image: MetadataImage) -> Iterator[Record]:
    """Yield the records that brokers hold too, in order. The caller may run it in slices."""
    for table in TABLES:
        if table.name == "topics":
            yield from _topics(image)
        elif table.name != "partitions" and not table.controllers_only:
            yield from table_records(image, table)


def controllers_records(image: MetadataImage) -> Iterator[Record]:
    """Yield the records that only controllers hold, in order."""
    for table in TABLES:
        if table.controllers_only:
            yield from table_records(image, table)


def table_records(image: MetadataImage, table: ImageTable) -> Iterator[Record]:
    """Yield the records of one table in order; for any but topics and partitions."""
    entries = image.table(table)
    order = _ORDERS.get(table.name)
    for key in entries if order is None else order(image):
        yield from table.records(key, entries[key])


_ORDERS: Final[Mapping[str, Callable[[MetadataImage], Iterable[Any]]]] = {
    "sessions": lambda image: image.coordination.session_order,
    "entries": lambda image: image.coordination.entry_order,
    "keys": lambda image: image.coordination.key_order,
    "outcomes": lambda image: image.outcomes.order,
}
"""By table: there may be a million entries, and the image holds their keys in order. So they aren't
sorted."""


def _topics(image: MetadataImage) -> Iterator[Record]:
    """Yield each topic, then its partitions. So all partitions are never sorted at once."""
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
    """Return the image from the records of its snapshot. Raises ReplayError.

    `offset`, `epoch` and `timestamp_ms` are those of the image. A broker that loads a snapshot for
    controllers passes `keep_outcomes=False`.
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
    begin: MetadataImage | None = None,
) -> Iterator[MetadataImage]:
    """Do what `image_from_records` does in steps of milliseconds, so that an event loop can run.

    `begin` is the image of the records before these; None: there are none. Yields an image after
    each step. Only the last one is complete; the others can't be used.
    """
    image = MetadataImage() if begin is None else begin
    rest = iter(records)
    done = False
    while not done:
        delta = MetadataDelta(
            image,
            with_state_hash=with_state_hash,
            keep_outcomes=keep_outcomes,
            from_snapshot=True,
        )
        first_topic = None
        for count, record in enumerate(rest, 1):
            if type(record) is TopicRecord and not len(image.topics.by_id):
                first_topic = record
                break
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
        if first_topic is not None:
            taken = _Topics(image, offset)
            for _ in taken.take(chain((first_topic,), rest)):
                yield image
            image = taken.image
            yield image
            if taken.left is not None:
                rest = chain((taken.left,), rest)


class _Topics:
    """The topics of a snapshot, in their canonical order."""

    def __init__(self, image: MetadataImage, offset: int) -> None:
        """`image` has no topics yet. `offset` is that of the snapshot."""
        self.image = image
        self.left: Record | None = None
        """The record after those that were taken; None: there is none."""
        self._offset = offset

    def take(self, records: Iterable[Record]) -> Generator[None, None, None]:
        """Add to the image the topics with which `records` begin. Raises ReplayError.

        Stops at the first record that is no topic and no partition, or not in order.
        """
        loading = TopicsLoading(self._offset)
        some: list[Record] = []
        total = 0
        for record in records:
            if not self._load(record, loading, some):
                self.left = record
                break
            if len(some) == STEP:
                total += self._part_of(some)
                some.clear()
                yield
        total += self._part_of(some)
        topics = yield from loading.finish()
        state_hash = self.image.state_hash
        self.image = msgspec.structs.replace(
            self.image,
            topics=topics,
            state_hash=None if state_hash is None else state_hash.plus(total, 0),
        )

    def _load(self, record: Record, loading: TopicsLoading, some: list[Record]) -> bool:
        """Return whether a record is the next one; if so, add it, and to `some` what it says."""
        if type(record) is PartitionRecord:
            topic_id, number = record.topic_id, record.partition_id
            if topic_id != loading.topic_id or 0 <= number <= loading.last:
                return False
            partition = partition_of(record, self.image.interned.setdefault, self._offset)
            loading.add(number, partition)
            if record.eligible_leader_replicas == () or record.last_known_elr == ():
                record = partition_record((topic_id, number), partition)
        elif type(record) is TopicRecord and record.topic_id > loading.topic_id:
            loading.begin(record)
        else:
            return False
        some.append(record)
        return True

    def _part_of(self, records: list[Record]) -> int:
        return 0 if self.image.state_hash is None else part_of(records)
