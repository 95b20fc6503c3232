"""A chained digest of the projected log, so that controllers can be compared (ADR 0071).

Rule: the digest at the end of a batch is SHA-256 of the digest before it and of the batch's bytes.
The chain begins anew, with nothing before it, at the first batch that begins at or past each
multiple of 1,024 offsets. So a controller that began in the middle of the log has the others'
digests from the next such batch on, and needs none of what came before.
"""

from collections import deque
from hashlib import sha256
from typing import Final, NamedTuple

from kafka_listener.projection.batch_projection import ProjectedBatch

EVERY_OFFSETS: Final = 1024
_NEWEST_KEPT: Final = 256
_COARSE_KEPT: Final = 4096


class LogDigest(NamedTuple):
    """The digest of the projected log at the end of a batch."""

    offset: int
    digest: bytes


class DigestChain:
    """The digests of one controller's projected log."""

    def __init__(self) -> None:
        self._newest: deque[LogDigest] = deque(maxlen=_NEWEST_KEPT)
        self._coarse: deque[LogDigest] = deque(maxlen=_COARSE_KEPT)
        self._window = -1
        """The number of the last batch's window of `EVERY_OFFSETS`; -1: there was no batch."""
        self._chain: bytes | None = None
        """None: the chain of this window began before the first batch that was seen."""

    def restart(self) -> None:
        """Forget everything: the log goes on at another place."""
        self._newest.clear()
        self._coarse.clear()
        self._window, self._chain = -1, None

    def add(self, batch: ProjectedBatch) -> None:
        """Add the next batch."""
        window = batch.base_offset // EVERY_OFFSETS
        if window != self._window:
            if self._newest:
                self._coarse.append(self._newest[-1])
            known = self._window >= 0 or not batch.base_offset % EVERY_OFFSETS
            self._window, self._chain = window, b"" if known else None
        if self._chain is not None:
            self._chain = sha256(self._chain + batch.data).digest()
            self._newest.append(LogDigest(batch.end_offset, self._chain))

    @property
    def newest(self) -> LogDigest | None:
        """The digest at the end of the last batch; None while none is known."""
        return self._newest[-1] if self._newest else None

    def at(self, offset: int) -> bytes | None:
        """Return the digest at an offset; None: no batch ends there, or it is not kept any more."""
        for kept in (self._newest, self._coarse):
            for one in reversed(kept):
                if one.offset == offset:
                    return one.digest
                if one.offset < offset:
                    break
        return None

    def kept(self) -> dict[int, bytes]:
        """Return all digests that are kept, by offset."""
        return {one.offset: one.digest for one in (*self._coarse, *self._newest)}

    def window_ends(self) -> list[LogDigest]:
        """Return the digests that are kept of the ends of windows."""
        return list(self._coarse)
