"""The follower's side: judges appends before the core sees them, and answers them when durable.

Rule: the core gets only entries that it does not have. In all other cases it gets a heartbeat,
which touches no log, with a commit index that covers no more than what was matched. The answer
names exactly what was matched. It leaves when that, and the term, are durable.

A node with a damaged journal marks its answers as not counted. It may have lost entries that it
acknowledged, so until it is repaired it only catches up (`quorum.guard.repair`).
"""

from quorum.guard.appends import Append, Conflict, Matched, judge
from quorum.guard.catch_up import FollowerCatchUp
from quorum.guard.context import BrokenPromiseError, NodeContext
from quorum.guard.elections import Elections
from quorum.guard.memory import Memory
from quorum.guard.repair import Repair
from quorum.guard.replicas import PeerReplica
from quorum.membership.voters_entry import voters_of
from quorum.raft.core import Core, Role
from quorum.raft.core_node import CoreNode
from quorum.raft.messages import AppendEntries, AppendReply, Heartbeat
from quorum.wire.codec import BadBytesError
from quorum.wire.frame_types import AppendFrame, SnapshotFrame
from quorum.wire.frames import FrameKind

NO_MATCH = -1


class Following:
    """Handles a leader's frames."""

    def __init__(
        self,
        context: NodeContext,
        elections: Elections,
        catch_up: FollowerCatchUp,
        repair: Repair,
        memory: Memory,
    ) -> None:
        self._context = context
        self._elections = elections
        self._catch_up = catch_up
        self._repair = repair
        self._memory = memory

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    def on_append(self, replica: PeerReplica, frame: AppendFrame) -> None:
        """Take an append or a heartbeat."""
        _, term, _, commit, previous, previous_term, entries = frame
        if not self._from_the_leader(replica, term):
            return
        context, core = self._context, self._core
        judgement = judge(context.view, core.commit_index, previous, previous_term, entries)
        if self._catch_up.is_committing:
            self.heartbeat(replica, term, core.commit_index)
            self._catch_up.finish()
            self._answer(replica.node_id)
        elif isinstance(judgement, Append):
            self._give(replica, term, commit, judgement)
            self._repair.on_matched(term, judgement.entries[-1][1])
        elif isinstance(judgement, Matched):
            self.heartbeat(replica, term, min(commit, judgement.match))
            if not entries:
                self._show_incarnation(replica.node_id, judgement.match)
            self._answer(replica.node_id, match=judgement.match)
            self._repair.on_matched(term, judgement.match)
        elif isinstance(judgement, Conflict):
            raise BrokenPromiseError(
                f"node {replica.node_id}, leader of epoch {term}, contradicts entry "
                f"{judgement.at}, which is committed here: one of the two has lost data; keep "
                "both folders and compare their logs"
            )
        else:
            self.heartbeat(replica, term, core.commit_index)
            waits = judgement.is_gap and self._catch_up.waits_for(replica.node_id, term)
            self._answer(replica.node_id, next_index=0 if waits else judgement.next_index)
        self._catch_up.on_progress()

    def on_snapshot(self, replica: PeerReplica, frame: SnapshotFrame) -> None:
        """Take a manifest: the leader no longer has the entries that we lack."""
        term = frame.term
        if not self._from_the_leader(replica, term):
            return
        self.heartbeat(replica, term, self._core.commit_index)
        matched = self._catch_up.offered(replica, term, frame.manifest)
        self._answer(replica.node_id, match=NO_MATCH if matched is None else matched)

    def heartbeat(self, replica: PeerReplica, term: int, commit: int) -> None:
        """Tell the core that a leader is alive, without touching its log."""
        self._core.receive(replica.node, Heartbeat(term, commit))

    def send_answer(self, node: CoreNode, reply: AppendReply) -> bool:
        """Send the core's own answer to an append. Called from inside the core."""
        if reply.success:
            self._answer(node.node_id, match=reply.next_index - 1)
        else:
            self._answer(node.node_id, next_index=reply.next_index if reply.reset else 0)
        return True

    def _from_the_leader(self, replica: PeerReplica, term: int) -> bool:
        context, core = self._context, self._core
        if term < core.term:
            # The answer's term tells the old leader that it was replaced.
            self._answer(replica.node_id)
            return False
        same_term = term == core.term
        other = core.leader is not None and core.leader != replica.node
        if same_term and (core.role is Role.LEADER or other):
            context.count("second_leader")
            context.log.error("two_leaders_in_one_epoch", epoch=term, other=replica.node_id)
            return False
        self._elections.heard(replica)
        return True

    def _give(self, replica: PeerReplica, term: int, commit: int, news: Append) -> None:
        for command, index, _ in news.entries:
            try:
                voters_of(command)
            except BadBytesError as error:
                raise BrokenPromiseError(
                    f"node {replica.node_id}, leader of epoch {term}, sent entry {index} with "
                    f"voters that can't be read: {error}"
                ) from error
        self._core.receive(
            replica.node,
            AppendEntries(term, commit, news.previous, news.previous_term, news.entries),
        )

    def _answer(self, node_id: int, *, match: int = NO_MATCH, next_index: int = 0) -> None:
        """Answer once the term and the entries up to `match` are durable."""
        context = self._context
        position = self.position_promised(match)
        replica = context.replicas.get(node_id)
        told = () if replica is None else self._memory.with_acknowledgement(replica, position)
        context.outbox.hold(
            position,
            node_id,
            FrameKind.ACK,
            context.term,
            match,
            next_index,
            context.is_counted,
            *told,
        )

    def _show_incarnation(self, node_id: int, match: int) -> None:
        """Answer a heartbeat at once if its real answer has to wait for a slow disk.

        This answer matches nothing, so it only promises that we follow in this term.
        """
        context = self._context
        if context.outbox.is_durable(self.position_promised(match)):
            return
        if context.outbox.is_durable(context.journal.position_of_vote):
            context.outbox.send(
                node_id, FrameKind.ACK, context.term, NO_MATCH, 0, context.is_counted
            )

    def position_promised(self, match: int) -> int:
        """Return the journal position that must be durable before an answer may leave."""
        journal = self._context.journal
        return max(journal.position_of_vote, journal.position_of_entry(match))
