"""Computes the state on executors: replays a part of the log with the controllers' code.

Rule: the state hash is a sum over entries. So the log may be folded in parts, if each entry is in
one part. A *part of topics* replays the settled records of some topics and counts their partitions.
*The rest* replays all other records as they stand, with transactions and the ends of all batches,
and counts all other tables. Eviction, epochs and shutdown offsets need these. A part is read once,
in order, for all requested offsets; what changed between two of them changes the sums.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from metadata.codec import decode_record
from metadata.image import EMPTY, MetadataDelta, MetadataImage, difference
from metadata.image.families import TABLES
from metadata.records import ClearElrRecord, Record, RemoveTopicRecord, TopicRecord
from metadata.state_hash import part_of

REST: Final = -1
"""The number of the part for everything that is not in a part of topics."""
SNAPSHOT: Final = -1
"""`counts_from` of records from a checkpoint."""
_PARTITIONS: Final = "partitions"
_RECORDS_PER_DELTA: Final = 1 << 16
_MODULUS: Final = 1 << 256


class FoldRow(NamedTuple):
    """A record, or the end of a batch, in the form in which it is folded."""

    part: int
    offset: int
    end_offset: int
    """That of its batch; for a record of a checkpoint, the checkpoint's offset."""
    counts_from: int
    """In a part of topics: base offset of the batch that settles it. In the rest: that of its
    own batch."""
    epoch: int
    timestamp_ms: int
    record: bytes | None
    """Canonical bytes; None if only the end of the batch counts."""


class PartialSum(NamedTuple):
    """What a part adds to one table's row at one offset."""

    at: int
    table: str
    entries: int
    total: bytes
    """32 bytes, big-endian, modulo 2^256."""


def fold(rows: Iterable[FoldRow], offsets: Sequence[int]) -> Iterator[PartialSum]:
    """Fold rows that come part by part, each in the log's order; yield sums for each part.

    `offsets` ascend. Raises ReplayError, RecordDecodeError.
    """
    part: _Part | None = None
    for row in rows:
        if part is None or part.number != row.part:
            if part is not None:
                yield from part.rest_of_offsets()
            part = _Part(row.part, offsets)
        yield from part.take(row)
    if part is not None:
        yield from part.rest_of_offsets()


class _Part:
    def __init__(self, number: int, offsets: Sequence[int]) -> None:
        self.number = number
        self._tables = [t for t in TABLES if (t.name == _PARTITIONS) == (number != REST)]
        self._waiting = list(reversed(offsets))
        self._image: MetadataImage = EMPTY
        self._shown: MetadataImage = EMPTY
        self._delta = MetadataDelta(EMPTY, with_state_hash=False, from_snapshot=True)
        self._loading = True
        self._records = 0
        self._place = (0, 0, 0)
        self._entries = dict.fromkeys((t.name for t in self._tables), 0)
        self._sums = dict.fromkeys((t.name for t in self._tables), 0)
        self._names: dict[bytes, str] = {}

    def take(self, row: FoldRow) -> Iterator[PartialSum]:
        if self._loading and row.counts_from == SNAPSHOT:
            self._load(row)
            return
        if self._loading:
            self._settle()
        while self._waiting and row.counts_from >= self._waiting[-1]:
            yield from self._show(self._waiting.pop())
        if self.number == REST:
            self._take_of_rest(row)
        else:
            self._take_of_topics(row)

    def rest_of_offsets(self) -> Iterator[PartialSum]:
        """Yield the sums of the remaining offsets; nothing changes after the last row."""
        while self._waiting:
            yield from self._show(self._waiting.pop())

    def _load(self, row: FoldRow) -> None:
        assert row.record is not None
        record = decode_record(row.record)
        if self.number == REST:
            self._place = (row.end_offset, row.epoch, row.timestamp_ms)
        elif isinstance(record, TopicRecord):
            self._names[record.topic_id] = record.name
        self._delta.replay(record, row.end_offset)

    def _take_of_rest(self, row: FoldRow) -> None:
        if row.record is not None:
            self._delta.replay(decode_record(row.record), row.offset)
            self._records += 1
        self._place = (row.end_offset, row.epoch, row.timestamp_ms)
        if row.offset == row.end_offset - 1:
            self._delta.finish_batch(*self._place)
            if self._records >= _RECORDS_PER_DELTA:
                self._settle()

    def _take_of_topics(self, row: FoldRow) -> None:
        assert row.record is not None
        record = decode_record(row.record)
        self._place = (row.offset + 1, 0, 0)
        if self._concerns_us(record):
            self._delta.replay(record, row.offset)
            self._records += 1
            if self._records >= _RECORDS_PER_DELTA:
                self._settle()

    def _concerns_us(self, record: Record) -> bool:
        """Return whether a record concerns this part.

        ClearElr goes to all parts, because only the part that holds a topic knows its name.
        """
        if isinstance(record, TopicRecord):
            self._names[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            self._names.pop(record.topic_id, None)
        elif isinstance(record, ClearElrRecord) and record.topic_name:
            return record.topic_name in self._names.values()
        return True

    def _settle(self) -> None:
        """Apply what was replayed to the image."""
        if self.number != REST or self._loading:
            self._delta.finish_batch(*self._place)
            self._loading = False
        self._image = self._delta.apply()
        self._delta = MetadataDelta(self._image, with_state_hash=False)
        self._records = 0

    def _show(self, at: int) -> Iterator[PartialSum]:
        self._settle()
        changes = difference(self._shown, self._image)
        for table in self._tables:
            for key, before, after in changes.of(table.name):
                if before is not None:
                    self._sums[table.name] -= part_of(table.records(key, before))
                    self._entries[table.name] -= 1
                if after is not None:
                    self._sums[table.name] += part_of(table.records(key, after))
                    self._entries[table.name] += 1
            total = self._sums[table.name] % _MODULUS
            yield PartialSum(at, table.name, self._entries[table.name], total.to_bytes(32, "big"))
        self._shown = self._image
