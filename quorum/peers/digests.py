"""Opaque digests beside the heartbeats, by which owners compare what they hold.

Rule: the newest is what counts, and it is sent again with every heartbeat: how current a node
knows itself to be travels with it (`quorum.guard.freshness`).

An announcement is opaque, too, and travels in a frame of the same kind. A peer tells the two apart
by their first byte, and ignores a byte that it does not know: so does release 0.1.
"""

from quorum.guard.context import NodeContext
from quorum.guard.freshness import DeliveryFreshness
from quorum.wire.frames import DIGEST_BYTES_MAX, FrameKind


class Digests:
    """Our digest, on its way to every peer."""

    def __init__(self, context: NodeContext, freshness: DeliveryFreshness) -> None:
        self._context = context
        self._freshness = freshness
        self._digest = b""
        self._announcement = b""
        self._sent_at = -1e9

    def set(self, digest: bytes) -> None:
        """Replace it. Raises ValueError when it is too long."""
        self._digest = _checked(digest)

    def announce(self, data: bytes) -> None:
        """Replace the announcement. Raises ValueError when it is too long."""
        self._announcement = _checked(data)

    def on_tick(self) -> None:
        """Send it when it is due."""
        context = self._context
        payloads = [data for data in (self._digest, self._announcement) if data]
        if not payloads or context.now - self._sent_at < context.config.heartbeat_s:
            return
        self._sent_at = context.now
        for replica in context.replicas.linked():
            for data in payloads:
                fields = self._freshness.fields_for(replica.node_id)
                context.outbox.send(replica.node_id, FrameKind.DIGEST, context.term, data, *fields)


def _checked(data: bytes) -> bytes:
    if len(data) > DIGEST_BYTES_MAX:
        raise ValueError(f"a digest of {len(data)} bytes; at most {DIGEST_BYTES_MAX}")
    return data
