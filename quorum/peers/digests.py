"""Sends the owner's digest, by which owners compare what they hold, with every heartbeat.

Rule: a newer digest replaces an older one. It is repeated with every heartbeat, because the frame
also carries what the peer needs to know how fresh its data is (`quorum.guard.freshness`).

An announcement is opaque, too, and travels in a frame of the same kind. A peer distinguishes the
two by their first byte, and ignores a byte that it does not know. So does release 0.1.
"""

from quorum.guard.context import NodeContext
from quorum.guard.freshness import DeliveryFreshness
from quorum.wire.frames import DIGEST_BYTES_MAX, FrameKind


class Digests:
    """Our digest and our announcement."""

    def __init__(self, context: NodeContext, freshness: DeliveryFreshness) -> None:
        self._context = context
        self._freshness = freshness
        self._digest = b""
        self._announcement = b""
        self._sent_at = -1e9

    def set(self, digest: bytes) -> None:
        """Replace the digest. Raises ValueError when it is too long."""
        self._digest = _checked(digest)

    def announce(self, data: bytes) -> None:
        """Replace the announcement. Raises ValueError when it is too long."""
        self._announcement = _checked(data)

    def on_tick(self) -> None:
        """Send both to every peer, once per heartbeat."""
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
