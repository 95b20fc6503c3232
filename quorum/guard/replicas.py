"""What a node knows of each peer: its identity, and while we lead, how far it has come.

Rule: a replica is a node id *and* a directory id. Another disk under a known node id is another
replica. It keeps a copy for itself, but it neither votes nor counts.
"""

from collections.abc import Iterator

from quorum.raft.core_node import CoreNode
from quorum.wire.formats import OLDEST_FORMAT

NEVER = -1.0


class PeerReplica:
    """One peer that is linked now, or was before."""

    __slots__ = (
        "acked",
        "answered_at",
        "appended_at",
        "connected",
        "core_next",
        "fed",
        "floor",
        "has_formation",
        "held_back_at",
        "is_voter",
        "lacks_since",
        "linked",
        "links",
        "may_be_voter",
        "node",
        "node_id",
        "sent",
        "told_commit",
        "wire_format",
    )

    def __init__(self, node_id: int, directory_id: bytes, *, is_voter: bool) -> None:
        self.node_id = node_id
        self.node = CoreNode(node_id, directory_id)
        self.is_voter = is_voter
        """Whether our log's voters include it."""
        self.may_be_voter = False
        """Whether it is in any set that may be in force (`quorum.guard.heard_voters`)."""
        self.has_formation = False
        """Whether it has shown, since the link opened, that its journal holds the formation."""
        self.linked = False
        self.links = 0
        """How many links there were with it, so that an answer on an old link is recognised."""
        self.wire_format = OLDEST_FORMAT
        """The format of the present link (`quorum.peers.format_negotiation`)."""
        self.connected = False
        """Whether we told our core that it is connected."""
        self.begin_epoch(0)

    @property
    def identity(self) -> tuple[int, bytes]:
        """Node id and directory id."""
        return self.node_id, self.node.directory_id

    @property
    def may_lead_us(self) -> bool:
        """Whether we follow it, and vote for it, if it is elected or stands."""
        return self.is_voter or self.may_be_voter

    @property
    def is_held_back(self) -> bool:
        """Whether we wait for its acknowledgements before we send more."""
        return self.held_back_at != NEVER

    def begin_epoch(self, last_index: int) -> None:
        """Forget what we knew in an earlier leadership."""
        self.sent = last_index
        """Highest index sent on this link, or known to be at the peer."""
        self.floor = last_index
        """Where its window begins: the index that it confirmed, or asked to go on from."""
        self.acked = 0
        """Highest index that it acknowledged as durable there."""
        self.fed = 0
        """Highest acknowledged index that we passed to our core."""
        self.core_next = last_index + 1
        """The index from which our core goes on sending."""
        self.told_commit = 0
        """The commit index of the newest append that was sent to it."""
        self.appended_at = NEVER
        """When an append, or a manifest, was last sent to it."""
        self.answered_at = NEVER
        self.held_back_at = NEVER
        """Since when we have held entries back from it; NEVER: we don't."""
        self.lacks_since = NEVER
        """Since when it has kept answering that it lacks what it acknowledged."""


class PeerReplicas:
    """All peers, by node id."""

    def __init__(self) -> None:
        self._by_id: dict[int, PeerReplica] = {}

    def __iter__(self) -> Iterator[PeerReplica]:
        return iter(self._by_id.values())

    def get(self, node_id: int) -> PeerReplica | None:
        """Return the replica that was linked last under a node id."""
        return self._by_id.get(node_id)

    def put(self, replica: PeerReplica) -> None:
        """Remember a replica. They are kept in the order of node ids, so that runs repeat."""
        self._by_id[replica.node_id] = replica
        self._by_id = dict(sorted(self._by_id.items()))

    def of(self, node: CoreNode) -> PeerReplica | None:
        """Return the replica of a core's node, if it is linked."""
        replica = self._by_id.get(node.node_id)
        if replica is None or not replica.linked or replica.node != node:
            return None
        return replica

    def linked(self) -> list[PeerReplica]:
        """Return the replicas that we have a link with."""
        return [replica for replica in self._by_id.values() if replica.linked]

    def linked_voters(self) -> list[PeerReplica]:
        """Return the voters that we have a link with."""
        return [replica for replica in self.linked() if replica.is_voter]
