"""Sends contacts of brokers to a peer, and the confirmations back, for the owner (ADR 0048).

Rule: what can't go now is not sent at all, and the owner is told. A peer gets these frames only on
a link whose format has them, so no earlier release meets a frame that it doesn't know. The links'
own queue is limited. Nothing is sent again: the owner asks again, or answers without.
"""

from quorum.guard.context import NodeContext
from quorum.wire.formats import CONTACTS_FORMAT
from quorum.wire.frames import CONTACTS_BYTES_MAX, FrameKind


class Contacts:
    """Sends the two kinds of frames."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def forward(self, node_id: int, contacts: bytes) -> bool:
        """Send contacts to the leader. See `quorum.api.Quorum.send_contacts`."""
        return self._send(node_id, FrameKind.CONTACTS, contacts)

    def confirm(self, node_id: int, confirmed: bytes) -> bool:
        """Send a confirmation to a standby. See `quorum.api.Quorum.send_confirmed`."""
        return self._send(node_id, FrameKind.CONFIRMED, confirmed)

    def _send(self, node_id: int, kind: FrameKind, data: bytes) -> bool:
        context = self._context
        if len(data) > CONTACTS_BYTES_MAX:
            raise ValueError(f"contacts of {len(data)} bytes; at most {CONTACTS_BYTES_MAX}")
        replica = context.replicas.get(node_id)
        if replica is None or not replica.linked or not replica.is_voter:
            return False
        if replica.wire_format < CONTACTS_FORMAT:
            return False
        return context.outbox.send(node_id, kind, context.term, data)
