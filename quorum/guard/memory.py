"""What each voter remembers of the others, so that none can forget unnoticed.

Rule: a folder that was put back is sound in itself, and yet it has forgotten what it
acknowledged and whom it voted for. Only others can tell. So every voter tells each peer which
life it is in and how far its journal is durable: the leader before each acknowledgement, all
before a vote, and all once a heartbeat if it has moved. A peer writes that down, and says it back
when a link opens. Who hears of an incarnation, or of a part of one, that its own lineage doesn't
hold takes its journal for damaged: it neither votes nor leads nor counts until it has caught up
with a leader elected without it (`repair`).

A node's voice is held back at a start until every other voter has spoken, or for E: the peer
that remembers must not lose a race against one that doesn't. And a node says nothing of itself
to a peer that has not spoken: what is remembered of it must not be written over unheard. Nor
while it is damaged: it promises nothing then, so the folder of before the damage may be put back.

What this can't see: a folder that is put back while nobody who remembers later times can be
reached within E; whoever was neither leader nor candidate remembers all but the last heartbeat's
time. A majority that is put back at once has lost what it lost.
"""

from quorum.guard.context import BrokenPromiseError, NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.journal import Known
from quorum.raft.core import Role
from quorum.terms import TERM_MAX
from quorum.wire.frames import FrameKind

Told = tuple[bytes, int, bytes, int]
_NOTHING = Known(b"", 0)
_AGAIN_AFTER = 8
"""Heartbeats after which what has not moved is told again."""


class Memory:
    """Ours of the others, and theirs of us."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._told: dict[int, Told] = {}
        self._told_at = -1e9
        self._beats = 0
        self._vote_told = -1
        context.silent_until = context.now + context.config.election_timeout_s

    def on_link_up(self, replica: PeerReplica) -> None:
        """Say at once what we remember of it, before anything else."""
        self._told.pop(replica.node_id, None)
        self._tell(replica)

    def on_tick(self) -> None:
        """Tell what has moved; now and then all of it, for who didn't know us as a voter."""
        context = self._context
        if context.now - self._told_at < context.config.heartbeat_s:
            return
        self._told_at = context.now
        self._beats += 1
        if self._beats % _AGAIN_AFTER == 0:
            self._told.clear()
        for replica in context.replicas.linked():
            self._tell(replica)

    def on_durable(self) -> None:
        """More is durable: say so to whom it is promised, ahead of the promise itself."""
        context = self._context
        core, position = context.core, context.journal.position_of_vote
        if position != self._vote_told and context.outbox.is_durable(position):
            self._vote_told = position
            for replica in context.replicas.linked():
                self._tell(replica)
        elif core is not None and core.leader is not None:
            leader = context.replicas.of(core.leader)
            if leader is not None:
                self._tell(leader)

    def _tell(self, replica: PeerReplica) -> None:
        context = self._context
        known = context.journal.known.get(replica.node.directory_id, _NOTHING)
        told = (*self._ourselves(replica), *known)
        if self._told.get(replica.node_id) != told and context.outbox.send(
            replica.node_id, FrameKind.REMEMBER, context.term, *told
        ):
            self._told[replica.node_id] = told

    def _ourselves(self, replica: PeerReplica) -> Known:
        journal = self._context.journal
        may_tell = (
            self._context.may_vote
            and replica.node_id in self._context.compared
            and self._context.outbox.is_durable(journal.position_of_vote)
        )
        return (
            Known(journal.lineage.incarnation, journal.durable_position) if may_tell else _NOTHING
        )

    def on_remember(self, replica: PeerReplica, told: Told) -> None:
        """A peer says how far it is, and what it remembers of us."""
        context = self._context
        if replica.is_voter or not context.formation.known:
            context.compared.add(replica.node_id)
        if not replica.is_voter:
            return
        theirs, ours = Known(*told[:2]), Known(*told[2:])
        if theirs.incarnation:
            context.journal.remember(replica.node.directory_id, theirs)
        if ours.incarnation and not context.journal.lineage.holds(*ours):
            self._forgotten(replica, ours)
        self._tell(replica)

    def _forgotten(self, replica: PeerReplica, ours: Known) -> None:
        context = self._context
        what = (
            f"node {replica.node_id} remembers this folder at position {ours.position} of a life "
            f"that is not in it: an older copy of the folder was put back, or synced bytes are lost"
        )
        context.journal.lost(*ours, what)
        context.outbox.drop_held()
        core = context.core
        if core is not None and core.role is not Role.FOLLOWER:
            if context.term == TERM_MAX:
                raise BrokenPromiseError(f"{what}; and no epoch is left to step down into")
            # Whoever voted for us, we may have voted in that term ourselves.
            core.raise_term(context.term + 1, core.self_node)
