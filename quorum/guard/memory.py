"""What voters remember of each other, so that a folder put back from a copy is recognised.

An older copy of a folder is sound in itself, yet it lacks entries that its node acknowledged and
votes that it gave. Only the other nodes can know that.

Rule: every voter tells its peers its incarnation and how far its journal is durable. It tells the
leader with each acknowledgement, and all peers before a vote and, after a change, once per
heartbeat. A peer writes that down, and repeats it when a link opens.

Each frame names the folder that it is about. A wiped folder gets another id, so a frame from before
means nothing to the new one. On a link of format 1 only a frame that tells nothing of its sender
has room for that. So the first frame on a link tells only what we remember of the peer. A frame
that names no folder is believed: earlier releases send no others.

An acknowledgement carries it where the link's format allows that. On a link of format 1, a frame of
its own goes ahead of the acknowledgement.

A node that hears of an incarnation, or of a position in one, that its own lineage does not hold
treats its journal as damaged. It does not vote, lead or count until it has caught up with a leader
elected without it (`repair`).

Not recognised: a folder that is put back while, for E, it can reach no peer that remembers a later
position. Peers that got neither acknowledgements nor votes know all but the last heartbeat's time.
If a majority is put back at once, what it lost is lost.
"""

from typing import Any

from quorum.guard.context import BrokenPromiseError, NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.journal import Known
from quorum.raft.core import Role
from quorum.terms import TERM_MAX
from quorum.wire.formats import TOLERANT_FORMAT
from quorum.wire.frame_types import AckFrame, RememberFrame
from quorum.wire.frames import FrameKind

Told = tuple[bytes, int, bytes, int]
_NOTHING = Known(b"", 0)
_ALL_BUT_ITS_POSITION = slice(3)
"""Of what is told: all but how far we remember the peer. A peer needs that when a link opens."""
_INCARNATIONS = slice(None, None, 2)
_AGAIN_AFTER = 8
"""After this many heartbeats, what has not changed is told again."""


