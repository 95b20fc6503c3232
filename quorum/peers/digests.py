"""Opaque digests beside the heartbeats, by which owners compare what they hold.

Rule: the newest is what counts, and it is sent again with every heartbeat: how current a node
knows itself to be travels with it (`quorum.guard.currency`).

An announcement is opaque, too, and travels in a frame of the same kind. A peer tells the two apart
by their first byte, and ignores a byte that it does not know: so does release 0.1.
"""

from quorum.guard.currency import Currency
from quorum.guard.inside import Inside
from quorum.wire.frames import DIGEST_BYTES_MAX, Kind


class Digests:
    """Our digest, on its way to every peer."""

    def __init__(self, inside: Inside, currency: Currency) -> None:
        self._inside = inside
        self._currency = currency
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
        inside = self._inside
        payloads = [data for data in (self._digest, self._announcement) if data]
        if not payloads or inside.now - self._sent_at < inside.config.heartbeat_s:
            return
        self._sent_at = inside.now
        for replica in inside.replicas.linked():
            for data in payloads:
                fields = self._currency.fields_for(replica.node_id)
                inside.outbox.send(replica.node_id, Kind.DIGEST, inside.term, data, *fields)


def _checked(data: bytes) -> bytes:
    if len(data) > DIGEST_BYTES_MAX:
        raise ValueError(f"a digest of {len(data)} bytes; at most {DIGEST_BYTES_MAX}")
    return data
