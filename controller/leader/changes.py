"""Carries out requests that change something: from HTTP to a decision and back, each executed once.

A manager decides what a request does. Here is what all changes have in common: provenance, request
ids, the quota, dry runs, and the answer after the commit.

A commit proves that this controller led when it decided. A refusal has no commit, so a majority is
asked. Otherwise a leader that stalled and was replaced could refuse a request because of a state
that its successor has changed.

After a stall nothing is proposed before a majority has confirmed that this controller still leads.
A proposal of a leader that was replaced is never committed, but its caller could only be told that
the outcome is unknown. So the caller is told to ask the new leader instead.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from controller.config import ControllerConfig
from controller.leader.answer_waits import AnswerWaits
from controller.leader.client_mutation_quotas import ClientMutationQuotas, Payer, payer_of
from controller.leader.conditions import conditional, expected_offset
from controller.leader.decisions import Decision, LeadershipLost, Outcome, Written
from controller.leader.delegation import ON_BEHALF_OF, on_behalf_of
from controller.leader.idempotency import (
    Answer,
    Idempotency,
    JoinResult,
    RequestKey,
    answer_end,
    given_request_id,
    remembered_reply,
    request_key,
    round_key,
)
from controller.leader.leadership_check import LeadershipCheck
from controller.leader.mutation_quota import MutationQuota
from controller.leader.proposer import Proposer
from controller.leader.requested_change import Counting, RequestedChange, ResumableRounds
from controller.leader.token_bucket import TokenBucket
from controller.managers.bridge.gate import check_bridge
from controller.managers.level_gate import LevelGate
from controller.result import ControllerResult, Decide
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages.parts import LongMessage
from metadata.messages.quorum import RequestUnderWay
from metadata.messages.records_json import record_to_json
from metadata.plain_text import check_plain
from metadata.records import Record
from metadata.uuids import uuid_text
from runtime.clock import Clock
from runtime.http.requests import Request
from runtime.randomness import Random
from runtime.tracing import RequestTrace

T = TypeVar("T")
OnAnswer = Callable[[msgspec.Struct | LongMessage | LogbergError, str | None], None]
"""Gets the reply or the error, and the request id."""
REASON = "x-logberg-reason"
CLIENT_ID = "x-logberg-client-id"
_TEXT_MAX = 1000
_LARGE_BODY = 128 * 1024
"""Bytes. Such a body is digested in a later pass of the event loop than it is decoded in."""
_NOT_DECIDED = (ErrorCode.THROTTLED, ErrorCode.DISK_FULL)
"""Refusals that don't depend on the state, so no majority is asked. A crowd of refused callers must
not cause traffic among the controllers."""


class _Receipt:
    """What a change has paid to the quota. It pays once, however often it is decided."""

    __slots__ = ("began", "bucket", "partitions", "wrote")

    def __init__(self) -> None:
        self.partitions = 0
        self.bucket: TokenBucket | None = None
        """Of the client; None if no quota applies to it."""
        self.wrote = False
        self.began = False
        """A round before this one wrote."""


class Changes:
    """Carries out changes on the active controller."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        random: Random,
        proposer: Proposer,
        quota: MutationQuota,
        client_quotas: ClientMutationQuotas,
        confirm: Callable[[Callable[[bool], None]], None],
        leadership_check: LeadershipCheck,
    ) -> None:
        """`confirm` asks a majority whether this controller leads, and calls back."""
        self._confirm = confirm
        self._leadership_check = leadership_check
        self._config = config
        self._clock = clock
        self._random = random
        self._proposer = proposer
        self._quota = quota
        self._client_quotas = client_quotas
        self._idempotency = Idempotency(config.request_id_ahead_ms)
        self._waits = AnswerWaits(clock, config.write_wait_s)
        self._in_rounds: dict[RequestKey, tuple[str, ResumableRounds]] = {}
        """The operation and the rounds of each request that is under way."""

    def under_way(self) -> tuple[RequestUnderWay, ...]:
        """Return how far the requests are whose first round is in the log."""
        return tuple(
            RequestUnderWay(operation, _id(key), *rounds.progress)
            for key, (operation, rounds) in self._in_rounds.items()
            if rounds.number > 0
        )

    def asks_for(self, request: Request) -> str:
        """Return the principal for whom a request asks. Raises LogbergError."""
        provenance = provenance_of(request, "", self._config.delegations)
        return provenance.on_behalf_of or provenance.principal

    def provenance(self, request: Request, operation: str, meaning: bytes) -> Provenance:
        """Return who asks for an operation that is no change, by which request and why.

        Its request id says where it came from; no answer is remembered under it. Raises
        LogbergError.
        """
        pending, now_ms = self._proposer.pending, self._clock.wall_ms()
        if pending is not None:
            now_ms = max(now_ms, pending.mark.timestamp_ms)
        key = request_key(request, meaning, now_ms, self._random)
        asked = provenance_of(request, operation, self._config.delegations)
        return msgspec.structs.replace(asked, request_id=key.request_id, request_digest=key.digest)

    def remembered_reply(self, request: Request, reply_type: type[T]) -> T | None:
        """Return the reply that the log remembers under the id of a request.

        None: it remembers none, or one of another type. Raises LogbergError for a wrong id.
        """
        request_id, pending = given_request_id(request), self._proposer.pending
        if request_id is None or pending is None:
            return None
        return remembered_reply(pending.image, request_id, reply_type)

    def submit(self, request: Request, change: RequestedChange, on_answer: OnAnswer) -> None:
        """Decide, write and answer. A dry run only decides and shows the records."""
        if len(request.body) > _LARGE_BODY:
            # Decoding the body has used up the time of this pass of the loop.
            self._clock.call_soon(lambda: self._submit(request, change, on_answer))
        else:
            self._submit(request, change, on_answer)

    def _submit(self, request: Request, change: RequestedChange, on_answer: OnAnswer) -> None:
        pending = self._proposer.pending
        if pending is None:
            on_answer(LogbergError(ErrorCode.NOT_CONTROLLER), None)
            return
        now_ms = max(self._clock.wall_ms(), pending.mark.timestamp_ms)
        try:
            provenance = provenance_of(request, change.operation, self._config.delegations)
            expected = expected_offset(request)
            if expected is not None:
                change = self._on_condition(change, expected)
            if change.dry_run:
                given_request_id(request)
                self._show(change, provenance, on_answer)
                return
            key = request_key(request, change.meaning(), now_ms, self._random)
            remembered = self._idempotency.recall(key, pending.image, now_ms)
            if remembered is not None:
                self._resume(change, key, pending.image, now_ms)
                pending.when_committed(
                    lambda ok: on_answer(_again(remembered, change, key, ok), _id(key))
                )
                return
            if self._joined(key, on_answer) is JoinResult.JOINED:
                return
        except LogbergError as error:
            on_answer(error, request.headers.get("x-logberg-request-id"))
            return

        def not_remembered(image: MetadataImage) -> bool:
            try:
                return self._idempotency.recall(key, image, now_ms) is None
            except LogbergError:
                return False

        receipt, payer, trace = _Receipt(), payer_of(provenance), request.trace
        if trace is not None:
            trace.step("wait")

        def decide_once(image: MetadataImage) -> ControllerResult | Generator[None, None, Any]:
            # Check again: the log may have forgotten the id while this waited for its turn.
            self._idempotency.recall(key, image, now_ms)
            self._resume(change, key, image, now_ms)
            deciding = self._paid(change, image, payer, not_remembered, receipt)
            return deciding if trace is None else _traced(trace, deciding)

        if change.rounds is not None:
            self._in_rounds[key] = change.operation, change.rounds

        def finish(sure: Outcome) -> None:
            if trace is not None:
                trace.step("answer")
            if change.rounds is not None:
                self._in_rounds.pop(key, None)
            if isinstance(sure, LeadershipLost) and receipt.wrote:
                sure = LeadershipLost(maybe_executed=True)
            self._idempotency.finish(key, _answered(sure, change, key))

        provenance = msgspec.structs.replace(
            provenance, request_id=key.request_id, request_digest=key.digest
        )
        decision = Decision(
            decide_once,
            provenance,
            lambda outcome: self._confirmed(outcome, finish),
            key,
            in_rounds=change.in_rounds,
            sweep=change.sweep,
            on_proposed=None if trace is None else partial(trace.step, "commit"),
            acted_as=change.acted_as or request.caller.acted_as,
        )
        if not self._leadership_check.holds(lambda: self._proposer.submit(decision)):
            self._proposer.submit(decision)

    def _on_condition(self, change: RequestedChange, expected: int) -> RequestedChange:
        """Return the same change, refused if what it touches has changed since an offset."""
        undivided, rounds = change.undivided, change.rounds
        if undivided is not None:
            rounds = None
        return change._replace(
            decide=conditional(
                undivided or change.decide,
                expected,
                self._proposer.last_changes,
                change.concerns,
                in_rounds=change.in_rounds,
                resumed=lambda: rounds is not None and rounds.number > 0,
            ),
            rounds=rounds,
            # With another condition it is another request.
            meaning=lambda: b"%b\0%d" % (change.meaning(), expected),
        )

    def _resume(
        self, change: RequestedChange, key: RequestKey, image: MetadataImage, now_ms: int
    ) -> None:
        """Take over the answers of rounds that are in the log. Raises LogbergError."""
        rounds = change.rounds
        if rounds is None:
            return
        while True:
            answer = self._idempotency.recall(round_key(key, rounds.number), image, now_ms)
            if answer is None:
                return
            rounds.resume(answer.body)

    def _paid(
        self,
        change: RequestedChange,
        image: MetadataImage,
        payer: Payer,
        not_remembered: Callable[[MetadataImage], bool],
        receipt: "_Receipt",
    ) -> Generator[None, None, ControllerResult]:
        """Charge the quotas, then decide. A change that writes nothing is free.

        A long preparation must not be written if the log has forgotten its request id meanwhile, so
        `rests_on` checks that too.
        """
        if not receipt.wrote:
            counted = change.mutations(image)
            partitions = (yield from counted) if isinstance(counted, Generator) else counted
            self._charge(partitions, image, payer, receipt)
        try:
            decided = change.decide(image)
            result = (yield from decided) if isinstance(decided, Generator) else decided
            check_bridge(image, result.records)
            receipt.wrote = receipt.began or bool(result.records)
            receipt.began = receipt.wrote and result.unfinished
            if change.rounds is not None and change.rounds.number > 0:
                result = result._replace(began=True)
            if (rests_on := result.rests_on) is not None:
                return result._replace(
                    rests_on=lambda later: not_remembered(later) and rests_on(later)
                )
            return result
        finally:
            if not receipt.wrote:
                self._quota.refund(receipt.partitions)
                if receipt.bucket is not None:
                    receipt.bucket.take(-receipt.partitions)
                receipt.partitions, receipt.bucket = 0, None

    def _charge(
        self, partitions: int, image: MetadataImage, payer: Payer, receipt: "_Receipt"
    ) -> None:
        """Charge the client's quota and the cluster's: both, or none. Raises LogbergError."""
        epoch = self._proposer.epoch
        bucket = self._client_quotas.charge(partitions, payer, image.client_quotas, epoch)
        try:
            self._quota.charge(partitions, epoch)
        except LogbergError:
            if bucket is not None:
                bucket.take(-partitions)
            raise
        receipt.partitions, receipt.bucket = partitions, bucket

    def _within_limits(
        self, decide: Decide, mutations: Callable[[MetadataImage], int | Counting]
    ) -> Decide:
        """Refuse a dry run for its size, as the change would be. It uses up no quota."""

        def decide_only(image: MetadataImage) -> Generator[None, None, ControllerResult]:
            counted = mutations(image)
            if isinstance(counted, Generator):
                yield from counted
            decided = decide(image)
            return (yield from decided) if isinstance(decided, Generator) else decided

        return decide_only

    def _confirmed(self, outcome: Outcome, report: Callable[[Outcome], None]) -> None:
        """Report an outcome once it is certain that this controller led when it decided."""
        if (
            isinstance(outcome, LeadershipLost)
            or (isinstance(outcome, Written) and outcome.wrote)
            or (isinstance(outcome, LogbergError) and outcome.code in _NOT_DECIDED)
        ):
            report(outcome)
        else:
            self._confirm(
                lambda leads: report(outcome if leads else LeadershipLost(maybe_executed=False))
            )

    def _show(self, change: RequestedChange, provenance: Provenance, on_answer: OnAnswer) -> None:
        """Do a dry run: decide on the pending image, and answer with the records."""
        decide = self._within_limits(change.decide, change.mutations)

        def decide_only(image: MetadataImage) -> Generator[None, None, ControllerResult]:
            decided = decide(image)
            result = (yield from decided) if isinstance(decided, Generator) else decided
            assert result.reply is not None
            check_bridge(image, result.records)
            yield from LevelGate().check(image, result.records)
            shown[:] = result.records
            return ControllerResult((), msgspec.structs.replace(result.reply, dry_run=True))

        shown: list[Record] = []

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Written):
                # There may be a hundred thousand records: convert them while they are sent.
                head = change.complete(outcome.result.reply)
                on_answer(LongMessage(head, "records", _words(shown), len(shown)), None)
            elif isinstance(outcome, LogbergError):
                on_answer(outcome, None)
            else:
                on_answer(LogbergError(ErrorCode.NOT_CONTROLLER), None)

        self._proposer.submit(
            Decision(decide_only, provenance, lambda outcome: self._confirmed(outcome, done))
        )

    def _joined(self, key: RequestKey, on_answer: OnAnswer) -> JoinResult:
        """Join a request under way, if there is one. `on_answer` is called once.

        It gets the outcome, or REQUEST_TIMED_OUT after `write_wait_s`.

        Raises LogbergError REQUEST_ID_REUSED; then `on_answer` is never called.
        """
        wait = self._waits.of(lambda outcome: on_answer(outcome, _id(key)))
        joined = self._idempotency.join(key, wait.answer)
        self._waits.add(wait)
        return joined


