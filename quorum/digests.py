"""Opaque digests beside the heartbeats, by which owners compare what they hold.

Rule: the newest is what counts, and it is sent again with every heartbeat: how current a node
knows itself to be travels with it (`quorum.currency`).
"""

from quorum.config import DIGEST_BYTES_MAX
from quorum.currency import Currency
from quorum.frames import Kind
from quorum.inside import Inside


class Digests:
    """Our digest, on its way to every peer."""

    def __init__(self, inside: Inside, currency: Currency) -> None:
        self._inside = inside
        self._currency = currency
        self._digest = b""
        self._sent_at = -1e9

    def set(self, digest: bytes) -> None:
        """Replace it. Raises ValueError when it is too long."""
        if len(digest) > DIGEST_BYTES_MAX:
            raise ValueError(f"a digest of {len(digest)} bytes; at most {DIGEST_BYTES_MAX}")
        self._digest = digest

    def on_tick(self) -> None:
        """Send it when it is due."""
        inside = self._inside
        if not self._digest or inside.now - self._sent_at < inside.config.heartbeat_s:
            return
        self._sent_at = inside.now
        for replica in inside.replicas.linked():
            fields = self._currency.fields_for(replica.node_id)
            inside.outbox.send(replica.node_id, Kind.DIGEST, inside.term, self._digest, *fields)
