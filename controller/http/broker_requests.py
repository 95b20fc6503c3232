"""Answers requests of brokers other than MetadataFetch: AlterPartition and AssignReplicasToDirs.

The caller is checked as in MetadataFetch: only a credential that is bound to broker n speaks for
it. The decision goes before the requests of users, because a leader can't commit writes while it
waits. One request of a broker and kind is under way at a time, so brokers can't crowd out each
other.

No request id is needed. A change of an ISR names the partition epoch that it starts from, and
where a replica lies is the same when it is said twice.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from controller.config import ControllerConfig
from controller.http.node_view import NodeView
from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.leader.identity import BrokerClaim, IdentityCheck, acted_as, check_process
from controller.result import Decide
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.uuids import parse_uuid_of
from runtime.http.requests import Caller

OnAnswer = Callable[[msgspec.Struct | LogbergError], None]
_RETRY_MS = 100
"""When a broker asks again whose request is still under way."""


class SaidByBroker(Protocol):
    """A message that says which process of a broker sent it."""

    @property
    def cluster_id(self) -> str:
        """The broker's cluster."""

    @property
    def broker_epoch(self) -> int:
        """Of its registration."""

    @property
    def incarnation_id(self) -> str | None:
        """None: the epoch alone says which process it is."""


def claim_of(broker_id: int, said: SaidByBroker) -> BrokerClaim:
    """Return where a message says that it comes from. Raises LogbergError INVALID_REQUEST."""
    incarnation_id = said.incarnation_id
    return BrokerClaim(
        broker_id,
        said.broker_epoch,
        said.cluster_id,
        None if incarnation_id is None else parse_uuid_of("incarnationId", incarnation_id),
    )


class BrokerRequests:
    """Answers brokers, on the active controller."""

    def __init__(self, config: ControllerConfig, node: NodeView, operation: str) -> None:
        """`operation` stands in the envelope of the batch."""
        self._node = node
        self._leader = node.leader
        self._operation = operation
        self._identity = IdentityCheck(
            config.cluster_id, require_authentication=config.brokers_prove_themselves
        )
        self._deciding: set[int] = set()

    def handle(
        self,
        claim: BrokerClaim,
        caller: Caller,
        decide: Decide,
        on_answer: OnAnswer,
        *,
        in_rounds: bool = False,
    ) -> None:
        """Answer exactly once, after the commit. Raises LogbergError for a false claim."""
        if self._leader.proposer.pending is None:
            on_answer(self._node.not_here())
            return
        self._identity.check_claim(caller, claim)

        def proceed() -> None:
            self._proceed(claim, caller, decide, on_answer, in_rounds=in_rounds)

        # A refusal must wait for the check too: another leader may know a newer registration.
        if not self._leader.leadership_check.holds(proceed):
            proceed()

    def _proceed(
        self,
        claim: BrokerClaim,
        caller: Caller,
        decide: Decide,
        on_answer: OnAnswer,
        *,
        in_rounds: bool,
    ) -> None:
        pending = self._leader.proposer.pending
        if pending is None:
            on_answer(self._node.not_here())
            return
        if claim.broker_id in self._deciding:
            on_answer(
                LogbergError(
                    ErrorCode.THROTTLED,
                    f"a request of broker {claim.broker_id} is still under way; send one at a time",
                    retry_after_ms=_RETRY_MS,
                )
            )
            return
        try:
            check_process(pending.image, claim)
        except LogbergError as error:
            on_answer(error)
            return
        self._deciding.add(claim.broker_id)

        def done(outcome: Outcome) -> None:
            self._deciding.discard(claim.broker_id)
            on_answer(self._answer(outcome))

        self._leader.proposer.submit(
            Decision(
                decide,
                Provenance(
                    principal=caller.principal,
                    auth_method=caller.method,
                    client_address=caller.address,
                    operation=self._operation,
                ),
                done,
                first=True,
                in_rounds=in_rounds,
                acted_as=acted_as(caller, claim.broker_id),
            )
        )

    def _answer(self, outcome: Outcome) -> msgspec.Struct | LogbergError:
        if isinstance(outcome, LogbergError):
            return outcome
        if isinstance(outcome, LeadershipLost):
            maybe = LogbergError(ErrorCode.REQUEST_TIMED_OUT)
            return maybe if outcome.maybe_executed else self._node.not_here()
        reply = outcome.result.reply
        assert reply is not None
        return msgspec.structs.replace(reply, offset=outcome.offset, epoch=outcome.epoch)
