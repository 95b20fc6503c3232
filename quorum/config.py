"""The settings of one quorum node, and the bounds of one entry.

Rule: every timeout is derived from one setting, the election timeout E. So nobody has to choose
six numbers that must fit together.
"""

import msgspec

from quorum.wire.formats import NEWEST_FORMAT
from runtime.links.interface import Peer

ENTRY_BYTES_MAX = 1280 * 1024
"""Bound of the payloads in one Raft entry, together: a batch of 1 MiB fits, and the journal writes
an entry in a few milliseconds."""
APPEND_BYTES_MAX = 5 * 1024 * 1024
"""Larger than any entry, also those of 4 MiB that release 0.1 wrote: the core would cut a larger
one into chunks, which we can't judge."""


class QuorumConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one node."""

    cluster_id: str
    node_id: int
    peers: tuple[Peer, ...]
    """Every configured controller, this one included."""
    first_voters: tuple[int, ...] = ()
    """The configured controllers that vote in a new quorum; the others observe. Empty: all vote."""
    newest_format: int = NEWEST_FORMAT
    """The newest wire format of this node; lower only where a test plays an old release."""
    election_timeout_ms: int = 500
    """E: how long a follower waits for the leader before it starts an election."""
    tail_bytes: int = 64 * 1024 * 1024
    """Bytes of the journal that a compaction keeps, for followers that lag."""
    segment_bytes: int = 16 * 1024 * 1024
    """Size at which the journal begins another file."""
    reserve_bytes: int = 64 * 1024 * 1024
    """With less free space on its disk a node neither leads nor takes proposals."""
    window_bytes: int = 16 * 1024 * 1024
    """Bound of the entries sent to one follower and not yet acknowledged."""
    shared_folders: tuple[str, ...] = ("log", "checkpoints", "keys")
    """The folders that peers may list and read."""
    file_timeout_ms: int = 5_000
    """How long a node waits for a peer's answer about a file."""

    @property
    def forming(self) -> set[int]:
        """The node ids of a new quorum's voters."""
        return set(self.first_voters) or {peer.node_id for peer in self.peers}

    @property
    def election_timeout_s(self) -> float:
        """E in seconds."""
        return self.election_timeout_ms / 1000

    @property
    def heartbeat_s(self) -> float:
        """How often a leader without news sends a heartbeat."""
        return self.election_timeout_s / 4

    @property
    def tick_s(self) -> float:
        """How often a node looks at its clock."""
        return self.election_timeout_s / 10
