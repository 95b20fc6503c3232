"""Makes batches of a decision's records, replays them into the pending image and proposes them.

A decision's records become one batch. If they don't fit into one, they become several batches that
are one logical transaction (KIP-868): Begin first, End last. The answer to the request is the last
record before End. A round of a request has its answer at its end too, under a key of its own.

Invariant: the pending image is always what a replay of the proposed bytes gives. A large batch is
replayed from its encoded form; `large_changes` does so ahead of time. A small one is replayed in a
group from the records of which the bytes were just made (`replica.open_group`, ADR 0045). With
`compare_records` it is decoded all the same, and its records are compared: a record that its bytes
don't give back is a defect.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from structlog.typing import FilteringBoundLogger

from controller.leader.decisions import Decision, Written
from controller.leader.idempotency import Answer, RequestKey, outcome_record, round_key
from controller.leader.large_changes import Preparation, cut
from controller.leader.last_changes import LastChanges
from controller.leader.resources import resources_of
from controller.managers.address_sealing import AddressSealer
from controller.replica.pending import Pending
from controller.result import ControllerResult
from ledger.batch import ACTED_AS, SEALED, Batch, BatchHeader, Provenance, array_head, seal
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records, encode_record
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataDelta, MetadataImage, ReplayError
from metadata.image.delta import OPEN_KINDS
from metadata.image.metadata_image import OpenTransaction
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    Record,
    RequestOutcomeRecord,
)
from quorum.api import (
    NoRoomError,
    NotLeaderError,
    QuorumStoppedError,
    Voter,
    VoterChangeRefusedError,
)
from runtime.clock import Clock

_ANSWER_BYTES_MAX = 512 * 1024
_STEP = 64
"""Records between two yields."""

_DEFECTS = (ReplayError, RecordDecodeError, LedgerError)


class Plan(NamedTuple):
    """The batches of one decision, before they have an offset and a time."""

    result: ControllerResult
    batches: list[list[bytes]]
    """Encoded records, by batch. The outcome and End records are added when a batch is sealed."""
    key: RequestKey | None
    """What the outcome record is found by; None if no answer is remembered."""
    answer: Answer | None
    """What the outcome record holds."""
    provenance: Provenance

    @property
    def last(self) -> int:
        """Index of the last batch; -1 if there is none."""
        return len(self.batches) - 1


class BatchWriter:
    """Writes one decision at a time."""

    def __init__(
        self,
        clock: Clock,
        propose: Callable[[bytes], None],
        change_voters: Callable[[Sequence[Voter], bytes], None],
        on_records: Callable[[Sequence[Record]], None],
        on_replayed: Callable[[Sequence[Record], int, int], None],
        last_changes: LastChanges,
        sealer: AddressSealer | None = None,
        *,
        lag_warn_ms: int,
        compare_records: bool,
        log: FilteringBoundLogger,
    ) -> None:
        """`on_records` gets the records of a batch as soon as they are proposed.

        `on_replayed` gets them too, with base offset and timestamp, but only for batches that were
        replayed here, not for those that `large_changes` prepared. `sealer` seals the address in
        each head; None: it stays in clear.
        """
        self._clock = clock
        self._propose = propose
        self._change_voters = change_voters
        self._on_records = on_records
        self._on_replayed = on_replayed
        self._last_changes = last_changes
        self._sealer = sealer
        self._lag_warn_ms = lag_warn_ms
        self._compare_records = compare_records
        self._log = log
        self.wrote_some = False
        """A batch of the current decision was proposed. The proposer resets it."""

    def plan(
        self, preparation: Preparation[Decision], pending: Pending, epoch: int
    ) -> Generator[None, None, Plan]:
        """Add the Begin record, if there are several batches, and the answer to remember.

        Raises LogbergError: BODY_TOO_LARGE if the answer is too long for the log, THROTTLED while
        the address can't be sealed.
        """
        decision, result = preparation.decision, preparation.result
        assert result is not None
        batches = preparation.batches
        if len(batches) > 1 and result.rebase is not None:
            # The Begin record comes first and moves all offsets by one.
            result = result.rebase(pending.image.offset + 1)
            batches = yield from cut(result.records, preparation.batch_bytes)
        total = len(result.records)
        if len(batches) > 1:
            batches[0].insert(
                0, encode_record(BeginTransactionRecord(decision.provenance.operation))
            )
            total += 2
        key, body = _remembered(decision, result)
        if key is not None and (result.unfinished or result.began) and not batches:
            batches = [[]]  # The round wrote nothing, and its answer is remembered all the same.
        answer = None
        if batches and key is not None:
            if len(body) > _ANSWER_BYTES_MAX:
                raise LogbergError(
                    ErrorCode.BODY_TOO_LARGE, "the answer would be too large; divide the request"
                )
            total += 1
            answer = Answer(result.status, body, pending.mark.log_end + total, epoch)
        provenance = decision.provenance
        if not provenance.reason:
            provenance = msgspec.structs.replace(provenance, reason=result.reason)
        if self._sealer is not None and batches:
            provenance = self._sealer.of_head(pending.image, provenance)
        return Plan(result, batches, key, answer, provenance)

    def write(
        self, preparation: Preparation[Decision], plan: Plan, pending: Pending, epoch: int
    ) -> Generator[None, None, Written | LogbergError]:
        """Propose all batches. Returns an error if the records can't be replayed.

        Raises what `Quorum.propose` raises: NotLeaderError, QuorumStoppedError, NoRoomError. With
        other voters, also VoterChangeRefusedError; then nothing was proposed.
        """
        decision = preparation.decision
        try:
            if preparation.defect is not None:
                raise preparation.defect
            if _fits_group(preparation, plan) and pending.image.transaction is None:
                self._write_in_group(decision, plan, pending, epoch)
            elif preparation.is_replayed:
                yield from self._write_replayed(preparation, plan, pending, epoch)
            else:
                for number, batch in enumerate(plan.batches):
                    last = number == plan.last
                    yield from self._write(decision, plan, batch, pending, epoch, last=last)
                    if not last:
                        # A batch of few large records has no pause of its own.
                        yield
        except _DEFECTS as error:
            return (yield from self._give_up(decision, plan, pending, epoch, error))
        result, wrote = plan.result, bool(plan.result.records)
        if len(result.records) > _STEP:
            # Drop the records from the result: `Preparation.emptied` frees them in small steps.
            result = result._replace(records=())
        return Written(result, pending.mark.log_end, epoch, wrote=wrote)

    def _give_up(
        self, decision: Decision, plan: Plan, pending: Pending, epoch: int, error: Exception
    ) -> Generator[None, None, LogbergError]:
        """Abort what was written. Records that can't be replayed are a defect of this program."""
        operation = decision.provenance.operation
        self._log.error("decision_not_replayable", operation=operation, reason=str(error))
        if self.wrote_some:
            abort = encode_record(AbortTransactionRecord("it can't be replayed"))
            yield from self._write(decision, plan, [abort], pending, epoch, last=False)
        return LogbergError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{operation} can't be carried out: {error}"
        )

    def _write(
        self,
        decision: Decision,
        plan: Plan,
        encoded: list[bytes],
        pending: Pending,
        epoch: int,
        *,
        last: bool,
    ) -> Generator[None, None, None]:
        """Seal one batch, replay it from its bytes into the pending image, and propose it."""
        before = pending.settled()
        batch, _ = self._seal(decision, plan, encoded, pending, epoch, last=last)
        yield from _pause(len(encoded))
        header = batch.header
        delta = MetadataDelta(before)
        records = decode_records(batch.records)
        yield from _pause(len(records))
        for number, record in enumerate(records, start=1):
            delta.replay(record, header.base_offset + number - 1)
            if number % _STEP == 0:
                yield
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        image = yield from delta.apply_in_steps()
        self._push(batch, image, pending, plan.result.voters)
        yield from self._last_changes.note(records, header.base_offset, before)
        self._on_replayed(records, header.base_offset, header.timestamp_ms)
        self._on_records(records)

    def _write_in_group(self, decision: Decision, plan: Plan, pending: Pending, epoch: int) -> None:
        """Seal the only batch, replay its records in the open group, and propose it.

        If it can't be replayed or proposed, the group is as it was before.
        """
        (encoded,) = plan.batches
        batch, outcome = self._seal(decision, plan, encoded, pending, epoch, last=True)
        header = batch.header
        records = [*plan.result.records, *outcome]
        if self._compare_records:
            compare(records, batch.records)
        before = pending.image
        found = [resources_of(record, before) for record in records]
        pending.replay_in_group(records, batch)
        try:
            self._proposed(batch)
        except Exception:
            pending.undo_in_group()
            raise
        pending.push_in_group(batch)
        self._last_changes.note_found(found, header.base_offset)
        self._on_replayed(records, header.base_offset, header.timestamp_ms)
        self._on_records(records)

    def _write_replayed(
        self, preparation: Preparation[Decision], plan: Plan, pending: Pending, epoch: int
    ) -> Generator[None, None, None]:
        """Seal and propose batches that `large_changes` has already replayed.

        Between Begin and End the images lack the transaction's branch (`built=False`). A node that
        needs the branch replays it from the ledger.
        """
        decision, begun_at, before = preparation.decision, pending.mark.log_end, pending.settled()
        after = yield from preparation.over(before)
        for number, encoded in enumerate(plan.batches):
            last = number == plan.last
            batch, outcome = self._seal(decision, plan, encoded, pending, epoch, last=last)
            header = batch.header
            if last:
                delta = MetadataDelta(after)
                for record in outcome:
                    delta.replay(record, header.end_offset - (2 if plan.last else 1))
                delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
                image = yield from delta.apply_in_steps()
            else:
                image = msgspec.structs.replace(
                    before,
                    offset=header.end_offset,
                    timestamp_ms=header.timestamp_ms,
                    transaction=OpenTransaction(
                        decision.provenance.operation, begun_at, before, built=False
                    ),
                )
            self._push(batch, image, pending)
            yield
        yield from self._last_changes.note(plan.result.records, begun_at, before)

    def _seal(
        self,
        decision: Decision,
        plan: Plan,
        encoded: list[bytes],
        pending: Pending,
        epoch: int,
        *,
        last: bool,
    ) -> tuple[Batch, tuple[RequestOutcomeRecord, ...]]:
        """Make the next batch of encoded records; the last one gets the outcome and End.

        Returns the outcome too, if there is one.
        """
        mark = pending.mark
        now_ms = self._clock.wall_ms()
        if mark.timestamp_ms - now_ms > self._lag_warn_ms:
            self._log.warning("clock_behind_log", lag_ms=mark.timestamp_ms - now_ms)
        # Timestamps in the log never fall, even if the new leader's clock is behind the old one's.
        timestamp_ms = max(now_ms, mark.timestamp_ms)
        outcome: tuple[RequestOutcomeRecord, ...] = ()
        if last and plan.answer is not None and plan.key is not None:
            outcome = (outcome_record(plan.key, plan.answer, timestamp_ms),)
            encoded.append(encode_record(outcome[0]))
        if last and plan.last > 0:
            encoded.append(encode_record(EndTransactionRecord()))
        header = BatchHeader(
            mark.log_end,
            len(encoded),
            epoch,
            timestamp_ms,
            plan.provenance,
            mark.head,
            _extensions(decision, plan.result if last else None),
        )
        return seal(header, array_head(len(encoded)) + b"".join(encoded)), outcome

    def _push(
        self,
        batch: Batch,
        image: MetadataImage,
        pending: Pending,
        voters: Sequence[Voter] | None = None,
    ) -> None:
        self._proposed(batch, voters)
        pending.push(batch, image)

    def _proposed(self, batch: Batch, voters: Sequence[Voter] | None = None) -> None:
        """Propose a batch, perhaps with other voters. Raises what `Quorum.change_voters` raises."""
        try:
            if voters is None:
                self._propose(batch.encoded)
            else:
                self._change_voters(voters, batch.encoded)
        except (NotLeaderError, QuorumStoppedError, NoRoomError, VoterChangeRefusedError):
            raise
        except Exception:
            # An unknown error doesn't say whether the quorum took the batch. Assume that it did.
            self.wrote_some = True
            raise
        self.wrote_some = True


