"""Decisions become batches, strictly one after another.

Rule: a decision reads the pending image, and nothing else is written until its last batch is
proposed: not between the Begin and the End of a transaction above all. So what is acknowledged
never stands inside a transaction that a new epoch discards. What people ask for and is large is
prepared beside the others (see `large_changes`) and has the turn only while it is written.

What doesn't fit one batch is written as one logical transaction (KIP-868) over several.

A defect in a decision (an exception that nobody planned for) is answered once, as
UNKNOWN_SERVER_ERROR, and logged; the decisions behind it go on. So one request can't end leader
after leader. When a part of the decision was proposed, this leader gives up its epoch.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

import msgspec
from structlog.typing import FilteringBoundLogger

from controller.leader.idempotency import Answer, RequestKey, outcome_record
from controller.leader.lanes import Lanes
from controller.leader.large_changes import TRIES_MAX, LargeChanges, Preparation, cut
from controller.managers.level_gate import LevelGate
from controller.replica.pending import Pending
from controller.result import ControllerResult, Decide
from ledger.batch import ACTED_AS, Batch, BatchHeader, Provenance, array_head, seal
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_record, decode_records, encode_record
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataDelta, MetadataImage, ReplayError
from metadata.image.metadata_image import OpenTransaction
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    Record,
    RequestOutcomeRecord,
)
from quorum.api import NoRoomError, NotLeaderError, QuorumStoppedError
from runtime.clock import Clock
from runtime.slices import LoopShare, run_in_slices

IN_FLIGHT_BYTES_MAX = 64 * 1024 * 1024
"""With so much proposed and not committed, decisions wait: a slow disk must not fill our memory."""
_ANSWER_BYTES_MAX = 512 * 1024
_STEP = 64
"""Records between two yields."""
_ROOM_RETRY_S = 1.0
_SHARE_S = 0.01
"""Of one pass of the loop. With less, turning a crowd away takes the time to do what was let in."""

_DEFECTS = (ReplayError, RecordDecodeError, LedgerError)


class Written(NamedTuple):
    """A decision's records are committed (or there were none, and all before it is)."""

    result: ControllerResult
    offset: int
    """End offset of its last record; of what it read when it wrote nothing."""
    epoch: int
    wrote: bool


class LeadershipLost(NamedTuple):
    """Leadership was lost."""

    maybe_executed: bool
    """Records were proposed: the new leader may find them in its log."""


Outcome = Written | LogbergError | LeadershipLost


class Decision(NamedTuple):
    """A decision that waits for its turn."""

    decide: Decide
    provenance: Provenance
    on_outcome: Callable[[Outcome], None]
    key: RequestKey | None = None
    """Remember the answer under this key."""
    first: bool = False
    """It is our own, or a broker's, and goes before what people ask for."""
    in_rounds: bool = False
    """It may be `unfinished`, and each round rests on the one before: nothing is prepared."""
    begins_epoch: bool = False
    """Nothing is decided before it: it is tried again until the journal has room for it."""
    acted_as: str = ""
    """What the principal acted as, where that is not its own name (`ledger.batch.ACTED_AS`)."""


