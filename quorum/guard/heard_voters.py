"""Later voters than our log names, as a voter that we believe told us.

Rule: a node whose log lags does not know the voters that were added since. It still has to vote for
them and to follow them, else it could never catch up. So every node repeats its newest set once per
election timeout, after the first change. A node believes a set that is later than its own if a
voter of its own set told it, or a voter of a set that it believed before. Whoever is in that set
may lead us and ask for our vote. It counts for nothing else: a majority is always one of our own
log's voters.

A node that is no voter, by a set that it knows to be committed, believes any linked peer, as it
does with the formation. Nobody counts what it holds, and all whom it knows may be gone.

So a frame of a node outside of all this means as little as before (`quorum.guard.ceiling`).
"""

from quorum.api import Voter
from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.membership.voter_history import VotersAt
from quorum.membership.voters_entry import decode_voters, encode_voters
from quorum.wire.codec import BadBytesError
from quorum.wire.frame_types import VotersFrame
from quorum.wire.frames import FrameKind


class HeardVoters:
    """The latest set that we heard of and that our log does not name yet."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._latest: VotersAt | None = None
        self._told_at = -1e9

    def refresh(self) -> None:
        """Forget a set that our own log has reached; note who of the peers may lead us."""
        latest = self._latest
        if latest is not None and latest.index <= self._context.voters.newest.index:
            self._latest = latest = None
        for replica in self._context.replicas:
            self.judge(replica)

    def judge(self, replica: PeerReplica) -> None:
        """Note whether a peer is in the latest set that we heard of."""
        latest = self._latest
        node_id, directory_id = replica.identity
        replica.is_heard_of = latest is not None and latest.members.get(node_id) == directory_id

    @property
    def members(self) -> set[int]:
        """The node ids of that set; empty: there is none."""
        return set() if self._latest is None else set(self._latest.members)

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voters of that set."""
        return () if self._latest is None else self._latest.voters

    @property
    def known(self) -> bool:
        """Whether there is such a set."""
        return self._latest is not None

    def on_voters(self, replica: PeerReplica, frame: VotersFrame) -> None:
        """Take a peer's newest set."""
        context = self._context
        known = context.voters.newest.index if self._latest is None else self._latest.index
        if frame.index <= known or not context.voters.known or not self._believes(replica):
            return
        try:
            self._latest = VotersAt(frame.index, decode_voters(frame.voters))
        except BadBytesError as error:
            context.count("bad_voters")
            context.log.warning("frame_refused", node=replica.node_id, why=str(error))
            return
        self.refresh()

    def _believes(self, replica: PeerReplica) -> bool:
        voters, core = self._context.voters, self._context.core
        if replica.may_lead_us:
            return True
        commit = 0 if core is None else core.commit_index
        return not voters.we_vote and voters.newest_is_committed(commit)

    def on_tick(self) -> None:
        """Tell every peer our newest set, once per election timeout, after the first change."""
        context = self._context
        due = self._told_at + context.config.election_timeout_s
        if not context.voters.have_changed or context.now < due:
            return
        self._told_at = context.now
        newest = context.voters.newest
        encoded = encode_voters(newest.voters)
        for replica in context.replicas.linked():
            context.outbox.send(
                replica.node_id, FrameKind.VOTERS, context.term, newest.index, encoded
            )