def _remembered(decision: Decision, result: ControllerResult) -> tuple[RequestKey | None, bytes]:
    """Return under which key an answer is remembered, and the answer; None if none is."""
    if decision.key is None:
        return None, b""
    if not result.unfinished:
        return decision.key, msgspec.msgpack.encode(result.reply)
    if result.round_answer is None:
        return None, b""
    return round_key(decision.key, result.round_answer.number), result.round_answer.body


def _fits_group(preparation: Preparation[Decision], plan: Plan) -> bool:
    """Return whether the decision is one small batch of records that an open group can hold."""
    records = plan.result.records
    return (
        len(plan.batches) == 1
        and len(records) <= _STEP
        and not preparation.is_replayed
        and plan.result.voters is None
        and OPEN_KINDS.issuperset(map(type, records))
    )


def compare(records: Sequence[Record], encoded: bytes) -> None:
    """Raise RecordDecodeError if `encoded` doesn't give exactly these records."""
    decoded = decode_records(encoded)
    if [_exactly(record) for record in decoded] != [_exactly(record) for record in records]:
        raise RecordDecodeError("a record is not what its encoding gives back")


def _exactly(value: Any) -> Any:
    """Return a value with the type of each part, so that 1 differs from True and () from []."""
    if isinstance(value, msgspec.Struct):
        return type(value), [_exactly(part) for part in msgspec.structs.astuple(value)]
    if isinstance(value, tuple | list):
        return type(value), [_exactly(part) for part in value]
    return type(value), value


def _extensions(decision: Decision, result: ControllerResult | None) -> dict[int, bytes]:
    """Return a batch's extensions; `result` only for the last batch of a decision."""
    extensions = {}
    if result is not None and result.salted_hashes:
        extensions[SEALED] = msgspec.msgpack.encode(result.salted_hashes)
    if decision.acted_as:
        extensions[ACTED_AS] = decision.acted_as.encode()
    return extensions


def _pause(records: int) -> Iterator[None]:
    """Yield once after work on many records."""
    if records >= _STEP:
        yield
