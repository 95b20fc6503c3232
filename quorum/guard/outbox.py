"""Sends frames, and holds back those that promise something until the promise is durable.

Rule: a vote, a vote request and an acknowledgement wait for the journal position that they rest on.
A held frame is dropped when the term changes: its promise belongs to the old term, and the entries
that it rests on may have been truncated since.
"""

from collections import deque
from typing import Any

from quorum.journal import RaftJournal
from quorum.wire.frames import FrameKind, encode
from runtime.links.interface import PeerLinks


class Outbox:
    """Sends frames to the peers."""

    def __init__(self, links: PeerLinks, journal: RaftJournal) -> None:
        self._links = links
        self._journal = journal
        self._directory_id = journal.directory_id
        self._held: deque[tuple[int, int, int, bytes]] = deque()
        # (position, term, node, frame) in the order of the calls, which is that of the positions.

    def send(self, node_id: int, kind: FrameKind, term: int, *fields: Any) -> bool:
        """Send a frame that promises nothing, now."""
        return self.send_encoded(node_id, self.encode(kind, term, *fields))

    def encode(self, kind: FrameKind, term: int, *fields: Any) -> bytes:
        """Return a frame's bytes, to be sent to several peers."""
        return encode(kind, term, self._directory_id, *fields)

    def send_encoded(self, node_id: int, frame: bytes) -> bool:
        """Send a frame that was encoded before."""
        return self._links.send(node_id, frame)

    def hold(self, position: int, node_id: int, kind: FrameKind, term: int, *fields: Any) -> None:
        """Send a frame once the journal is durable up to `position`."""
        frame = self.encode(kind, term, *fields)
        if self.is_durable(position):
            self.send_encoded(node_id, frame)
        else:
            self._held.append((position, term, node_id, frame))

    def is_durable(self, position: int) -> bool:
        """Tell whether the journal is durable up to `position`."""
        return self._journal.durable_position >= position

    def release(self, term: int) -> None:
        """Send the held frames whose position is durable now; `term` is the current one."""
        held = self._held
        while held and self.is_durable(held[0][0]):
            _, promised_in, node_id, frame = held.popleft()
            if self.still_holds(promised_in, term):
                self.send_encoded(node_id, frame)

    def drop_held(self) -> None:
        """Drop every held frame."""
        self._held.clear()

    def still_holds(self, promised_in: int, term: int) -> bool:
        """Tell whether a promise made in one term may be sent in another."""
        return promised_in == term
