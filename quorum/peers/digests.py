"""Sends the owner's digest, by which owners compare what they hold, with every heartbeat.

Rule: a newer digest replaces an older one. Leader and followers repeat it with every heartbeat,
because the frame also carries what they need to know how fresh their data is
(`quorum.guard.freshness`). The leader begins, and a follower answers the leader's digest at once:
so the echo in it is new, and both sides are woken once. Followers tell each other what has changed,
once a heartbeat, and now and then all.

An announcement is opaque, too, and so is what is told once, with the next heartbeat. All three
travel in frames of one kind. A peer distinguishes them by their first byte, and ignores a byte that
it does not know. So does release 0.1.
"""

from quorum.guard.context import NodeContext
from quorum.guard.freshness import DeliveryFreshness
from quorum.guard.replicas import PeerReplica
from quorum.raft.core import Role
from quorum.wire.frames import DIGEST_BYTES_MAX, FrameKind

_AGAIN_AFTER = 8
"""After this many heartbeats, followers tell each other again what has not changed."""
_NEVER = -1e9


class Digests:
    """Our digest and our announcement."""

    def __init__(self, context: NodeContext, freshness: DeliveryFreshness) -> None:
        self._context = context
        self._freshness = freshness
        self._digest = b""
        self._announcement = b""
        self._once: dict[int, bytes] = {}
        """What is sent once: the newest of each kind, by its first byte."""
        self._sent_at = _NEVER
        self._beats = 0
        self._told: dict[int, tuple[int, bytes]] = {}
        """The number of a peer's link, and the digest that it was told last."""
        self._told_at: dict[int, float] = {}

    def set(self, digest: bytes) -> None:
        """Replace the digest. Raises ValueError when it is too long."""
        self._digest = _checked(digest)

    def announce(self, data: bytes) -> None:
        """Replace the announcement. Raises ValueError when it is too long."""
        self._announcement = _checked(data)

    def tell(self, data: bytes) -> None:
        """Send these bytes once, with the next heartbeat. Raises ValueError for too many.

        They replace what waits and begins with the same byte.
        """
        self._once[data[0]] = _checked(data)

    def on_tick(self) -> bool:
        """Send both to the peers that wait for them, once per heartbeat; True when that was now."""
        context = self._context
        has_any = self._digest or self._announcement or self._once
        if not has_any or context.now - self._sent_at < context.config.heartbeat_s:
            return False
        self._sent_at = context.now
        self._beats += 1
        for replica in context.replicas.linked():
            if not self._can_wait(replica):
                self._send(replica)
        self._once.clear()
        return True

    def on_digest(self, replica: PeerReplica) -> None:
        """A peer's digest has come: answer our leader's with ours."""
        context = self._context
        since = context.now - self._told_at.get(replica.node_id, _NEVER)
        # Not each one of a peer that sends too many.
        if self._digest and self._follows(replica) and since >= context.config.heartbeat_s / 2:
            self._send(replica)

    def _can_wait(self, replica: PeerReplica) -> bool:
        """Tell whether a peer needs no digest at this heartbeat."""
        context, core = self._context, self._context.core
        is_leader = core is not None and core.role is Role.LEADER
        if self._announcement or self._once or core is None or core.leader is None or is_leader:
            return False
        if self._follows(replica):
            # It gets our digest as the answer to its own, unless it sends none.
            since = context.now - self._told_at.get(replica.node_id, _NEVER)
            return since < 2 * context.config.heartbeat_s
        told = self._told.get(replica.node_id)
        return told == (replica.links, self._digest) and self._beats % _AGAIN_AFTER != 0

    def _follows(self, replica: PeerReplica) -> bool:
        core = self._context.core
        return core is not None and core.role is Role.FOLLOWER and core.leader == replica.node

    def _send(self, replica: PeerReplica) -> None:
        context, node_id = self._context, replica.node_id
        self._told[node_id] = (replica.links, self._digest)
        self._told_at[node_id] = context.now
        for data in (self._digest, self._announcement, *self._once.values()):
            if data:
                fields = self._freshness.fields_for(node_id)
                context.outbox.send(node_id, FrameKind.DIGEST, context.term, data, *fields)


def _checked(data: bytes) -> bytes:
    if len(data) > DIGEST_BYTES_MAX:
        raise ValueError(f"a digest of {len(data)} bytes; at most {DIGEST_BYTES_MAX}")
    return data
