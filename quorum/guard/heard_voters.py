"""Who may lead us, though our log's newest set of voters does not name it.

Rule: the members of every set that may be in force may lead us and ask for our vote. They count for
nothing else: a majority is always one of our own log's newest voters. There are two kinds of sets.

*Sets of our log.* While we don't know that a change is committed, another leader may cut it off.
Then the set before is in force, and a voter that the change removed may lead.

*Told sets.* A node whose log lags does not know the voters that were added since. It still has to
vote for them and to follow them, else it could never catch up. So every node repeats its newest set
once per election timeout, after the first change. A node believes a set that a member of one of its
sets told. It keeps what each peer told last, so a set that was cut off hides no other. It forgets a
set that its log names, and one that is no later than the newest that it knows to be committed.

A node that is in none of its log's sets that may be in force believes any linked peer, as it does
with the formation. Nobody counts what the node holds, and all voters that it knows may be gone.

Example: entry 17 names {1, 2, 3}, entry 25 removes node 3, and node 1 holds both. If node 3 is
elected without entry 25, node 1 follows it. Once node 1 knows that entry 25 is committed, frames of
node 3 that lead or elect mean nothing.

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
    """Who may lead us though it is not in the newest set of our log."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._told: dict[int, VotersAt] = {}
        """What each peer told last, by node id, if we believed it and our log does not name it."""
        self._judged_by: list[int] = []
        """The indexes of our log's sets that might be in force when the peers were judged."""
        self._told_at = -1e9

    def refresh(self) -> None:
        """Forget told sets that are over or that our log names; note who may lead us."""
        self._judged_by = [one.index for one in self._of_our_log()]
        self._told = {node: one for node, one in self._told.items() if self._is_news(one)}
        for replica in self._context.replicas:
            self.judge(replica)

    def judge(self, replica: PeerReplica) -> None:
        """Note whether a peer is in a set that may be in force."""
        node_id, directory_id = replica.identity
        sets = (*self._of_our_log(), *self._told.values())
        replica.may_be_voter = any(one.members.get(node_id) == directory_id for one in sets)

    def _of_our_log(self) -> list[VotersAt]:
        """The sets of our log that may be in force, the newest that is committed first."""
        voters = self._context.voters
        return voters.unsettled(self._commit_index) if voters.known else []

    @property
    def _commit_index(self) -> int:
        core = self._context.core
        return 0 if core is None else core.commit_index

    def _is_news(self, told: VotersAt) -> bool:
        voters = self._context.voters
        settled = voters.at(self._commit_index).index
        return told.index > settled and voters.at(told.index).voters != told.voters

    @property
    def members(self) -> set[int]:
        """The node ids of all sets that we were told; empty: there is none."""
        return {node_id for one in self._told.values() for node_id in one.members}

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voters of all sets that we were told, the latest set first."""
        latest_first = sorted(self._told.values(), key=lambda one: -one.index)
        return tuple(voter for one in latest_first for voter in one.voters)

    @property
    def known(self) -> bool:
        """Whether we were told a set that our log does not name."""
        return bool(self._told)

    def on_voters(self, replica: PeerReplica, frame: VotersFrame) -> None:
        """Take a peer's newest set."""
        context = self._context
        if not context.voters.known or not self._believes(replica):
            return
        try:
            told = VotersAt(frame.index, decode_voters(frame.voters))
        except BadBytesError as error:
            context.count("bad_voters")
            context.log.warning("frame_refused", node=replica.node_id, why=str(error))
            return
        if self._is_news(told) and self._told.get(replica.node_id) != told:
            self._told[replica.node_id] = told
            self.refresh()

    def _believes(self, replica: PeerReplica) -> bool:
        return replica.may_lead_us or not self._may_vote()

    def _may_vote(self) -> bool:
        """Tell whether we are in a set of our log that may be in force."""
        context = self._context
        voters, directory_id = context.voters, context.journal.directory_id
        me = (context.config.node_id, directory_id)
        return voters.we_vote or voters.is_leaving(*me, self._commit_index)

    def on_tick(self) -> None:
        """Judge again once a change is committed. Once per election timeout, tell our newest set.

        It is told to every peer, after the first change.
        """
        context = self._context
        if [one.index for one in self._of_our_log()] != self._judged_by:
            self.refresh()
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
