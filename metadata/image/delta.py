"""The delta: replays records over one image and returns the next.

Rule: replay is a pure function of the image and the records. It reads no clock, draws no random
number and iterates nothing unordered. So the same log gives the same image everywhere, however its
batches are divided among deltas. Only whole batches make an image, because some facts are known
only when a batch ends: its end offset, its epoch, and the outcomes that it evicts.

Replay writes a transaction (KIP-868) into a second branch. Until its End, readers of the image see
the state before its Begin. Abort, or the beginning of a new epoch, drops the branch.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

import msgspec

from metadata.image.branch import Branch, Handler
from metadata.image.changes import ImageChanges
from metadata.image.metadata_image import MetadataImage, OpenTransaction, hash_from_scratch
from metadata.image.quorum import EpochStart
from metadata.image.replay_error import ReplayError
from metadata.records import (
    SNAPSHOT_ONLY,
    AbortTransactionRecord,
    AttemptsRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BridgeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndSessionRecord,
    EndTransactionRecord,
    EntryRecord,
    JoinTokenRecord,
    KeyRecord,
    LegacyBrokerRecord,
    NoOpRecord,
    OutcomeFloorRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RemoveEntryRecord,
    RemoveJoinTokenRecord,
    RemoveKeyRecord,
    RemoveTopicRecord,
    RequestOutcomeRecord,
    SessionRecord,
    TokenBaseRecord,
    TopicRecord,
)
from metadata.steps import finished

_INTERNED_MAX = 1 << 18
OPEN_KINDS: Final = frozenset(
    {
        ClientQuotaRecord,
        ConfigRecord,
        EndSessionRecord,
        EntryRecord,
        KeyRecord,
        NoOpRecord,
        PartitionChangeRecord,
        PartitionRecord,
        ProducerIdsRecord,
        RemoveEntryRecord,
        RemoveKeyRecord,
        RequestOutcomeRecord,
        SessionRecord,
        TopicRecord,
    }
)
"""After records of these kinds, `MetadataDelta.opened` gives the state that `apply` would give.

Most changes of a busy cluster consist of them. Others touch what only `apply` brings up to date.
"""

CONTROLLERS_ONLY: Final = (
    AttemptsRecord,
    BridgeRecord,
    EndSessionRecord,
    EntryRecord,
    JoinTokenRecord,
    KeyRecord,
    LegacyBrokerRecord,
    OutcomeFloorRecord,
    RemoveEntryRecord,
    RemoveJoinTokenRecord,
    RemoveKeyRecord,
    RequestOutcomeRecord,
    SessionRecord,
    TokenBaseRecord,
)
"""The records of the tables that brokers don't hold."""


