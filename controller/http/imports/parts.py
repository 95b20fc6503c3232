"""Answers `POST /v1/import/parts`: the active controller keeps a part of a large import.

Rule: the answer is given only after a majority has confirmed that this controller leads. A part on
a leader that was replaced would be lost.
"""

from collections.abc import Callable

from controller.http.node_view import NodeView
from metadata.errors import LogbergError
from metadata.messages import ImportPartReply, ImportPartRequest
from runtime.http.requests import Request

OnKept = Callable[[ImportPartReply | LogbergError], None]


class PartKeeping:
    """Keeps parts on the active controller."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def handle(self, request: Request, message: ImportPartRequest, on_answer: OnKept) -> None:
        """Keep a part. Raises LogbergError."""
        node, leader = self._node, self._node.leader
        pending = leader.proposer.pending
        if pending is None:
            raise node.not_here()
        principal = leader.changes.asks_for(request)

        def confirmed(leads: bool) -> None:
            if not leads or leader.proposer.pending is not pending:
                on_answer(node.not_here())
                return
            try:
                kept = leader.import_parts.keep(
                    principal, message.digest, message.number, message.records
                )
            except LogbergError as error:
                on_answer(error)
            else:
                image = node.replica.image
                on_answer(ImportPartReply(kept, image.offset, image.epoch))

        node.replica.reads.linearizable(confirmed)
