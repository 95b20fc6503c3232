"""What a quorum node must be told.

Rule: times hang on one number, the election timeout E; nobody tunes six that must agree.
"""

import msgspec

from quorum.wire.formats import NEWEST_FORMAT
from runtime.links import Peer

ENTRY_BYTES_MAX = 4 * 1024 * 1024
"""Payloads in one Raft entry, together."""
APPEND_BYTES_MAX = 5 * 1024 * 1024
"""Above the largest entry, so that the core never cuts one into chunks that we can't judge."""


class QuorumConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one node."""

    cluster_id: str
    node_id: int
    peers: tuple[Peer, ...]
    """Every configured controller, this one included."""
    newest_format: int = NEWEST_FORMAT
    """The newest wire format that is spoken; lower only where a test plays an old release."""
    election_timeout_ms: int = 500
    """E: silence after which a leader is doubted."""
    tail_bytes: int = 64 * 1024 * 1024
    """Kept in the journal behind a compaction, for followers that lag."""
    segment_bytes: int = 16 * 1024 * 1024
    """Size at which the journal begins another file."""
    reserve_bytes: int = 64 * 1024 * 1024
    """With less room than this on the disk a node neither leads nor takes proposals."""
    window_bytes: int = 16 * 1024 * 1024
    """Entries on their way to one follower, not yet acknowledged."""
    shared_folders: tuple[str, ...] = ("log", "checkpoints")
    """What peers may list and read."""
    file_timeout_ms: int = 5_000
    """An answer about a file is not waited for any longer."""

    @property
    def election_timeout_s(self) -> float:
        """E in seconds."""
        return self.election_timeout_ms / 1000

    @property
    def heartbeat_s(self) -> float:
        """How often a leader that has nothing to say is heard."""
        return self.election_timeout_s / 4

    @property
    def tick_s(self) -> float:
        """How often a node looks at its clock."""
        return self.election_timeout_s / 10
