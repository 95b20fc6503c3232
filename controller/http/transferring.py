"""Hands the leadership to a named voter.

Rule: the answer says that it began. Whether the voter took over within an election timeout is seen
in `GET /v1/quorum`; if it did not, the old leader goes on. The log gets no record of its own: the
next epoch says who leads.
"""

from collections.abc import Callable

from controller.http.node_view import NodeView
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import TransferLeadershipReply, TransferLeadershipRequest
from quorum.api import NotLeaderError, Quorum, TransferRefusedError
from runtime.http.requests import Request


class Transferring:
    """Answers `POST /v1/quorum/transfer` on the active controller."""

    def __init__(self, node: NodeView, quorum: Quorum) -> None:
        self._node = node
        self._quorum = quorum

    def handle(
        self,
        request: Request,
        message: TransferLeadershipRequest,
        on_answer: Callable[[TransferLeadershipReply | LogbergError], None],
    ) -> None:
        """Begin the transfer once a majority has confirmed that we lead. Raises LogbergError."""
        if self._node.leader.proposer.pending is None:
            raise self._node.not_here()
        asks = self._node.leader.changes.asks_for(request)

        def confirmed(leads: bool) -> None:
            on_answer(self._begun(message.node_id, asks) if leads else self._node.not_here())

        self._node.replica.reads.linearizable(confirmed)

    def _begun(self, node_id: int, asks: str) -> TransferLeadershipReply | LogbergError:
        epoch = self._quorum.leader_and_epoch().epoch
        try:
            self._quorum.hand_over(node_id, f"{asks} asked for node {node_id}")
        except NotLeaderError:
            return self._node.not_here()
        except TransferRefusedError as refused:
            code = ErrorCode.VOTERS_NOT_READY if refused.later else ErrorCode.INVALID_REQUEST
            return LogbergError(code, str(refused))
        return TransferLeadershipReply(node_id, epoch)
