"""A block of topics: the records of some topics and of their partitions, as columns.

Rule: equal records give equal bytes, and the reader accepts only those bytes. A block ends with the
record that fills it: with 2,048 records, or as soon as the bytes of its names and the items of its
lists are 65,536 together. docs/format.md, section 8, has the bytes.

`TopicPacker` builds blocks. `decode_topics` reads one. It makes no object a record: a `TopicBlock`
holds each field as a column, and makes records for a caller that asks for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, repeat
from operator import attrgetter
from typing import Any, Final

import msgspec

from ledger.batch import BATCH_BYTES_MAX
from metadata.image import Partition, Topic
from metadata.records import VERSIONS_PER_TYPE, PartitionRecord, Record, TopicRecord
from metadata.state_hash import part_of, sum_of_hashes
from snapshots.columns import (
    INT32_MAX,
    UUID_BYTES,
    ColumnReader,
    ColumnWriter,
    Ids,
    Intern,
    split,
)
from snapshots.errors import ColumnsError

RECORDS_MAX: Final = 2_048
VOLUME_MAX: Final = 65_536
_ITEMS_MAX: Final = VOLUME_MAX + BATCH_BYTES_MAX
"""An item of a list takes at least a byte of the batch that brought it."""
_SPARSE: Final = ("isr", "removing", "adding", "elr", "last_known_elr")
"""The lists of which few partitions have another than the usual one, in the order of the file. An
ISR is usually the replicas, and any other list is usually empty."""
_NONE: Final[Ids] = ()
_PARTITION: Final = PartitionRecord.TYPE_ID * VERSIONS_PER_TYPE + PartitionRecord.VERSION
_HASHED: Final = 512
"""Partitions that are hashed between two pauses: half a millisecond."""
encode = msgspec.msgpack.Encoder().encode


class TopicBlock(msgspec.Struct, frozen=True):
    """The records of a block. A column of partitions has one value for each of them, in order."""

    continued: bytes | None
    """The block begins with partitions of this topic. Its record is in an earlier block."""
    topics: list[Topic]
    counts: list[int]
    """How many partitions of each topic are here: of the continued one, then of `topics`."""
    numbers: list[int]
    replicas: list[Ids]
    directories: list[tuple[bytes, ...]]
    isr: list[Ids]
    removing: list[Ids]
    adding: list[Ids]
    elr: list[Ids]
    last_known_elr: list[Ids]
    leaders: list[int]
    leader_epochs: list[int]
    partition_epochs: list[int]
    recovery_states: list[int]
    full: bool
    """The block is full: the next record of a topic or partition begins another one."""

    @property
    def records_count(self) -> int:
        """How many records the block holds."""
        return len(self.topics) + len(self.numbers)

    @property
    def topic_ids(self) -> list[bytes]:
        """The topic of each of `counts`."""
        ids = [topic.topic_id for topic in self.topics]
        return ids if self.continued is None else [self.continued, *ids]

    def records(self) -> Iterator[Record]:
        """Yield the records, in order."""
        partitions = self.partition_records()
        counts = iter(self.counts)
        if self.continued is not None:
            yield from take(partitions, next(counts))
        for topic, count in zip(self.topics, counts, strict=True):
            yield topic
            yield from take(partitions, count)

    def partition_records(self) -> Iterator[PartitionRecord]:
        """Yield the records of the partitions, without those of the topics."""
        return map(PartitionRecord, *self._record_columns())

    def _record_columns(self) -> tuple[Iterable[Any], ...]:
        """Return the fields of the partitions' records, each as a column."""
        return (
            self.numbers,
            chain.from_iterable(map(repeat, self.topic_ids, self.counts)),
            self.replicas,
            self.isr,
            self.removing,
            self.adding,
            self.leaders,
            self.leader_epochs,
            self.partition_epochs,
            self.recovery_states,
            self.directories,
            (elr or None for elr in self.elr),
            (elr or None for elr in self.last_known_elr),
        )

    def partitions(self) -> list[Partition]:
        """Return the partitions as an image holds them."""
        return list(
            map(
                Partition,
                self.replicas,
                self.directories,
                self.isr,
                self.elr,
                self.last_known_elr,
                self.removing,
                self.adding,
                self.leaders,
                self.recovery_states,
                self.leader_epochs,
                self.partition_epochs,
            )
        )

    def sums(self) -> Iterator[int]:
        """Yield the hashes of all records, summed up piece by piece, as `metadata.state_hash` does.

        It makes no record: a tuple of the same values has the same encoding.
        """
        yield part_of(self.topics)
        rows = zip(repeat(_PARTITION), *self._record_columns(), strict=False)
        for _ in range(0, len(self.numbers), _HASHED):
            yield sum_of_hashes(map(encode, islice(rows, _HASHED)))


def take(records: Iterator[Record], count: int) -> Iterator[Record]:
    """Yield the next `count` records."""
    return (record for _, record in zip(range(count), records, strict=False))


