"""What the core calls: it asks for the journal, the time and dice, sends messages, reports roles.

Rule: the core is running while these methods run. So they call nothing of the core but `connect`
and `disconnect`, and they do not call the listener. The node's turn does that later.
"""

from quorum.guard.context import NodeContext
from quorum.guard.delivery import Delivery
from quorum.guard.elections import Elections
from quorum.guard.following import Following
from quorum.guard.replication import Replication
from quorum.guard.voter_changes import VoterChanges
from quorum.journal import RaftJournal
from quorum.journal.manifest_store import ManifestStore
from quorum.raft.core import Core, Role
from quorum.raft.core_node import CoreNode
from quorum.raft.messages import (
    AppendEntries,
    AppendReply,
    FromCore,
    InstallSnapshot,
    RequestVote,
    VoteGranted,
)
from quorum.raft.proposals import Proposals


class CoreCallbacks:
    """Receives one core's calls; also its `quorum.raft.core_world.CoreWorld`."""

    def __init__(
        self,
        context: NodeContext,
        manifests: ManifestStore,
        *,
        elections: Elections,
        following: Following,
        replication: Replication,
        delivery: Delivery,
        proposals: Proposals,
        voter_changes: VoterChanges,
    ) -> None:
        self._context = context
        self._manifests = manifests
        self._elections = elections
        self._following = following
        self._replication = replication
        self._delivery = delivery
        self._proposals = proposals
        self._voter_changes = voter_changes
        self._clock = context.clock
        self._stall_s = 2 * context.config.tick_s
        self._looked_at = context.now
        self._awake = 1.0

    def begin(self) -> None:
        """Make the core, once the voters are known."""
        context = self._context
        if context.core is not None:
            return
        me = CoreNode(context.config.node_id, context.journal.directory_id)
        voters = [CoreNode(*item) for item in sorted(context.voters.members.items())]
        context.core = Core(
            context.config,
            world=self,
            manifests=self._manifests,
            self_node=me,
            others=[node for node in voters if node != me],
            on_send=self._send,
            on_apply=self._delivery.applied,
            on_role=self._role_changed,
            on_left=self._left,
        )
        # The core loads its dump in its first tick, which must come before any message.
        context.core.tick()
        # The core logs a failed load and goes on. It would then stall for ever.
        assert context.core.last_applied >= self._delivery.delivered_index
        context.wake()

    @property
    def journal(self) -> RaftJournal:
        """The journal that the core writes to."""
        return self._context.journal

    def monotonic(self) -> float:
        """Return the seconds in which this process ran. Never zero, which means "due" to the core.

        A stall of the process counts as two ticks, however long it was. The answers that came
        meanwhile are not read yet, and without this a stalled leader would step down at once.
        """
        now = self._clock.monotonic()
        passed = now - self._looked_at
        self._awake += min(passed, self._stall_s)
        self._looked_at = now
        return self._awake

    def dice(self) -> float:
        """From 0 to below 1."""
        return self._context.random.random()

    def _left(self) -> None:
        """The core has returned. Called at once, before anything else enters it."""
        if self._context.voters.changed and self._context.core is not None:
            self._voter_changes.take_effect()

    def _send(self, node: CoreNode, message: FromCore) -> bool:
        match message:
            case AppendEntries():
                return self._replication.send_append(node, message)
            case InstallSnapshot(manifest=manifest):
                return self._replication.send_manifest(node, manifest)
            case AppendReply():
                return self._following.send_answer(node, message)
            case RequestVote(last_index=last_index, last_term=last_term):
                return self._elections.send_request(node, last_index, last_term)
            case VoteGranted():
                return self._elections.send_vote(node)
        # Nobody forwards commands: a client goes to the leader itself.
        self._context.count("forwarding_refused")
        return False

    def _role_changed(self, old: Role, new: Role) -> None:
        if new is Role.LEADER:
            self._delivery.leading()
            self._replication.begin_epoch()
        elif old is Role.LEADER:
            self._delivery.leading_no_more()
            self._replication.end_epoch()
            self._proposals.clear()
