"""Decides one request after another, and proposes what each decision yields.

Small decisions behind one another are a group: they share a delta, an image and mostly the Raft
entry, and each reads what those before it decided (`replica.open_group`). A group never goes beyond
a Raft entry, because its image is published when all of it is committed.

Decisions read the pending image: the committed one plus everything that was proposed. Users' large
changes are prepared beside the others (`large_changes`) and take their turn only to be written.

Invariant: between the first and the last batch of a decision nothing else is written. Otherwise an
acknowledged change could stand between the Begin and the End of another one's transaction, and a
new leader discards a transaction that has no End.

A defect in a decision (an exception that nobody planned for) must not end leader after leader. It
is logged, its caller gets UNKNOWN_SERVER_ERROR, and the next decisions go on.
"""

from collections.abc import Callable, Generator, Sequence

from structlog.typing import FilteringBoundLogger

from controller.leader.batch_writer import BatchWriter
from controller.leader.decisions import Decision, LeadershipLost, Written
from controller.leader.lanes import Lanes
from controller.leader.large_changes import TRIES_MAX, LargeChanges, Preparation
from controller.leader.last_changes import LastChanges
from controller.managers.address_sealing import AddressSealer
from controller.managers.level_gate import LevelGate
from controller.replica.pending import Pending
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.records import Record
from quorum.api import (
    NoRoomError,
    NotLeaderError,
    QuorumStoppedError,
    Voter,
    VoterChangeRefusedError,
)
from runtime.clock import Clock
from runtime.loop.slices import LoopShare, run_in_slices

IN_FLIGHT_BYTES_MAX = 64 * 1024 * 1024
"""Decisions wait while so many bytes are proposed and not committed. This bounds our memory when
the disk is slow."""
ROUNDS_IN_FLIGHT_BYTES_MAX = 256 * 1024
"""The next round of a long decision waits while so many bytes are not committed: some ten rounds. A
fencing or a registration that comes between two rounds is committed behind what is proposed. What
users keep in flight holds no round back: it begins once the round before it is committed."""
_ROOM_RETRY_S = 1.0
_SHARE_S = 0.01
"""Time for decisions in one pass of the event loop. With less, refusing the requests of a crowd
would use up the time for the requests that were let in."""