def _traced(
    trace: RequestTrace, deciding: Generator[None, None, ControllerResult]
) -> Generator[None, None, ControllerResult]:
    """Decide, and say when that begins and when writing does."""
    trace.step("decide")
    result = yield from deciding
    trace.step("propose")
    return result


def _words(records: list[Record]) -> Iterator[Any]:
    """Convert records to JSON, and free each at once: freeing all of them together takes long."""
    records.reverse()
    while records:
        yield record_to_json(records.pop())


def provenance_of(
    request: Request, operation: str, delegations: Mapping[int, frozenset[str]]
) -> Provenance:
    """Return who asks, for whom and why.

    Raises LogbergError CLUSTER_AUTHORIZATION_FAILED for a user that the caller may not ask for, and
    INVALID_REQUEST for control characters in a header.
    """
    headers, caller = request.headers, request.caller
    for name in (REASON, CLIENT_ID, ON_BEHALF_OF):
        check_plain(f"header {name}", headers.get(name, ""))
    return Provenance(
        principal=caller.principal,
        auth_method=caller.method,
        on_behalf_of=on_behalf_of(caller, headers.get(ON_BEHALF_OF, ""), delegations),
        client_address=caller.address,
        client_id=headers.get(CLIENT_ID, "")[:_TEXT_MAX],
        operation=operation,
        reason=headers.get(REASON, "")[:_TEXT_MAX],
    )


