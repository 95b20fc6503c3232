"""Answers `POST /v1/coordination/sessions/renew`: a session's client says that it lives.

Rule: the contact is noted on arrival, and the answer is given only after a majority has confirmed
that this controller leads. A leader that was replaced must not tell a client that its session
lives: its successor counts the ttl from its own beginning. Many renewals share one confirmation,
and none of them writes to the log.
"""

from collections.abc import Callable

from controller.http.coordination.describing import revision_of
from controller.http.node_view import NodeView
from controller.managers.coordination.sessions import open_session_of, session_lost
from metadata.errors import LogbergError
from metadata.messages import RenewSessionReply, RenewSessionRequest
from metadata.uuids import parse_uuid_of
from runtime.http.requests import Request

OnRenewed = Callable[[RenewSessionReply | LogbergError], None]


class Renewals:
    """Renews sessions on the active controller."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def handle(self, request: Request, message: RenewSessionRequest, on_answer: OnRenewed) -> None:
        """Note a contact, and answer when it counts. Raises LogbergError."""
        node, leader = self._node, self._node.leader
        pending = leader.proposer.pending
        if pending is None:
            raise node.not_here()
        session_id = parse_uuid_of("sessionId", message.session_id)
        principal = leader.changes.asks_for(request)
        refusal: LogbergError | None = None
        ttl_ms = 0
        try:
            # In the pending image a session that is being ended is gone already.
            session = open_session_of(pending.image, session_id, principal)
        except LogbergError as error:
            # A leader that was replaced may not know the session: only a real leader refuses it.
            refusal = error
        else:
            ttl_ms = session.ttl_ms
            leader.session_contacts.touch(session_id, ttl_ms / 1000)

        def confirmed(leads: bool) -> None:
            if not leads:
                on_answer(node.not_here())
                return
            image = node.replica.image
            if refusal is not None:
                on_answer(refusal)
            elif leader.proposer.pending is not pending:
                on_answer(node.not_here())
            elif session_id not in pending.image.coordination.sessions:
                on_answer(session_lost(session_id))
            else:
                on_answer(RenewSessionReply(ttl_ms, revision_of(image), image.epoch))

        node.replica.reads.linearizable(confirmed)