class Memory:
    """What we remember of the other voters, and what they remember of us."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._told: dict[int, Told] = {}
        self._told_at = -1e9
        self._beats = 0
        self._vote_told = -1
        context.silent_until = context.now + context.config.election_timeout_s

    def on_link_up(self, replica: PeerReplica) -> None:
        """Tell the peer what we remember of it, before anything else."""
        self._told.pop(replica.node_id, None)
        self._send(replica, (*_NOTHING, *self._known(replica)))

    def on_tick(self) -> None:
        """Tell peers what has changed; now and then everything, for peers that missed it."""
        context = self._context
        if context.now - self._told_at < context.config.heartbeat_s:
            return
        self._told_at = context.now
        self._beats += 1
        if self._beats % _AGAIN_AFTER == 0:
            self._told.clear()
        for replica in context.replicas.linked():
            self._tell(replica)

    def with_acknowledgement(self, replica: PeerReplica, position: int) -> tuple[Any, ...]:
        """Return the last fields of an acknowledgement that rests on a position of our journal.

        None on a link of format 1, and when we tell nothing of ourselves.
        """
        if replica.wire_format < TOLERANT_FORMAT or not self._may_tell(replica):
            return ()
        return (self._context.journal.history.lineage.incarnation, position)

    def on_acknowledgement(self, replica: PeerReplica, frame: AckFrame) -> None:
        """Remember what a voter's acknowledgement tells of its folder."""
        if frame.incarnation and replica.is_voter:
            history, directory_id = self._context.journal.history, replica.node.directory_id
            known = history.known.get(directory_id, _NOTHING)
            # What it rests on may lie before what the voter told already.
            if frame.incarnation != known.incarnation or frame.position > known.position:
                history.remember(directory_id, Known(frame.incarnation, frame.position))

    def on_durable(self) -> None:
        """Tell the peers that more is durable, before the frames that promise it leave.

        Where acknowledgements carry it, the leader hears of it by them.
        """
        context = self._context
        core, position = context.core, context.journal.position_of_vote
        if position != self._vote_told and context.outbox.is_durable(position):
            self._vote_told = position
            for replica in context.replicas.linked():
                self._tell(replica)
        elif core is not None and core.leader is not None:
            leader = context.replicas.of(core.leader)
            if leader is not None and leader.wire_format < TOLERANT_FORMAT:
                self._tell(leader)

    def _tell(self, replica: PeerReplica, *, if_differs: slice = _ALL_BUT_ITS_POSITION) -> None:
        """Tell a peer what we would tell it now, if that differs from what we told it last."""
        told = (*self._ourselves(replica), *self._known(replica))
        before = self._told.get(replica.node_id)
        if before is None or told[if_differs] != before[if_differs]:
            self._send(replica, told)

    def _send(self, replica: PeerReplica, told: Told) -> None:
        """Send it, and name the folder that it is about where there is room for that."""
        context, directory_id = self._context, replica.node.directory_id
        fields: tuple[Any, ...] = told
        if replica.wire_format >= TOLERANT_FORMAT:
            fields = (*told, directory_id)
        elif not told[0]:
            fields = (b"", folder_number(directory_id), *told[2:])
        if context.outbox.send(replica.node_id, FrameKind.REMEMBER, context.term, *fields):
            self._told[replica.node_id] = told

    def _known(self, replica: PeerReplica) -> Known:
        """Return what we remember of a peer."""
        known = self._context.journal.history.known
        return known.get(replica.node.directory_id, _NOTHING)

    def _ourselves(self, replica: PeerReplica) -> Known:
        """Return what we tell a peer of ourselves, which may be nothing.

        A peer that has not spoken yet would overwrite what it remembers of us before we hear it. A
        damaged node promises nothing, so the folder from before the damage may still be put back.
        """
        journal = self._context.journal
        if not (
            self._may_tell(replica) and self._context.outbox.is_durable(journal.position_of_vote)
        ):
            return _NOTHING
        return Known(journal.history.lineage.incarnation, journal.durable_position)

    def _may_tell(self, replica: PeerReplica) -> bool:
        return self._promises() and replica.node_id in self._context.compared

    def _promises(self) -> bool:
        """Tell whether we may promise anything: as a voter, or as one that may have been added."""
        context = self._context
        if context.may_vote:
            return True
        may_be_added = context.voters.have_changed or context.heard_voters.known
        return may_be_added and context.is_counted

    def on_remember(self, replica: PeerReplica, frame: RememberFrame) -> None:
        """Take what a peer tells of itself, and what it remembers of us."""
        context = self._context
        if _names_another(frame, context.journal.directory_id):
            context.count("memory_of_another_folder")
            return
        if replica.is_voter or not context.voters.known:
            context.compared.add(replica.node_id)
        if not replica.is_voter:
            return
        theirs = Known(frame.incarnation, frame.position)
        ours = Known(frame.your_incarnation, frame.your_position)
        if theirs.incarnation:
            context.journal.history.remember(replica.node.directory_id, theirs)
        if ours.incarnation and not context.journal.history.lineage.holds(*ours):
            self._forgotten(replica, ours)
        self._tell(replica, if_differs=_INCARNATIONS)

    def _forgotten(self, replica: PeerReplica, ours: Known) -> None:
        context = self._context
        what = (
            f"node {replica.node_id} remembers this folder at position {ours.position}, which it "
            "no longer holds: an older copy of the folder was put back, or synced bytes are lost"
        )
        context.journal.history.lost(*ours, what)
        context.outbox.drop_held()
        core = context.core
        if core is not None and core.role is not Role.FOLLOWER:
            if context.term == TERM_MAX:
                raise BrokenPromiseError(f"{what}; and no epoch is left to step down into")
            # We may have forgotten a vote for another node in this very term, so we can't lead it.
            core.raise_term(context.term + 1, core.self_node)


def folder_number(directory_id: bytes) -> int:
    """Return the number that stands for a folder where a frame has no room for its id."""
    return int.from_bytes(directory_id[:7], "big")


def _names_another(frame: RememberFrame, directory_id: bytes) -> bool:
    """Tell whether a frame names a folder, and not this one."""
    if frame.your_directory_id:
        return frame.your_directory_id != directory_id
    if frame.incarnation or not frame.position:
        return False
    return frame.position != folder_number(directory_id)
