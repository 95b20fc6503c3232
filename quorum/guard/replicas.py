"""What a node knows of each peer: who it is, and while we lead, how far it has come.

Rule: a replica is a node id *and* a directory id. Another disk under a known node id is another
replica: it holds copies for itself, but it neither votes nor counts.
"""

from collections.abc import Iterator

from quorum.raft.core_node import CoreNode
from quorum.wire.formats import OLDEST_FORMAT

NEVER = -1.0


class PeerReplica:
    """One peer, linked now or before."""

    __slots__ = (
        "acked",
        "answered_at",
        "connected",
        "core_next",
        "fed",
        "floor",
        "held_back_at",
        "is_voter",
        "lacks_since",
        "linked",
        "links",
        "node",
        "node_id",
        "sent",
        "wire_format",
    )

    def __init__(self, node_id: int, directory_id: bytes, *, is_voter: bool) -> None:
        self.node_id = node_id
        self.node = CoreNode(node_id, directory_id)
        self.is_voter = is_voter
        self.linked = False
        self.links = 0
        """How many links there were with it, to tell one from the next."""
        self.wire_format = OLDEST_FORMAT
        """What the present link speaks (`quorum.peers.format_negotiation`)."""
        self.connected = False
        """Whether our core was told that it is."""
        self.begin_epoch(0)

    def begin_epoch(self, last_index: int) -> None:
        """Forget what an earlier leadership of ours knew."""
        self.sent = last_index
        """Highest index put on this link, or known to be there."""
        self.floor = last_index
        """Where its window begins: what it confirmed, or where it asked to go on."""
        self.acked = 0
        """Highest index that it said is durable there."""
        self.fed = 0
        """Highest of those that our core was told."""
        self.core_next = last_index + 1
        """Where our core goes on sending."""
        self.answered_at = NEVER
        self.held_back_at = NEVER
        """Since when its window is full."""
        self.lacks_since = NEVER
        """Since when it has said, and nothing else, that it lacks what it acknowledged."""


class PeerReplicas:
    """All peers, by node id."""

    def __init__(self) -> None:
        self._by_id: dict[int, PeerReplica] = {}

    def __iter__(self) -> Iterator[PeerReplica]:
        return iter(self._by_id.values())

    def get(self, node_id: int) -> PeerReplica | None:
        """Return the replica that was last linked under a node id."""
        return self._by_id.get(node_id)

    def put(self, replica: PeerReplica) -> None:
        """Remember a replica; in the order of node ids, so that runs repeat."""
        self._by_id[replica.node_id] = replica
        self._by_id = dict(sorted(self._by_id.items()))

    def of(self, node: CoreNode) -> PeerReplica | None:
        """Return the replica that the core means, if it is linked."""
        replica = self._by_id.get(node.node_id)
        if replica is None or not replica.linked or replica.node != node:
            return None
        return replica

    def linked(self) -> list[PeerReplica]:
        """Return those that we have a link to."""
        return [replica for replica in self._by_id.values() if replica.linked]

    def linked_voters(self) -> list[PeerReplica]:
        """Return the voters among them."""
        return [replica for replica in self.linked() if replica.is_voter]
