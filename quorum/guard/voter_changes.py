"""Puts a set of voters into force, and judges whether a leader may append another one.

Rule: a set is in force from the moment its entry is appended (`quorum.membership.voter_history`).
The journal notes that while the core is running. As soon as the core returns, before anything else
enters it, `take_effect` makes the core and the guard count over the new set.

A leader appends another set only under the rules of `refusal`. ADR 0081 gives the reason of each,
and `model/Voters.tla` shows what goes wrong without it.

The leader sends a removed voter nothing behind its removal until that is committed. Otherwise the
removed voter could be the only one with the newest log, and would refuse its vote to all others.
"""

from collections.abc import Sequence

from quorum.api import Voter, VoterChangeRefusedError
from quorum.guard.context import NodeContext
from quorum.guard.elections import Elections
from quorum.guard.freshness import DeliveryFreshness
from quorum.guard.keeping_up import KeepingUp
from quorum.guard.reads import ReadIndexes
from quorum.guard.replicas import NEVER, PeerReplica
from quorum.guard.replication import Replication
from quorum.guard.transfer import Transfer
from quorum.membership.formation import Pinned
from quorum.membership.voter_addresses import addressed, moved
from quorum.membership.voters_entry import VOTERS_MAX, decode_voters
from quorum.raft.core import Core, Role
from quorum.raft.core_node import CoreNode