class MetadataDelta:
    """The changes that a sequence of batches makes to an image.

    Use a delta once: `replay` records, `finish_batch` after each batch, then `apply`.
    """

    def __init__(
        self,
        image: MetadataImage,
        *,
        with_state_hash: bool = True,
        keep_outcomes: bool = True,
        from_snapshot: bool = False,
    ) -> None:
        """Begin from `image`, which does not change.

        Brokers pass `keep_outcomes=False`, so that replay ignores the records of
        `CONTROLLERS_ONLY`. `from_snapshot` allows the records that only snapshots hold. Raises
        ReplayError if the image has an open transaction whose branch was not built.
        """
        self._image = image
        self._with_state_hash = with_state_hash
        self._keep_outcomes = keep_outcomes
        self._from_snapshot = from_snapshot
        fits = image.offset and len(image.interned) < _INTERNED_MAX
        self._interned: dict[Any, Any] = image.interned if fits else {}
        self._offset, self._epoch = image.offset, image.epoch
        self._timestamp_ms = image.timestamp_ms
        self._in_batch = False
        self._applied: MetadataImage | None = None
        self._unsettled: list[int] = []
        self._epoch_start: EpochStart | None = None
        self._visible = self._branch_of(image)
        self._transaction: tuple[str | None, int] | None = None
        self._current = self._visible
        if image.transaction is not None:
            if not image.transaction.built:
                raise ReplayError(
                    image.offset, "this image doesn't hold the branch of the open transaction"
                )
            self._transaction = (image.transaction.name, image.transaction.offset)
            self._current = self._branch_of(image.transaction.branch)
        self._handlers = self._current.handlers

    def _branch_of(self, image: MetadataImage) -> Branch:
        if self._with_state_hash and image.state_hash is None:
            image = msgspec.structs.replace(image, state_hash=hash_from_scratch(image))
        return Branch(
            image, self._own_handlers(), self._interned, self._unsettled, self._with_state_hash
        )

    def _own_handlers(self) -> dict[type[Record], Handler]:
        handlers: dict[type[Record], Handler] = {
            NoOpRecord: _do_nothing,
            RemoveTopicRecord: self._remove_topic,
            BeginEpochRecord: self._begin_epoch,
            BeginTransactionRecord: self._begin_transaction,
            EndTransactionRecord: self._end_transaction,
            AbortTransactionRecord: self._abort_transaction,
        }
        if not self._keep_outcomes:
            handlers.update(dict.fromkeys(CONTROLLERS_ONLY, _do_nothing))
        if not self._from_snapshot:
            handlers.update(dict.fromkeys(SNAPSHOT_ONLY, _refuse_in_log))
        return handlers

    def replay(self, record: Record, offset: int) -> None:
        """Replay one record, whose offset is `offset`. Raises ReplayError."""
        self._in_batch = True
        self._handlers[type(record)](record, offset)

    def replay_all(self, records: Iterable[Record], base_offset: int) -> None:
        """Replay records with the offsets from `base_offset` on. Raises ReplayError."""
        self._in_batch = True
        for offset, record in enumerate(records, base_offset):
            self._handlers[type(record)](record, offset)

    def emptied(self) -> Generator[None, None, None]:
        """Free the changes in steps, after `apply`. The delta can't be used afterwards."""
        yield from self._current.emptied()

    def finish_batch(self, end_offset: int, epoch: int, timestamp_ms: int) -> None:
        """End a batch: the records so far are whole batches, and the last ends at `end_offset`.

        `timestamp_ms` is the batch's, since 1970. Raises ReplayError if offset or epoch decrease.
        """
        if end_offset < self._offset or epoch < self._epoch:
            raise ReplayError(
                end_offset,
                f"a batch of epoch {epoch} ends there, but the batch before it ends at "
                f"{self._offset} in epoch {self._epoch}",
            )
        for branch in {id(b): b for b in (self._visible, self._current)}.values():
            for broker_id in self._unsettled:
                branch.family("cluster").settle(broker_id, end_offset)
            if self._epoch_start is not None:
                branch.family("quorum").begin(epoch, self._epoch_start)
        self._unsettled.clear()
        self._epoch_start = None
        if self._transaction is None:
            # Don't evict while a transaction is open: its decision has used the present outcomes.
            self._current.evict(timestamp_ms)
        self._offset, self._epoch, self._timestamp_ms = end_offset, epoch, timestamp_ms
        self._in_batch = False

    def apply(self) -> MetadataImage:
        """Return the next image. Afterwards the delta can't replay; `changes` stays available.

        Raises ReplayError if the last batch has not ended.
        """
        return finished(self.apply_in_steps())

    def apply_in_steps(self) -> Generator[None, None, MetadataImage]:
        """Do what `apply` does, and yield every few milliseconds, so that an event loop can run.

        A batch of 1 MiB takes 100 ms or more in all. A small one doesn't yield.
        """
        if self._in_batch:
            raise ReplayError(self._offset, "the batch has not ended: call finish_batch first")
        if self._applied is None:
            position = (self._offset, self._epoch, self._timestamp_ms)
            transaction = None
            if self._transaction is not None:
                name, offset = self._transaction
                branch = yield from self._current.build(*position, None)
                transaction = OpenTransaction(name, offset, branch)
            self._applied = yield from self._visible.build(*position, transaction)
            self._visible.handlers.release()
            self._current.handlers.release()
        return self._applied

    def opened(self, built: Callable[[], MetadataImage]) -> MetadataImage:
        """Return an image of the batches so far, without building it.

        Only between batches, if all records are of `OPEN_KINDS`. It has no state hash. The image
        follows the delta: the caller must have done with it when the next batch is replayed, or
        call `apply` first. `built` is called if something is read that needs `apply`. It must
        return `apply()`.
        """
        assert self._current is self._visible
        return self._visible.opened(self._offset, self._epoch, self._timestamp_ms, built)

    @property
    def image(self) -> MetadataImage:
        """The image from which the delta began."""
        return self._image

    @property
    def changes(self) -> ImageChanges:
        """The changes from `image` to `apply()`, without those inside an open transaction."""
        direct = self._visible if self._visible.base is self._image else None
        return ImageChanges(self._image, self.apply(), direct)

    def _remove_topic(self, record: RemoveTopicRecord, offset: int) -> None:
        name = self._current.family("topics").remove_topic(record, offset)
        self._current.family("configs").remove_topic(name)

    def _begin_epoch(self, record: BeginEpochRecord, offset: int) -> None:
        self._drop_transaction()
        self._current.family("quorum").note(record, offset)
        self._epoch_start = EpochStart(offset, record.leader_id)

    def _begin_transaction(self, record: BeginTransactionRecord, offset: int) -> None:
        if self._transaction is not None:
            raise ReplayError(
                offset, f"another transaction is open since offset {self._transaction[1]}"
            )
        before = finished(self._visible.build(self._offset, self._epoch, self._timestamp_ms, None))
        self._current = self._branch_of(before)
        self._transaction = (record.name, offset)
        self._handlers = self._current.handlers

    def _end_transaction(self, record: EndTransactionRecord, offset: int) -> None:
        if self._transaction is None:
            raise ReplayError(offset, "a transaction ends, but none is open")
        self._visible.handlers.release()
        self._visible = self._current
        self._transaction = None

    def _abort_transaction(self, record: AbortTransactionRecord, offset: int) -> None:
        if self._transaction is None:
            raise ReplayError(offset, "a transaction is aborted, but none is open")
        self._drop_transaction()

    def _drop_transaction(self) -> None:
        if self._current is not self._visible:
            self._current.handlers.release()
        self._current = self._visible
        self._transaction = None
        self._handlers = self._current.handlers


def _do_nothing(record: Record, offset: int) -> None:
    """Ignore a record that changes nothing in this image."""


def _refuse_in_log(record: Record, offset: int) -> None:
    raise ReplayError(offset, f"{type(record).__name__} is allowed only in snapshots")
