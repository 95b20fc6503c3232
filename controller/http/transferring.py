"""Hands the leadership to a named voter.

Rule: first the log says who asked for it and why, as a batch of one NoOpRecord, and then the
transfer begins. A leader whose disk takes no more is handed over without such a batch: that may be
why somebody asks. The answer says that the transfer began. Whether the voter took over within an
election timeout is seen in `GET /v1/quorum`; if it did not, the old leader goes on.
"""

from collections.abc import Callable
from typing import Final

from controller.http.node_view import NodeView
from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import TransferLeadershipReply, TransferLeadershipRequest
from metadata.messages.wire import canonical
from metadata.records import NoOpRecord
from quorum.api import NotLeaderError, Quorum, TransferRefusedError
from runtime.http.requests import Request

OPERATION: Final = "TransferLeadership"
OnAnswer = Callable[[TransferLeadershipReply | LogbergError], None]


class Transferring:
    """Answers `POST /v1/quorum/transfer` on the active controller."""

    def __init__(self, node: NodeView, quorum: Quorum) -> None:
        self._node = node
        self._quorum = quorum

    def handle(
        self, request: Request, message: TransferLeadershipRequest, on_answer: OnAnswer
    ) -> None:
        """Begin the transfer once a majority has confirmed that we lead. Raises LogbergError."""
        if self._node.leader.proposer.pending is None:
            raise self._node.not_here()
        asked = self._node.leader.changes.provenance(request, OPERATION, canonical(message))

        def confirmed(leads: bool) -> None:
            if leads:
                self._write(message.node_id, asked, on_answer)
            else:
                on_answer(self._node.not_here())

        self._node.replica.reads.linearizable(confirmed)

    def _write(self, node_id: int, asked: Provenance, on_answer: OnAnswer) -> None:
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
            else:
                on_answer(self._begun(node_id, asked))

        why = f"node {node_id} shall lead"
        result = ControllerResult((NoOpRecord(),), reason=why)
        self._node.leader.proposer.submit(Decision(lambda _image: result, asked, done, first=True))

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
