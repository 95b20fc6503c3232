"""What leaves the node, and when: nothing before what it promises is durable.

Rule: a vote, a vote request and an acknowledgement wait for the journal position they rest on.
A frame that waited into another term is dropped: its promise was made in a term that is over,
and what it rests on may have been truncated since.
"""

from collections import deque
from typing import Any

from quorum.journal import RaftJournal
from quorum.wire.frames import FrameKind, encode
from runtime.links import PeerLinks


class Outbox:
    """The way to the peers."""

    def __init__(self, links: PeerLinks, journal: RaftJournal) -> None:
        self._links = links
        self._journal = journal
        self._directory_id = journal.directory_id
        self._held: deque[tuple[int, int, int, bytes]] = deque()
        # Position, term, node, frame; first come, first out: none leaves too early.

    def send(self, node_id: int, kind: FrameKind, term: int, *fields: Any) -> bool:
        """Send now, for what promises nothing."""
        return self.send_encoded(node_id, self.encode(kind, term, *fields))

    def encode(self, kind: FrameKind, term: int, *fields: Any) -> bytes:
        """Return a frame of ours, to be sent to several."""
        return encode(kind, term, self._directory_id, *fields)

    def send_encoded(self, node_id: int, frame: bytes) -> bool:
        """Send a frame that was encoded before."""
        return self._links.send(node_id, frame)

    def hold(self, position: int, node_id: int, kind: FrameKind, term: int, *fields: Any) -> None:
        """Send once the journal is durable up to `position`."""
        frame = self.encode(kind, term, *fields)
        if self.is_durable(position):
            self.send_encoded(node_id, frame)
        else:
            self._held.append((position, term, node_id, frame))

    def is_durable(self, position: int) -> bool:
        """Tell whether what rests on `position` may be promised."""
        return self._journal.durable_position >= position

    def release(self, term: int) -> None:
        """Send what the journal now bears out; `term` is the current one."""
        held = self._held
        while held and self.is_durable(held[0][0]):
            _, promised_in, node_id, frame = held.popleft()
            if self.still_holds(promised_in, term):
                self.send_encoded(node_id, frame)

    def drop_held(self) -> None:
        """What waits is promised no more."""
        self._held.clear()

    def still_holds(self, promised_in: int, term: int) -> bool:
        """Tell whether a promise made in one term may be sent in another."""
        return promised_in == term