def _answered(
    outcome: Outcome, change: RequestedChange, key: RequestKey
) -> msgspec.Struct | LongMessage | LogbergError:
    if isinstance(outcome, LogbergError):
        return outcome
    if not isinstance(outcome, Written):
        # Proposed records may still be in the new leader's log, and then they count.
        unknown = (
            ErrorCode.REQUEST_TIMED_OUT if outcome.maybe_executed else ErrorCode.NOT_CONTROLLER
        )
        return LogbergError(unknown)
    assert outcome.result.reply is not None
    reply = change.complete(outcome.result.reply)
    return _placed(reply, outcome.offset, outcome.epoch, key)


def _again(
    answer: Answer, change: RequestedChange, key: RequestKey, committed: bool
) -> msgspec.Struct | LongMessage | LogbergError:
    """Return the answer that was given before."""
    if not committed:
        return LogbergError(ErrorCode.REQUEST_TIMED_OUT)
    reply = change.complete(msgspec.msgpack.decode(answer.body, type=change.reply_type))
    return _placed(reply, answer.offset, answer.epoch, key)


def _placed(
    reply: msgspec.Struct | LongMessage, offset: int, epoch: int, key: RequestKey
) -> msgspec.Struct | LongMessage:
    """Add to a reply where in the log the change is."""
    if isinstance(reply, LongMessage):
        return reply._replace(head=_placed(reply.head, offset, epoch, key))
    return msgspec.structs.replace(reply, offset=offset, epoch=epoch, request_id=_id(key))


def _id(key: RequestKey) -> str:
    return uuid_text(key.request_id)


def answered_end(image: MetadataImage, request_id: bytes) -> int | None:
    """Return the end offset of what a request wrote; None if the log doesn't remember it."""
    return answer_end(image, request_id)
