"""Answers AlterPartition: a broker changes the ISRs of partitions that it leads (KIP-497).

The caller is checked as in MetadataFetch: only a credential that is bound to broker n speaks for
it. The decision goes before the requests of users, because a leader can't commit writes while it
waits. One request of a broker is under way at a time, so brokers can't crowd out each other.

No request id is needed. A change names the partition epoch that it starts from, so a repeated
request changes nothing.
"""

from collections.abc import Callable

import msgspec

from controller.config import ControllerConfig
from controller.http.node_view import NodeView
from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.leader.identity import BrokerClaim, IdentityCheck, acted_as, check_process
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import AlterPartitionReply, AlterPartitionRequest
from metadata.uuids import parse_uuid_of
from runtime.http.requests import Caller

OnAnswer = Callable[[msgspec.Struct | LogbergError], None]
_RETRY_MS = 100
"""When a broker asks again whose request is still under way."""


class AlterPartition:
    """Answers brokers, on the active controller. `node.leader` decides."""

    def __init__(self, config: ControllerConfig, node: NodeView) -> None:
        self._node = node
        self._leader = node.leader
        self._identity = IdentityCheck(
            config.cluster_id, require_authentication=config.require_authentication
        )
        self._deciding: set[int] = set()

    def handle(self, request: AlterPartitionRequest, caller: Caller, on_answer: OnAnswer) -> None:
        """Answer exactly once, after the commit. Raises LogbergError for a false claim."""
        if self._leader.proposer.pending is None:
            on_answer(self._node.not_here())
            return
        incarnation_id = request.incarnation_id
        claim = BrokerClaim(
            request.broker_id,
            request.broker_epoch,
            request.cluster_id,
            None if incarnation_id is None else parse_uuid_of("incarnationId", incarnation_id),
        )
        self._identity.check_claim(caller, claim)
        # A refusal must wait for the check too: another leader may know a newer registration.
        if not self._leader.leadership_check.holds(
            lambda: self._proceed(request, claim, caller, on_answer)
        ):
            self._proceed(request, claim, caller, on_answer)

    def _proceed(
        self,
        request: AlterPartitionRequest,
        claim: BrokerClaim,
        caller: Caller,
        on_answer: OnAnswer,
    ) -> None:
        pending = self._leader.proposer.pending
        if pending is None:
            on_answer(self._node.not_here())
            return
        if request.broker_id in self._deciding:
            on_answer(
                LogbergError(
                    ErrorCode.THROTTLED,
                    f"a request of broker {request.broker_id} is still under way; send one at a "
                    "time",
                    retry_after_ms=_RETRY_MS,
                )
            )
            return
        try:
            check_process(pending.image, claim)
        except LogbergError as error:
            on_answer(error)
            return
        self._submit(request, caller, on_answer)

    def _submit(self, request: AlterPartitionRequest, caller: Caller, on_answer: OnAnswer) -> None:
        self._deciding.add(request.broker_id)

        def done(outcome: Outcome) -> None:
            self._deciding.discard(request.broker_id)
            if isinstance(outcome, LogbergError):
                on_answer(outcome)
            elif isinstance(outcome, LeadershipLost):
                on_answer(
                    LogbergError(ErrorCode.REQUEST_TIMED_OUT)
                    if outcome.maybe_executed
                    else self._node.not_here()
                )
            else:
                reply = outcome.result.reply
                assert isinstance(reply, AlterPartitionReply)
                on_answer(
                    msgspec.structs.replace(reply, offset=outcome.offset, epoch=outcome.epoch)
                )

        self._leader.proposer.submit(
            Decision(
                lambda image: self._leader.isrs.alter(image, request),
                Provenance(
                    principal=caller.principal,
                    auth_method=caller.method,
                    client_address=caller.address,
                    operation="AlterPartition",
                ),
                done,
                first=True,
                acted_as=acted_as(caller, request.broker_id),
            )
        )
