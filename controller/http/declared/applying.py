"""Answers `POST /v1/apply`: makes the state as declared."""

from controller.http.clients.asked import Asked
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.messages import ApplyReply, ApplyRequest


def apply(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/apply`. One transaction, however large it is."""
    message: ApplyRequest = asked.message
    declared = leader.declared
    return RequestedChange(
        operation="Apply",
        meaning=lambda: declared.meaning(message),
        reply_type=ApplyReply,
        decide=lambda image: declared.apply(image, message),
        mutations=lambda image: declared.touches(image, message),
        dry_run=message.dry_run,
    )