class Proposer:
    """Idle unless this controller leads."""

    def __init__(
        self,
        clock: Clock,
        propose: Callable[[bytes], None],
        change_voters: Callable[[Sequence[Voter], bytes], None],
        on_records: Callable[[Sequence[Record]], None],
        resign: Callable[[str], None],
        *,
        waiting_max: int,
        lag_warn_ms: int,
        compare_records: bool,
        unsent: Callable[[], int],
        log: FilteringBoundLogger,
        on_defect: Callable[[BaseException], None] = lambda _error: None,
        sealer: AddressSealer | None = None,
    ) -> None:
        """`on_records` gets records when they are proposed, before they are committed.

        `resign` gives up the epoch. `compare_records` is the writer's (see `batch_writer`).
        `unsent` says how many payloads no Raft entry has taken yet. `on_defect` gets the exception
        of a failed decision, after the decision was answered. `sealer` is the writer's, too.
        """
        self._clock = clock
        self._resign = resign
        self._log = log
        self._on_defect = on_defect
        self._lanes: Lanes[Decision] = Lanes(clock, waiting_max)
        self._gate = LevelGate()
        self._deciding: Decision | None = None
        self._began_before = False
        """A round before the one that is decided now was proposed."""
        self._answered = False
        self._frozen = False
        self._rounds_end = 0
        """End of the last round that was proposed."""
        self._no_room_to_begin = ""
        self._cancel: Callable[[], None] | None = None
        self._large_changes: LargeChanges[Decision] = LargeChanges(
            clock, self._decide_next, waiting_max
        )
        self.last_changes = LastChanges()
        self._writer = BatchWriter(
            clock,
            propose,
            change_voters,
            on_records,
            self._large_changes.follow,
            self.last_changes,
            sealer,
            lag_warn_ms=lag_warn_ms,
            compare_records=compare_records,
            log=log,
        )
        self._unsent = unsent
        self._share = LoopShare(clock, self._decide_next, _SHARE_S)
        self.pending: Pending | None = None
        """None unless this controller leads."""
        self.batch_bytes: int | None = None
        """See `large_changes.cut`. Only a rehearsal sets it."""
        self.epoch = 0

    def begin(self, epoch: int, pending: Pending) -> None:
        """Start to decide, in `epoch`, on top of `pending`."""
        assert self.pending is None
        self.epoch = epoch
        self.pending = pending
        self.last_changes.begin(pending.image.offset)
        self._frozen = False
        self._rounds_end = 0
        self._no_room_to_begin = ""

    def end(self) -> None:
        """Leadership is lost: answer all decisions under way and waiting with LeadershipLost."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        deciding, self._deciding = self._deciding, None
        prepared = [d for d in self._large_changes.take_all() if d is not deciding]
        begun = list(self._lanes.rounds)
        waiting = [*prepared, *self._lanes.take_all()]
        pending.drop()
        if deciding is not None:
            deciding.on_outcome(LeadershipLost(self._writer.wrote_some or self._began_before))
        for decision in waiting:
            executed = any(decision is each for each in begun)
            decision.on_outcome(LeadershipLost(maybe_executed=executed))

    def freeze(self, reason: str) -> None:
        """Stop deciding in this epoch and resign."""
        self._frozen = True
        self._resign(reason)

    def submit(self, decision: Decision) -> None:
        """Queue a decision. Its `on_outcome` is called exactly once, perhaps during this call."""
        if decision.sweep is not None:
            decision.sweep.leaves_elsewhere = self.is_leaving
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
        """Decisions of users are refused with THROTTLED for now."""
        return self._lanes.overloaded

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed and applied: answer those decisions, go on."""
        if self.pending is not None:
            self.pending.committed(offset)
            self._decide_next()

    def is_leaving(self, broker_id: int, directory: bytes) -> bool:
        """Return whether rounds are under way that take such a replica of a broker out of ISRs."""
        return any(
            decision.sweep is not None and decision.sweep.takes_out(broker_id, directory)
            for decision in self._lanes.rounds
        )

    @property
    def waiting(self) -> int:
        """How many decisions wait for their turn."""
        return len(self._lanes) + len(self._large_changes)

    @property
    def busy(self) -> bool:
        """A decision is under way."""
        return self._deciding is not None

    def _decide_next(self) -> None:
        while (
            self._deciding is None
            and not self._frozen
            and self.pending is not None
            and (self._has_more(self.pending) or self._large_changes.ready is not None)
            and self.pending.bytes < IN_FLIGHT_BYTES_MAX
            and not self._share.spent()
        ):
            self.pending.end_group_unless(self._unsent())
            self._writer.wrote_some = self._answered = False
            ready = None if self._lanes.has_first else self._large_changes.ready
            self._began_before = False
            if ready is not None:
                decision = self._deciding = ready.decision
                work = self._write_prepared(ready, self.pending)
            else:
                rounds = self._may_begin_round(self.pending)
                decision = self._deciding = self._lanes.take(rounds=rounds)
                self._began_before = self._lanes.took_round
                work = self._work(decision, self.pending)
            work = self._contained(decision, work)
            try:
                next(work)
            except StopIteration:
                self._deciding = None
            else:
                self._cancel = run_in_slices(self._clock, work, self._after_slices)

    def _has_more(self, pending: Pending) -> bool:
        """Return whether a decision may begin now."""
        return self._lanes.has_more(rounds=self._may_begin_round(pending))

    def _may_begin_round(self, pending: Pending) -> bool:
        few = pending.bytes < ROUNDS_IN_FLIGHT_BYTES_MAX
        return few or pending.committed_offset >= self._rounds_end

    def _contained(
        self, decision: Decision, work: Generator[None, None, None]
    ) -> Generator[None, None, None]:
        """Run `work` and answer for its defects. Raises those that no answer can report."""
        try:
            yield from work
        except Exception as error:
            if self._answered or decision.begins_epoch:
                # The defect is in a callback after the answer, or in the begin of the epoch.
                self._deciding = self._cancel = None
                raise
            operation = decision.provenance.operation
            self._log.error("decision_failed", operation=operation, exc_info=True)
            self._answer_defect(decision)
            self._on_defect(error)
            # The traceback's frames would keep the image alive.
            error.__traceback__ = None

    def _answer_defect(self, decision: Decision) -> None:
        """Answer with UNKNOWN_SERVER_ERROR. The next decision begins after that."""
        self._answered = True
        if self._writer.wrote_some:
            # A part of the decision is proposed and can't be taken back in this epoch. `end` must
            # not answer the decision a second time, so it is no longer under way.
            self._deciding = None
            self.freeze("a decision failed after a part of it was written")
        decision.on_outcome(
            LogbergError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "the controller has a defect; its log has details"
            )
        )
        self._deciding = self._cancel = None

    def _after_slices(self) -> None:
        self._cancel = None
        self._deciding = None
        self._decide_next()

    def _work(self, decision: Decision, pending: Pending) -> Generator[None, None, None]:
        """Decide, write, and arrange for the answer. Yields while it takes long."""
        preparation = self._preparation(decision, pending.image)
        if not preparation.starts_small():
            # It goes on reading this image, so no other decision may change it.
            preparation.base = pending.settled()
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
        """Write a prepared change if it still holds; otherwise prepare it again.

        After `TRIES_MAX` preparations, prepare it here, while nothing else is decided.
        """
        decision, tries = preparation.decision, preparation.tries + 1
        try:
            if not preparation.still_holds(pending.settled()):
                preparation = self._preparation(decision, pending.settled(), tries)
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
            self._large_changes.add(self._preparation(following, self.pending.settled()))

    def _preparation(
        self, decision: Decision, image: MetadataImage, tries: int = 1
    ) -> Preparation[Decision]:
        return Preparation(decision, decision.decide, image, self._gate, tries, self.batch_bytes)

    def _finish(
        self, preparation: Preparation[Decision], pending: Pending
    ) -> Generator[None, None, None]:
        """Write a prepared decision, and arrange for the answer."""
        decision = preparation.decision
        try:
            if preparation.failure is not None:
                raise preparation.failure
            if preparation.error is not None:
                raise preparation.error
            yield from preparation.passes_gate(pending.image)
            plan = yield from self._writer.plan(preparation, pending, self.epoch)
        except LogbergError as error:
            # The refusal may rest on records that are not committed yet, so it waits for them.
            # It drops its traceback, which would keep this frame and the image alive.
            self._answered = True
            self._answer_when_committed(decision, pending, error.with_traceback(None))
            return
        try:
            outcome = yield from self._writer.write(preparation, plan, pending, self.epoch)
        except (NotLeaderError, QuorumStoppedError):
            # The quorum reports the loss of leadership later, by `end`. Answer now.
            self._answered = True
            self._deciding = None
            decision.on_outcome(LeadershipLost(self._writer.wrote_some or self._began_before))
        except NoRoomError as error:
            self._answered = True
            self._no_room(decision, pending, str(error))
        except VoterChangeRefusedError as error:
            self._answered = True
            refusal = LogbergError(ErrorCode.VOTERS_NOT_READY, str(error))
            self._answer_when_committed(decision, pending, refusal)
        else:
            self._answered = True
            if decision.on_proposed is not None:
                decision.on_proposed()
            if isinstance(outcome, Written) and outcome.result.unfinished:
                self._rounds_end = pending.mark.log_end
                self._lanes.add_round(decision)
            else:
                self._answer_when_committed(decision, pending, outcome)

    def _no_room(self, decision: Decision, pending: Pending, why: str) -> None:
        """Answer DISK_FULL. If a part is written, resign: the next epoch discards that part."""
        if decision.begins_epoch:
            self._begin_later(decision, why)
            return
        if not self._writer.wrote_some:
            refusal = LogbergError(ErrorCode.DISK_FULL, why)
            self._answer_when_committed(decision, pending, refusal)
            return
        self._deciding = None
        decision.on_outcome(LeadershipLost(maybe_executed=True))
        self.freeze(f"a transaction can't be ended: {why}")

    def _begin_later(self, decision: Decision, why: str) -> None:
        """Lead without writing, and try BeginEpoch again each second.

        Reads and brokers in service need a leader even while the journal has no room.
        """
        epoch, self._no_room_to_begin = self.epoch, why
        for other in self._lanes.take_all():
            other.on_outcome(LogbergError(ErrorCode.DISK_FULL, why))

        def again() -> None:
            if self.pending is not None and self.epoch == epoch:
                self._no_room_to_begin = ""
                self.submit(decision)

        self._clock.call_later(_ROOM_RETRY_S, again)

    def _answer_when_committed(
        self, decision: Decision, pending: Pending, outcome: Written | LogbergError
    ) -> None:
        maybe = self._began_before or (isinstance(outcome, Written) and outcome.wrote)
        pending.when_committed(
            lambda committed: decision.on_outcome(outcome if committed else LeadershipLost(maybe))
        )


def _throttled() -> LogbergError:
    return LogbergError(ErrorCode.THROTTLED, "too many requests wait for their turn; retry later")