# -- writing ---------------------------------------------------------------------------------------


class TopicPacker:
    """Packs topics and their partitions, in canonical order, into the contents of blocks."""

    def __init__(self) -> None:
        self._topic_id = b""
        self._begin()

    def _begin(self, continued: bytes = b"") -> None:
        self._continued = continued
        self._topics: list[Topic] = []
        self._counts: list[int] = []
        self._numbers: list[int] = []
        self._partitions: list[Partition] = []
        self._volume = 0

    def add_topic(self, topic: Topic) -> tuple[int, bytes] | None:
        """Take a topic; return (count of records, content) if that fills a block."""
        self._topic_id = topic.topic_id
        self._topics.append(topic)
        self._counts.append(0)
        self._volume += len(topic.name.encode())
        return self._if_full()

    def add_partition(self, number: int, partition: Partition) -> tuple[int, bytes] | None:
        """Take a partition of the last topic; return (count of records, content) if it is full."""
        if not self._counts:
            self._continued = self._topic_id
            self._counts.append(0)
        self._counts[-1] += 1
        self._numbers.append(number)
        self._partitions.append(partition)
        self._volume += _volume(partition)
        return self._if_full()

    def rest(self) -> tuple[int, bytes] | None:
        """Return (count of records, content) of what is in no block yet; None if there is none."""
        count = len(self._topics) + len(self._numbers)
        if not count:
            return None
        content = self._packed()
        self._begin()
        return count, content

    def _if_full(self) -> tuple[int, bytes] | None:
        count = len(self._topics) + len(self._numbers)
        return self.rest() if count >= RECORDS_MAX or self._volume >= VOLUME_MAX else None

    def _packed(self) -> bytes:
        writer = ColumnWriter()
        writer.count(len(self._topics))
        writer.raw(bytes([bool(self._continued)]) + self._continued)
        names = [topic.name.encode() for topic in self._topics]
        writer.ints(list(map(len, names)))
        writer.raw(b"".join(names))
        writer.raw(b"".join(topic.topic_id for topic in self._topics))
        writer.ints(self._counts)
        _write_numbers(writer, self._counts, self._numbers)
        _write_partitions(writer, self._partitions)
        return b"".join(writer.parts)


def _volume(partition: Partition) -> int:
    replicas, isr = partition.replicas, partition.isr
    size = len(replicas) if isr is replicas or isr == replicas else len(replicas) + len(isr)
    removing, adding, elr, last = (
        partition.removing,
        partition.adding,
        partition.elr,
        partition.last_known_elr,
    )
    if removing or adding or elr or last:
        size += len(removing) + len(adding) + len(elr) + len(last)
    return size


def _write_numbers(writer: ColumnWriter, counts: Sequence[int], numbers: Sequence[int]) -> None:
    """Write the first number of each topic, then how many numbers are missing before each other."""
    firsts: list[int] = []
    missing: list[int] = []
    at = 0
    for count in counts:
        here = numbers[at : at + count]
        at += count
        firsts += here[:1]
        missing += [after - before - 1 for before, after in pairwise(here)]
    writer.ints(firsts)
    writer.ints(missing)


def _write_partitions(writer: ColumnWriter, partitions: Sequence[Partition]) -> None:
    replicas = _column(partitions, "replicas")
    writer.lists(replicas)
    _write_directories(writer, _column(partitions, "directories"))
    for name in _SPARSE:
        column = _column(partitions, name)
        usual = replicas if name == "isr" else repeat(_NONE, len(column))
        places = [
            place
            for place, (ids, common) in enumerate(zip(column, usual, strict=True))
            if ids is not common and ids != common
        ]
        writer.exceptions(places, [column[place] for place in places])
    for name in ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state"):
        writer.ints(_column(partitions, name))


def _column(partitions: Sequence[Partition], name: str) -> list[Any]:
    return list(map(attrgetter(name), partitions))


def _write_directories(writer: ColumnWriter, column: Sequence[tuple[bytes, ...]]) -> None:
    writer.ints(list(map(int, map(bool, column))))
    table = sorted(set(chain.from_iterable(column)))
    writer.count(len(table))
    writer.raw(b"".join(table))
    place_of = {directory: place for place, directory in enumerate(table)}
    writer.ints(list(map(place_of.__getitem__, chain.from_iterable(column))))


# -- reading ---------------------------------------------------------------------------------------


