"""Opaque digests beside the heartbeats, by which owners compare what they hold.

Rule: the newest is what counts: it is sent when it changed, and again now and then.
"""

from quorum.config import DIGEST_BYTES_MAX
from quorum.frames import Kind
from quorum.inside import Inside

_AGAIN_AFTER = 4
"""Heartbeats after which an unchanged digest is sent again."""


class Digests:
    """Our digest, on its way to every peer."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._digest = b""
        self._changed = False
        self._sent_at = -1e9

    def set(self, digest: bytes) -> None:
        """Replace it. Raises ValueError when it is too long."""
        if len(digest) > DIGEST_BYTES_MAX:
            raise ValueError(f"a digest of {len(digest)} bytes; at most {DIGEST_BYTES_MAX}")
        self._changed = self._changed or digest != self._digest
        self._digest = digest

    def on_tick(self) -> None:
        """Send it when it is due."""
        inside = self._inside
        silence = inside.now - self._sent_at
        wait = inside.config.heartbeat_s * (1 if self._changed else _AGAIN_AFTER)
        if not self._digest or silence < wait:
            return
        self._sent_at = inside.now
        self._changed = False
        frame = inside.outbox.encode(Kind.DIGEST, inside.term, self._digest)
        for replica in inside.replicas.linked():
            inside.outbox.send_encoded(replica.node_id, frame)
