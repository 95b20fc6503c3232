"""The newest changes of keys and queues on this node, for those who watch them.

Rule: `feed` takes every committed batch once, in order, and keeps what it says about coordination.
A watcher that comes back within seconds finds its changes here. What is older, it reads from the
ledger (`history`).

Invariant: all changes with a revision from `floor` to `revision` are here. Records of a transaction
come when it ends, and those of an aborted one never come.

Cost follows the change: a batch is decoded only if it changed coordination, and only while anybody
watches. A key's changes are found without a look at the others.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Reversible
from typing import Final, NamedTuple

from ledger.batch import Batch
from metadata.codec import iterate_records
from metadata.image import MetadataImage
from metadata.image.coordination import CoordinationImage, CoordinationResource
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    EntryRecord,
    KeyRecord,
    Record,
    RemoveEntryRecord,
    RemoveKeyRecord,
)

CHANGES_KEPT: Final = 50_000
BYTES_KEPT: Final = 32 * 1024 * 1024
_BESIDE: Final = 200


class FeedChange(NamedTuple):
    """One change of a key, or of a queue."""

    revision: int
    key: str = ""
    """Empty for a change of a queue."""
    record: KeyRecord | None = None
    """None: the key was removed."""
    resource: CoordinationResource | None = None
    """Whose queue changed."""

    @property
    def size(self) -> int:
        """Bytes, about."""
        return _BESIDE + (0 if self.record is None else len(self.record.value))


def changes_in(records: Iterable[Record], base_offset: int) -> Iterator[FeedChange]:
    """Yield what records say about keys and queues."""
    for offset, record in enumerate(records, base_offset):
        match record:
            case KeyRecord():
                yield FeedChange(offset, record.key, record)
            case RemoveKeyRecord():
                yield FeedChange(offset, record.key)
            case EntryRecord() | RemoveEntryRecord():
                yield FeedChange(offset, resource=(record.kind, record.name))


class TransactionFilter:
    """Holds back the changes of a transaction until it ends."""

    def __init__(self) -> None:
        self._open: list[FeedChange] | None = None

    @property
    def in_transaction(self) -> bool:
        """What was taken last is not settled yet."""
        return self._open is not None

    def take(self, batch: Batch) -> list[FeedChange]:
        """Return what the batch makes visible. Raises RecordDecodeError."""
        records = list(iterate_records(batch.records))
        first, last = records[0], records[-1]
        found = list(changes_in(records, batch.header.base_offset))
        if isinstance(first, BeginEpochRecord):
            self._open = None
        if isinstance(first, BeginTransactionRecord):
            self._open = []
        if self._open is None:
            return found
        self._open += found
        if isinstance(last, EndTransactionRecord):
            settled, self._open = self._open, None
            return settled
        if isinstance(last, AbortTransactionRecord):
            self._open = None
        return []


class CoordinationFeed:
    """The changes that are kept."""

    def __init__(self, on_change: Callable[[FeedChange], None]) -> None:
        """`on_change` gets each change when it becomes visible."""
        self._on_change = on_change
        self._changes: deque[FeedChange] = deque()
        self._by_key: dict[str, deque[FeedChange]] = {}
        self._last_of: dict[CoordinationResource, int] = {}
        self._size = 0
        self._seen: CoordinationImage | None = None
        self._transactions = TransactionFilter()
        self.floor = 0
        self.revision = -1
        """Everything up to this offset was taken, and is settled."""
        self.active = False
        """Somebody watches. If off, nothing is kept."""

    def take(self, batch: Batch, image: MetadataImage) -> None:
        """Take the next committed batch. `image` holds it, and perhaps later ones."""
        header = batch.header
        end, state = header.end_offset - 1, image.coordination
        if not self.active or end <= self.revision:
            return
        if header.base_offset != self.revision + 1 and not self._transactions.in_transaction:
            return  # There is a gap. Whoever asks begins anew with a whole image.
        # While a transaction is open, `state` is that of before it: its batches must be read.
        quiet = state is self._seen and image.transaction is None
        if not quiet or self._transactions.in_transaction:
            for change in self._transactions.take(batch):
                self._add(change)
        if not self._transactions.in_transaction:
            self.revision = end
            if image.offset == header.end_offset:
                self._seen = state

    def begin(self, revision: int, image: MetadataImage) -> None:
        """Keep changes behind this revision, and none before it."""
        self._changes.clear()
        self._by_key.clear()
        self._last_of.clear()
        self._size = 0
        self._transactions = TransactionFilter()
        self._seen = image.coordination if image.offset == revision + 1 else None
        self.revision, self.floor = revision, revision + 1

    def of_key(self, key: str, after: int) -> list[FeedChange]:
        """Return the changes of a key behind a revision, which is at least `floor` - 1."""
        return _behind(self._by_key.get(key, ()), after)

    def with_prefix(self, prefix: str, after: int) -> list[FeedChange]:
        """Return the changes of the keys with a prefix."""
        found = _behind(self._changes, after)
        return [c for c in found if c.resource is None and c.key.startswith(prefix)]

    def last_of(self, resource: CoordinationResource) -> int:
        """Return the revision of a queue's last change; -1: none is kept."""
        return self._last_of.get(resource, -1)

    def _add(self, change: FeedChange) -> None:
        self._changes.append(change)
        self._size += change.size
        if change.resource is not None:
            self._last_of[change.resource] = change.revision
        else:
            self._by_key.setdefault(change.key, deque()).append(change)
        while len(self._changes) > CHANGES_KEPT or self._size > BYTES_KEPT:
            self._forget(self._changes.popleft())
        self._on_change(change)

    def _forget(self, change: FeedChange) -> None:
        self._size -= change.size
        self.floor = change.revision + 1
        if change.resource is not None:
            if self._last_of.get(change.resource) == change.revision:
                del self._last_of[change.resource]
            return
        kept = self._by_key[change.key]
        kept.popleft()
        if not kept:
            del self._by_key[change.key]


def _behind(changes: Reversible[FeedChange], after: int) -> list[FeedChange]:
    """Return the changes behind a revision, without a look at those before it."""
    found: list[FeedChange] = []
    for change in reversed(changes):
        if change.revision <= after:
            break
        found.append(change)
    found.reverse()
    return found