def decode_topics(content: bytes | memoryview, count: int, intern: Intern) -> TopicBlock:
    """Read a block of `count` records; `intern` takes an object twice, as `dict.setdefault` does.

    Raises ColumnsError.
    """
    reader = ColumnReader(content, _ITEMS_MAX)
    if not 1 <= count <= RECORDS_MAX:
        raise ColumnsError(f"a block of topics can't hold {count} records")
    topics_count = reader.count(count)
    continued = _read_continued(reader, intern)
    topics, names_bytes = _read_topics(reader, topics_count, intern)
    counts = reader.ints(topics_count + (continued is not None), 0, count)
    rows = count - topics_count
    if sum(counts) != rows or (continued is not None and not counts[0]):
        raise ColumnsError("the partitions of the topics are not as many as the block has")
    numbers = _read_numbers(reader, counts)
    replicas = reader.lists(rows, intern)
    directories = _read_directories(reader, replicas, intern)
    isr, removing, adding, elr, last_known_elr = sparse = [
        _Sparse(reader, rows, replicas, name, intern) for name in _SPARSE
    ]
    leaders = reader.ints(rows, -1)
    leader_epochs, partition_epochs = reader.ints(rows), reader.ints(rows)
    recovery_states = reader.ints(rows, 0, 1)
    reader.finish()
    volume = names_bytes + sum(map(len, replicas)) + sum(one.items for one in sparse)
    last = len(topics[-1].name.encode()) if not counts[-1] else len(replicas[-1])
    last += sum(one.last_items for one in sparse) if counts[-1] else 0
    if volume - last >= VOLUME_MAX:
        raise ColumnsError("a block of topics goes on after it is full")
    return TopicBlock(
        continued,
        topics,
        counts,
        numbers,
        replicas,
        directories,
        isr.column,
        removing.column,
        adding.column,
        elr.column,
        last_known_elr.column,
        leaders,
        leader_epochs,
        partition_epochs,
        recovery_states,
        full=count == RECORDS_MAX or volume >= VOLUME_MAX,
    )


def _read_continued(reader: ColumnReader, intern: Intern) -> bytes | None:
    flag = reader.raw(1)[0]
    if flag > 1:
        raise ColumnsError(f"the flag of a continued topic is {flag}, not 0 or 1")
    if not flag:
        return None
    topic_id = bytes(reader.raw(UUID_BYTES))
    found: bytes = intern(topic_id, topic_id)
    return found


def _read_topics(reader: ColumnReader, count: int, intern: Intern) -> tuple[list[Topic], int]:
    """Return the topics, and how many bytes their names have."""
    lengths = reader.ints(count, 0, BATCH_BYTES_MAX)
    total = sum(lengths)
    names = bytes(reader.raw(total))
    ids = bytes(reader.raw(count * UUID_BYTES))
    topics: list[Topic] = []
    at = 0
    for place, length in enumerate(lengths):
        try:
            name = names[at : at + length].decode()
        except UnicodeDecodeError as error:
            raise ColumnsError(f"a topic's name is not UTF-8: {error}") from None
        at += length
        topic_id = ids[place * UUID_BYTES : (place + 1) * UUID_BYTES]
        topics.append(TopicRecord(name, intern(topic_id, topic_id)))
    return topics, total


def _read_numbers(reader: ColumnReader, counts: Sequence[int]) -> list[int]:
    some = [count for count in counts if count]
    firsts = reader.ints(len(some), 0)
    missing = reader.ints(sum(some) - len(some), 0)
    numbers: list[int] = []
    if not any(missing):
        for first, count in zip(firsts, some, strict=True):
            numbers += range(first, first + count)
    else:
        rest = iter(missing)
        for first, count in zip(firsts, some, strict=True):
            numbers.append(first)
            for _ in range(count - 1):
                numbers.append(numbers[-1] + next(rest) + 1)
    if numbers and max(numbers) > INT32_MAX:
        raise ColumnsError(f"a partition can't have a number above {INT32_MAX}")
    return numbers


def _read_directories(
    reader: ColumnReader, replicas: Sequence[Ids], intern: Intern
) -> list[tuple[bytes, ...]]:
    known = reader.ints(len(replicas), 0, 1)
    lengths = [len(ids) if flag else 0 for flag, ids in zip(known, replicas, strict=True)]
    if lengths.count(0) != known.count(0):
        raise ColumnsError("a partition without replicas has directories")
    total = sum(lengths)
    table = reader.table(total)
    places = reader.ints(total, 0, len(table) - 1)
    if len(set(places)) != len(table):
        raise ColumnsError("no replica has a directory of the table")
    table = [intern(directory, directory) for directory in table]
    return split(map(table.__getitem__, places), lengths, intern)


class _Sparse:
    """A column of lists that most partitions don't have, and how many items the others have."""

    def __init__(
        self,
        reader: ColumnReader,
        rows: int,
        replicas: Sequence[Ids],
        name: str,
        intern: Intern,
    ) -> None:
        places, lists = reader.exceptions(rows, intern, least=0 if name == "isr" else 1)
        self.items = sum(map(len, lists))
        self.last_items = len(lists[-1]) if places and places[-1] == rows - 1 else 0
        column = list(replicas) if name == "isr" else [_NONE] * rows
        for place, ids in zip(places, lists, strict=True):
            if ids == column[place]:
                raise ColumnsError(f"the usual {name} stands among the exceptions")
            column[place] = ids
        self.column = column