class Proposer:
    """Takes decisions in order and proposes what they yield; idle while we don't lead."""

    def __init__(
        self,
        clock: Clock,
        propose: Callable[[bytes], None],
        on_records: Callable[[Sequence[Record]], None],
        resign: Callable[[str], None],
        *,
        waiting_max: int,
        lag_warn_ms: int,
        log: FilteringBoundLogger,
        on_defect: Callable[[BaseException], None] = lambda _error: None,
    ) -> None:
        """`on_records` hears of records when they are proposed: soft state is ahead of the log.

        `resign` is for what can't be undone in this epoch. `on_defect` hears of the exception of a
        decision that failed, after the decision was answered.
        """
        self._clock = clock
        self._propose = propose
        self._on_records = on_records
        self._resign = resign
        self._lag_warn_ms = lag_warn_ms
        self._log = log
        self._on_defect = on_defect
        self._lanes: Lanes[Decision] = Lanes(clock, waiting_max)
        self._gate = LevelGate()
        self._deciding: Decision | None = None
        self._wrote_some = False
        self._answered = False
        self._frozen = False
        self._no_room_to_begin = ""
        self._cancel: Callable[[], None] | None = None
        self._large_changes: LargeChanges[Decision] = LargeChanges(
            clock, self._decide_next, waiting_max
        )
        self._share = LoopShare(clock, self._decide_next, _SHARE_S)
        self.pending: Pending | None = None
        """None while we don't lead."""
        self.epoch = 0

    def begin(self, epoch: int, pending: Pending) -> None:
        """Lead in `epoch`, from `pending` on."""
        assert self.pending is None
        self.epoch = epoch
        self.pending = pending
        self._frozen = False
        self._no_room_to_begin = ""

    def end(self) -> None:
        """Lead no more: decisions under way and waiting are lost."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        deciding, self._deciding = self._deciding, None
        prepared = [d for d in self._large_changes.take_all() if d is not deciding]
        waiting = [*prepared, *self._lanes.take_all()]
        pending.drop()
        if deciding is not None:
            deciding.on_outcome(LeadershipLost(self._wrote_some))
        for decision in waiting:
            decision.on_outcome(LeadershipLost(maybe_executed=False))

    def freeze(self, reason: str) -> None:
        """Decide nothing more in this epoch, and give it up."""
        self._frozen = True
        self._resign(reason)

    def submit(self, decision: Decision) -> None:
        """Decide when everything before is decided."""
        if self.pending is None:
            decision.on_outcome(LeadershipLost(maybe_executed=False))
        elif self._no_room_to_begin:
            decision.on_outcome(LogbergError(ErrorCode.DISK_FULL, self._no_room_to_begin))
        elif self._lanes.add(decision, first=decision.first or decision.begins_epoch):
            self._decide_next()
        else:
            decision.on_outcome(_throttled())

    @property
    def overloaded(self) -> bool:
        """What people ask for is not let in now."""
        return self._lanes.overloaded

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed and applied: answer, and go on deciding."""
        if self.pending is not None:
            self.pending.committed(offset)
            self._decide_next()

    @property
    def waiting(self) -> int:
        """Decisions that wait for their turn."""
        return len(self._lanes) + len(self._large_changes)

    @property
    def busy(self) -> bool:
        """A decision is under way."""
        return self._deciding is not None

    def _decide_next(self) -> None:
        while (
            self._deciding is None
            and not self._frozen
            and (self._lanes or self._large_changes.ready is not None)
            and self.pending is not None
            and self.pending.bytes < IN_FLIGHT_BYTES_MAX
            and not self._share.spent()
        ):
            self._wrote_some = self._answered = False
            ready = None if self._lanes.has_first else self._large_changes.ready
            if ready is not None:
                decision = self._deciding = ready.decision
                work = self._write_prepared(ready, self.pending)
            else:
                decision = self._deciding = self._lanes.take()
                work = self._work(decision, self.pending)
            work = self._contained(decision, work)
            try:
                next(work)
            except StopIteration:
                self._deciding = None
            else:
                self._cancel = run_in_slices(self._clock, work, self._after_slices)

    def _contained(
        self, decision: Decision, work: Generator[None, None, None]
    ) -> Generator[None, None, None]:
        """Do the work on a decision. Raises for a defect only if nobody waits for its answer."""
        try:
            yield from work
        except Exception as error:
            if self._answered or decision.begins_epoch:
                # Whoever was answered failed, or a leader can't even begin: not the decision alone.
                self._deciding = self._cancel = None
                raise
            operation = decision.provenance.operation
            self._log.error("decision_failed", operation=operation, exc_info=True)
            self._answer_defect(decision)
            self._on_defect(error)
            # Its frames hold the image.
            error.__traceback__ = None

    def _answer_defect(self, decision: Decision) -> None:
        """Nothing else is decided before it is answered."""
        self._answered = True
        if self._wrote_some:
            # Resigning loses what is under way; this one has its answer here.
            self._deciding = None
            self.freeze("a decision failed when a part of it was written")
        decision.on_outcome(
            LogbergError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "a defect of the server: its log says more"
            )
        )
        self._deciding = self._cancel = None

    def _after_slices(self) -> None:
        self._cancel = None
        self._deciding = None
        self._decide_next()

    def _work(self, decision: Decision, pending: Pending) -> Generator[None, None, None]:
        """Decide, write, and arrange for the answer; yields when it takes long."""
        preparation = Preparation(decision, decision.decide, pending.image, self._gate)
        if not preparation.starts_small():
            if not (decision.first or decision.begins_epoch or decision.in_rounds):
                if not self._large_changes.add(preparation):
                    self._answered = True
                    decision.on_outcome(_throttled())
                return
            yield from preparation.steps()
        yield from self._finish(preparation, pending)

    def _write_prepared(
        self, preparation: Preparation[Decision], pending: Pending
    ) -> Generator[None, None, None]:
        """Write what was prepared if it still holds. Else prepare it again: last, in its turn."""
        decision, tries = preparation.decision, preparation.tries + 1
        try:
            if not preparation.still_holds(pending.image):
                preparation = Preparation(
                    decision, decision.decide, pending.image, self._gate, tries
                )
                if tries <= TRIES_MAX:
                    self._large_changes.again(preparation)
                    return
                yield from preparation.steps()
            yield from self._finish(preparation, pending)
            yield from preparation.emptied()
        except Exception:
            self._prepare_next()
            raise
        self._prepare_next()

    def _prepare_next(self) -> None:
        following = self._large_changes.written()
        if following is not None and self.pending is not None:
            self._large_changes.add(
                Preparation(following, following.decide, self.pending.image, self._gate)
            )

    def _finish(
        self, preparation: Preparation[Decision], pending: Pending
    ) -> Generator[None, None, None]:
        """Write what a preparation found, and arrange for the answer."""
        decision = preparation.decision
        try:
            if preparation.failure is not None:
                raise preparation.failure
            if preparation.error is not None:
                raise preparation.error
            yield from preparation.passes_gate(pending.image)
            plan = yield from self._plan(preparation, pending)
        except LogbergError as error:
            # An error may rest on what is not committed yet, so it waits like any answer. Without
            # its traceback, which would hold this frame with the image.
            self._answered = True
            self._answer_when_committed(decision, pending, error.with_traceback(None))
            return
        try:
            outcome = yield from self._write_all(preparation, plan, pending)
        except (NotLeaderError, QuorumStoppedError):
            # The quorum knows first, `end` follows; the answer must not wait for it.
            self._answered = True
            self._deciding = None
            decision.on_outcome(LeadershipLost(self._wrote_some))
        except NoRoomError as error:
            self._answered = True
            self._no_room(decision, pending, str(error))
        else:
            self._answered = True
            if isinstance(outcome, Written) and outcome.result.unfinished:
                self._lanes.add_round(decision)
            else:
                self._answer_when_committed(decision, pending, outcome)

    def _write_all(
        self, preparation: Preparation[Decision], plan: "_Plan", pending: Pending
    ) -> Generator[None, None, Written | LogbergError]:
        decision = preparation.decision
        try:
            if preparation.defect is not None:
                raise preparation.defect
            if preparation.is_replayed:
                yield from self._write_replayed(preparation, plan, pending)
            else:
                for number, batch in enumerate(plan.batches):
                    yield from self._write(decision, plan, batch, pending, last=number == plan.last)
        except _DEFECTS as error:
            return (yield from self._give_up(decision, plan, pending, error))
        wrote = bool(plan.result.records)
        # Nobody needs the records any more: they are freed in steps by who prepared them.
        result = plan.result._replace(records=())
        return Written(result, pending.mark.log_end, self.epoch, wrote=wrote)

    def _no_room(self, decision: Decision, pending: Pending, why: str) -> None:
        """The journal takes nothing now. What has begun can't be ended: a new epoch discards it."""
        if decision.begins_epoch:
            self._begin_later(decision, why)
            return
        if not self._wrote_some:
            refusal = LogbergError(ErrorCode.DISK_FULL, why)
            self._answer_when_committed(decision, pending, refusal)
            return
        self._deciding = None
        decision.on_outcome(LeadershipLost(maybe_executed=True))
        self.freeze(f"a transaction can't be ended: {why}")

    def _begin_later(self, decision: Decision, why: str) -> None:
        """Lead without writing: who reads, and brokers that are in service, need a leader too."""
        epoch, self._no_room_to_begin = self.epoch, why
        for other in self._lanes.take_all():
            other.on_outcome(LogbergError(ErrorCode.DISK_FULL, why))

        def again() -> None:
            if self.pending is not None and self.epoch == epoch:
                self._no_room_to_begin = ""
                self.submit(decision)

        self._clock.call_later(_ROOM_RETRY_S, again)

    def _give_up(
        self, decision: Decision, plan: "_Plan", pending: Pending, error: Exception
    ) -> Generator[None, None, LogbergError]:
        """A decision that can't be replayed is a defect of ours: nothing of it must last."""
        operation = decision.provenance.operation
        self._log.error("decision_not_replayable", operation=operation, reason=str(error))
        if self._wrote_some:
            abort = encode_record(AbortTransactionRecord("it can't be replayed"))
            yield from self._write(decision, plan, [abort], pending, last=False)
        return LogbergError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{operation} can't be carried out: {error}"
        )

    def _answer_when_committed(
        self, decision: Decision, pending: Pending, outcome: Written | LogbergError
    ) -> None:
        maybe = isinstance(outcome, Written) and outcome.wrote
        pending.when_committed(
            lambda committed: decision.on_outcome(outcome if committed else LeadershipLost(maybe))
        )

    def _plan(
        self, preparation: Preparation[Decision], pending: Pending
    ) -> Generator[None, None, "_Plan"]:
        """Add what makes a transaction of several batches, and the answer to be remembered."""
        decision, result = preparation.decision, preparation.result
        assert result is not None
        batches = preparation.batches
        if len(batches) > 1 and result.rebase is not None:
            # The Begin record comes first and moves all offsets by one.
            result = result.rebase(pending.image.offset + 1)
            batches = yield from cut(result.records)
        total = len(result.records)
        if len(batches) > 1:
            batches[0].insert(
                0, encode_record(BeginTransactionRecord(decision.provenance.operation))
            )
            total += 2
        answer = None
        if batches and decision.key is not None and not result.unfinished:
            body = msgspec.msgpack.encode(result.reply)
            if len(body) > _ANSWER_BYTES_MAX:
                raise LogbergError(
                    ErrorCode.BODY_TOO_LARGE, "the answer would be too large; split the request"
                )
            total += 1
            answer = Answer(result.status, body, pending.mark.log_end + total, self.epoch)
        provenance = decision.provenance
        if not provenance.reason:
            provenance = msgspec.structs.replace(provenance, reason=result.reason)
        return _Plan(result, batches, answer, provenance)

    def _write(
        self,
        decision: Decision,
        plan: "_Plan",
        encoded: list[bytes],
        pending: Pending,
        *,
        last: bool,
    ) -> Generator[None, None, None]:
        """Seal one batch, replay it from its bytes into the pending image, propose it."""
        batch = self._seal(decision, plan, encoded, pending, last=last)
        yield from _pause(len(encoded))
        header = batch.header
        delta = MetadataDelta(pending.image)
        records = decode_records(batch.records)
        yield from _pause(len(records))
        for number, record in enumerate(records, start=1):
            delta.replay(record, header.base_offset + number - 1)
            if number % _STEP == 0:
                yield
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        image = yield from delta.apply_in_steps()
        self._push(batch, image, pending)
        self._large_changes.follow(records, header.base_offset, header.timestamp_ms)
        self._on_records(records)

    def _write_replayed(
        self, preparation: Preparation[Decision], plan: "_Plan", pending: Pending
    ) -> Generator[None, None, None]:
        """Seal and propose batches that were replayed already, in `large_changes`.

        Until the transaction ends its branch is in no image: who needs it replays the ledger.
        """
        decision, begun_at, before = preparation.decision, pending.mark.log_end, pending.image
        after = yield from preparation.over(before)
        for number, encoded in enumerate(plan.batches):
            last = number == plan.last
            batch = self._seal(decision, plan, encoded, pending, last=last)
            header = batch.header
            if last:
                delta = MetadataDelta(after)
                behind = 2 if plan.last else 1
                outcome = decode_record(encoded[-behind])
                if isinstance(outcome, RequestOutcomeRecord):
                    delta.replay(outcome, header.end_offset - behind)
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

    def _seal(
        self,
        decision: Decision,
        plan: "_Plan",
        encoded: list[bytes],
        pending: Pending,
        *,
        last: bool,
    ) -> Batch:
        """Make the next batch of encoded records."""
        mark = pending.mark
        now_ms = self._clock.wall_ms()
        if mark.timestamp_ms - now_ms > self._lag_warn_ms:
            self._log.warning("clock_behind_log", lag_ms=mark.timestamp_ms - now_ms)
        timestamp_ms = max(now_ms, mark.timestamp_ms)
        if last and plan.answer is not None and decision.key is not None:
            outcome = outcome_record(decision.key, plan.answer, timestamp_ms)
            encoded.append(encode_record(outcome))
        if last and plan.last > 0:
            encoded.append(encode_record(EndTransactionRecord()))
        header = BatchHeader(
            mark.log_end,
            len(encoded),
            self.epoch,
            timestamp_ms,
            plan.provenance,
            mark.head,
            {ACTED_AS: decision.acted_as.encode()} if decision.acted_as else {},
        )
        return seal(header, array_head(len(encoded)) + b"".join(encoded))

    def _push(self, batch: Batch, image: MetadataImage, pending: Pending) -> None:
        try:
            self._propose(batch.encoded)
        except (NotLeaderError, QuorumStoppedError, NoRoomError):
            raise
        except Exception:
            # It may have been taken all the same.
            self._wrote_some = True
            raise
        self._wrote_some = True
        pending.push(batch, image)


class _Plan(NamedTuple):
    result: ControllerResult
    batches: list[list[bytes]]
    answer: Answer | None
    provenance: Provenance

    @property
    def last(self) -> int:
        """Number of the last batch."""
        return len(self.batches) - 1


def _throttled() -> LogbergError:
    return LogbergError(ErrorCode.THROTTLED, "too many requests wait for their turn; retry later")


def _pause(records: int) -> Iterator[None]:
    """Yield after work on many records."""
    if records >= _STEP:
        yield
