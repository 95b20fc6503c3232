"""Hands the leadership to a named voter.

Rule: first the log says who asked for it and why, as a batch of one NoOpRecord, and then the
transfer begins. A leader whose disk takes no more is handed over without such a batch: that may be
why somebody asks. The answer says that the transfer began. Whether the voter took over within an
election timeout is seen in `GET /v1/quorum`; if it did not, the old leader goes on.

Rule: the right to ask for it is judged again when that batch is decided. A refusal for any other
reason, such as a full disk, ends no transfer.
"""

from collections.abc import Callable
from typing import Final

from controller.access.guard import RequestAccess
from controller.http.node_view import NodeView
from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.leader.requested_change import if_allowed
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import TransferLeadershipReply, TransferLeadershipRequest
from metadata.messages.wire import canonical
from metadata.records import NoOpRecord
from quorum.api import NotLeaderError, Quorum, TransferRefusedError
from runtime.http.requests import Request

OPERATION: Final = "TransferLeadership"
_NOT_ALLOWED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
OnAnswer = Callable[[TransferLeadershipReply | LogbergError], None]


class Transferring:
    """Answers `POST /v1/quorum/transfer` on the active controller."""

    def __init__(self, node: NodeView, quorum: Quorum) -> None:
        self._node = node
        self._quorum = quorum

    def handle(
        self,
        request: Request,
        message: TransferLeadershipRequest,
        access: RequestAccess | None,
        on_answer: OnAnswer,
    ) -> None:
        """Begin the transfer once a majority has confirmed that we lead. Raises LogbergError."""
        if self._node.leader.proposer.pending is None:
            raise self._node.not_here()
        asked = self._node.leader.changes.provenance(request, OPERATION, canonical(message))

        def confirmed(leads: bool) -> None:
            if leads:
                self._write(message.node_id, asked, access, on_answer)
            else:
                on_answer(self._node.not_here())

        self._node.replica.reads.linearizable(confirmed)

    def _write(
        self,
        node_id: int,
        asked: Provenance,
        access: RequestAccess | None,
        on_answer: OnAnswer,
    ) -> None:
        """Let the log say who asked. Nothing is written for what is refused, or done already."""
        refusal = self._quorum.refusal_to_hand_over(node_id)
        if refusal is not None:
            on_answer(_refused(refusal))
            return
        if node_id == self._node.leader.node_id:
            on_answer(self._begun(node_id, asked))
            return

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, LeadershipLost):
                on_answer(self._node.not_here())
            elif isinstance(outcome, LogbergError) and outcome.code is _NOT_ALLOWED:
                on_answer(outcome)
            else:
                on_answer(self._begun(node_id, asked))

        why = f"node {node_id} shall lead"
        result = ControllerResult((NoOpRecord(),), reason=why)
        decide = if_allowed(lambda _image: result, access)
        self._node.leader.proposer.submit(Decision(decide, asked, done, first=True))

    def _begun(self, node_id: int, asked: Provenance) -> TransferLeadershipReply | LogbergError:
        epoch = self._quorum.leader_and_epoch().epoch
        who = asked.on_behalf_of or asked.principal
        try:
            self._quorum.hand_over(node_id, f"{who} asked for node {node_id}")
        except NotLeaderError:
            return self._node.not_here()
        except TransferRefusedError as refusal:
            return _refused(refusal)
        return TransferLeadershipReply(node_id, epoch)


def _refused(refusal: TransferRefusedError) -> LogbergError:
    code = ErrorCode.VOTERS_NOT_READY if refusal.later else ErrorCode.INVALID_REQUEST
    return LogbergError(code, str(refusal))