class VoterChanges:
    """The changes of the voters at one node."""

    def __init__(
        self,
        context: NodeContext,
        *,
        elections: Elections,
        replication: Replication,
        reads: ReadIndexes,
        freshness: DeliveryFreshness,
        transfer: Transfer,
    ) -> None:
        self._context = context
        self._elections = elections
        self._replication = replication
        self._reads = reads
        self._freshness = freshness
        self._transfer = transfer
        self.keeping_up = KeepingUp(context)
        self._waits_since = NEVER
        """Since when a change that was accepted can't be appended; NEVER: none waits."""

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    # What is in force.

    def take_effect(self) -> None:
        """Count over the voters that are in force now. Called when the core has returned."""
        context, core = self._context, self._core
        voters = context.voters
        voters.changed = False
        leads = core.role is Role.LEADER
        moved = [r for r in context.replicas if r.is_voter != voters.votes(*r.identity)]
        for replica in moved:
            if leads:
                self._replication.link_down(replica)
            replica.is_voter = not replica.is_voter
        nodes = (CoreNode(*item) for item in sorted(voters.members.items()))
        core.set_others(node for node in nodes if node != core.self_node)
        for replica in moved:
            if leads and replica.is_voter:
                self._replication.became_voter(replica)
        context.heard_voters.refresh()
        self._elections.on_voters_changed()
        self._reads.on_voters_changed()
        self._freshness.on_voters_changed()
        if voters.we_vote and context.formation.is_learned:
            context.formation.write()
        context.log.info("voters_changed", voters=sorted(voters.members), index=voters.newest.index)
        context.wake()

    def on_turn(self) -> None:
        """On a leader: send again to removed voters whose removal is committed."""
        context = self._context
        if not context.voters.have_changed:
            return
        for replica in context.replicas.linked():
            waits = not (replica.connected or replica.is_voter or replica.is_held_back)
            if waits and not self._replication.is_leaving(replica):
                self._replication.link_up(replica)

    # What may come.

    def may_begin(self, voters: bytes) -> bool:
        """Tell whether a change whose turn has come may be appended.

        It could be when it was accepted. Since then more may have been committed that the new voter
        lacks. Nothing is proposed meanwhile, so one round trip is enough. If not even an
        election timeout is, this leader gives up: the owner has sealed what follows the change.
        """
        context = self._context
        new = decode_voters(voters)
        if not self.refusal(new):
            self._waits_since = NEVER
            self._hold_off(new)
            return True
        if self._waits_since == NEVER:
            self._waits_since = context.now
        elif context.now - self._waits_since > context.config.election_timeout_s:
            self._waits_since = NEVER
            self._transfer.begin("a change of the voters can't be appended")
        return False

    def _hold_off(self, new: Sequence[Voter]) -> None:
        """Stop sending to whoever is to be removed, before the core sends it its removal."""
        members = {voter.node_id: voter.directory_id for voter in new}
        for replica in self._context.replicas:
            if replica.is_voter and members.get(replica.node_id) != replica.node.directory_id:
                self._replication.link_down(replica)

    def refusal(self, new: Sequence[Voter]) -> str:
        """Say why this leader may not append these voters; empty when it may.

        One rule stands elsewhere: a leader has committed an entry of its own epoch before its owner
        hears that it leads, and before that nothing is proposed (`quorum.guard.delivery`).
        """
        return self._never(new) or self._not_now(new, at_once=True)

    def refusal_to_begin(self, new: Sequence[Voter]) -> VoterChangeRefusedError | None:
        """Say why this leader may not even begin to change the voters to these.

        Whoever keeps up counts as having caught up: what it lacks is waited for before the append.
        """
        if why := self._never(new):
            return VoterChangeRefusedError(why, later=False)
        if why := self._not_now(new, at_once=False):
            return VoterChangeRefusedError(why, later=True)
        return None

    def _never(self, new: Sequence[Voter]) -> str:
        """Say why these voters can't follow those that are in force."""
        now, members = self._context.voters, {v.node_id: v.directory_id for v in new}
        if len(members) < len(new):
            return "a node is named twice among the voters"
        if not 0 < len(members) <= VOTERS_MAX:
            return f"a quorum has 1 to {VOTERS_MAX} voters, not {len(members)}"
        if members == now.members:
            return self._more_than_one_move(new)
        return self._more_than_one(members)

    def _not_now(self, new: Sequence[Voter], *, at_once: bool) -> str:
        members = {v.node_id: v.directory_id for v in new}
        return (
            self._while_another()
            or self._who_lags(members, at_once=at_once)
            or self._too_few(members, at_once=at_once)
        )

    def _holds_all(self, replica: PeerReplica, *, at_once: bool) -> bool:
        """Tell whether a replica holds what is committed, or, if there is time, keeps up."""
        return replica.acked >= self._core.commit_index or (
            not at_once and self.keeping_up.does(replica)
        )

    def _more_than_one(self, members: Pinned) -> str:
        if len(members.items() ^ self._context.voters.members.items()) > 1:
            return (
                "one voter is added or removed at a time; to replace a folder, remove the old "
                "directory first and add the new one then"
            )
        me = self._core.self_node
        if members.get(me.node_id) != me.directory_id:
            return f"node {me.node_id} leads and can't remove itself: transfer the leadership first"
        return ""

    def _more_than_one_move(self, new: Sequence[Voter]) -> str:
        context = self._context
        present = addressed(context.voters.newest, context.config.peers)
        count = len(moved(new, present))
        if not count:
            return "these are the voters already"
        return "" if count == 1 else f"one voter moves at a time, not {count}"

    def _while_another(self) -> str:
        """The change before is committed."""
        newest = self._context.voters.newest.index
        if newest > self._core.commit_index:
            return f"the change of the voters at entry {newest} is not committed yet"
        return ""

    def _who_lags(self, members: Pinned, *, at_once: bool) -> str:
        """The new voter holds everything that is committed."""
        commit = self._core.commit_index
        for node_id, directory_id in members.items() - self._context.voters.members.items():
            replica = self._context.replicas.get(node_id)
            if replica is None or not replica.linked:
                return f"node {node_id} is not linked: start it, and see that it reaches the leader"
            if replica.node.directory_id != directory_id:
                return (
                    f"node {node_id} runs on directory {replica.node.directory_id.hex()}, not on "
                    f"{directory_id.hex()}"
                )
            if not self._holds_all(replica, at_once=at_once):
                return (
                    f"node {node_id} holds entries up to {replica.acked}, and {commit} are "
                    "committed: wait until it has caught up"
                )
        return ""

    def _too_few(self, members: Pinned, *, at_once: bool) -> str:
        """A majority of the new voters holds everything that is committed."""
        me = self._core.self_node.node_id
        holders = {me} | {
            replica.node_id
            for replica in self._context.replicas.linked()
            if members.get(replica.node_id) == replica.node.directory_id
            and self._holds_all(replica, at_once=at_once)
        }
        if len(holders) > len(members) // 2:
            return ""
        absent = sorted(members.keys() - holders)
        return (
            f"of the {len(members)} voters that would be, {absent} don't hold what is committed, "
            "so nothing could be written: bring them back first"
        )
