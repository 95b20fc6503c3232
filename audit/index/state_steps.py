"""What each batch changes in the state, computed by the controllers' own replay.

Rule: the changes are exactly those of an image after the batch against the image before it. Most
batches hold only kinds of record (`OPEN_KINDS`) whose entry the record names. For these, one delta
takes many batches, and the entry is read from it. For any other batch, and for a transaction as a
whole, the delta itself says what changed. That costs a few hundred microseconds more.

Outcomes of requests are not followed (`audit.index.schema.LEFT_OUT`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from audit.index.schema import LEFT_OUT
from ledger.batch import BatchHeader
from metadata.image import MetadataDelta, MetadataImage
from metadata.image.delta import OPEN_KINDS
from metadata.image.families import TABLES
from metadata.image.table import ImageTable
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndSessionRecord,
    EndTransactionRecord,
    EntryRecord,
    KeyRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RemoveEntryRecord,
    RemoveKeyRecord,
    SessionRecord,
    TopicRecord,
    entity_key,
)

_RECORDS_PER_DELTA: Final = 1 << 15
_TABLE: Final = {table.name: table for table in TABLES}


class EntryNow(NamedTuple):
    """An entry of the state after a batch; `value` None: it is not there."""

    table: ImageTable
    key: Any
    value: Any


_Key = Callable[[Any], Any]
_partition: Final[_Key] = lambda record: (record.topic_id, record.partition_id)  # noqa: E731
_session: Final[_Key] = lambda record: record.session_id  # noqa: E731
_entry: Final[_Key] = lambda record: (record.kind, record.name, record.id)  # noqa: E731
_key: Final[_Key] = lambda record: record.key  # noqa: E731

NAMED: Final[dict[type[Record], tuple[ImageTable, _Key]]] = {
    PartitionRecord: (_TABLE["partitions"], _partition),
    PartitionChangeRecord: (_TABLE["partitions"], _partition),
    TopicRecord: (_TABLE["topics"], lambda record: record.topic_id),
    ConfigRecord: (_TABLE["configs"], lambda record: (record.resource_type, record.resource_name)),
    ClientQuotaRecord: (_TABLE["client_quotas"], lambda record: entity_key(record.entity)),
    ProducerIdsRecord: (_TABLE["producer_ids"], lambda _record: "last"),
    SessionRecord: (_TABLE["sessions"], _session),
    EndSessionRecord: (_TABLE["sessions"], _session),
    EntryRecord: (_TABLE["entries"], _entry),
    RemoveEntryRecord: (_TABLE["entries"], _entry),
    KeyRecord: (_TABLE["keys"], _key),
    RemoveKeyRecord: (_TABLE["keys"], _key),
}
"""For kinds of record that change one entry: its table and its key. A kind of `OPEN_KINDS` that is
not here changes no entry that the index follows."""

_TURNS: Final = frozenset(
    (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord, BeginEpochRecord)
)
"""A transaction begins at the first of these, and ends at each of the others."""


class StateSteps:
    """Follows the state, batch by batch."""

    def __init__(self, image: MetadataImage) -> None:
        self._delta = MetadataDelta(image, with_state_hash=False)
        self._in_transaction = image.transaction is not None
        self._taken = 0

    def take(self, header: BatchHeader, records: Sequence[Record]) -> Iterator[EntryNow]:
        """Replay a batch; yield the entries that are other than before, or may be.

        Raises ReplayError.
        """
        if self._in_transaction or not OPEN_KINDS.issuperset(map(type, records)):
            return self._take_alone(header, records)
        if self._taken > _RECORDS_PER_DELTA:
            self._begin_delta()
        self._replay(header, records)
        return self._named(records)

    def _named(self, records: Sequence[Record]) -> Iterator[EntryNow]:
        """Yield the entries that the records name, each once."""
        delta = self._delta
        image = delta.opened(delta.apply)
        touched: dict[ImageTable, dict[Any, None]] = {}
        for record in records:
            rule = NAMED.get(type(record))
            if rule is not None:
                table, key_of = rule
                keys = touched.get(table)
                if keys is None:
                    keys = touched[table] = {}
                keys[key_of(record)] = None
        for table, keys in touched.items():
            get = image.table(table).get
            for key in keys:
                yield EntryNow(table, key, get(key))

    def _take_alone(self, header: BatchHeader, records: Sequence[Record]) -> Iterator[EntryNow]:
        if self._taken and not self._in_transaction:
            self._begin_delta()
        self._replay(header, records)
        was_inside, turned = self._in_transaction, False
        for record in records:
            kind = type(record)
            if kind in _TURNS:
                turned = True
                self._in_transaction = kind is BeginTransactionRecord
        if was_inside and not turned:
            return  # a transaction is one step, however many batches it has
        delta = self._delta
        self._begin_delta()
        for table, change in delta.changes:
            if table not in LEFT_OUT:
                yield EntryNow(_TABLE[table], change.key, change.after)

    def _replay(self, header: BatchHeader, records: Sequence[Record]) -> None:
        self._delta.replay_all(records, header.base_offset)
        self._delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        self._taken += header.count

    def _begin_delta(self) -> None:
        self._delta = MetadataDelta(self._delta.apply(), with_state_hash=False)
        self._taken = 0
