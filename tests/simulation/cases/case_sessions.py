"""I21 for the sessions of a case's clients: none is gone before its client's own deadline.

Rule: a session that the client ended, or that the case had revoked, may be gone at any time.
"""

from collections import Counter

from coordination.coordinator import Coordinator
from coordination.types import SessionId
from metadata.image import MetadataImage
from metadata.uuids import parse_uuid
from runtime.simulated.world import World


class CaseSessions:
    """What `invariants` asks at each image that a controller commits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._clients: list[Coordinator] = []
        self._opened: dict[SessionId, int] = {}
        """By session: an offset at which it was seen."""
        self.revoked: set[SessionId] = set()
        self.counts: Counter[str] = Counter()

    def add(self, client: Coordinator) -> None:
        """Watch over a client's sessions."""
        self._clients.append(client)

    def check(self, image: MetadataImage, node_id: int) -> None:
        """Fail the run if a session is missing whose deadline is still to come."""
        for client in self._clients:
            session = client.session
            over = session.signal.over.is_set() or self._world.now >= session.deadline
            if over or session.id in self.revoked:
                continue
            if parse_uuid(session.id) in image.coordination.sessions:
                self._opened.setdefault(session.id, image.offset)
            elif self._opened.get(session.id, image.offset + 1) <= image.offset:
                self._world.fail(
                    f"I21: session {session.id} is gone at offset {image.offset}, "
                    f"{session.deadline - self._world.now:.3f} s before its deadline",
                    node_id,
                )
