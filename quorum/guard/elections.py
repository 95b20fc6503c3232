"""Decides when this node stands for election, and whom it votes for.

Rule: the core never stands on its own. A node that hears no leader first asks the others whether
they *would* vote for it (pre-vote; nobody's term changes). Only a majority of yeses lets its core
stand. While a node has heard a leader within E it votes for nobody, unless that leader is
transferring its leadership. Each voter's vote is counted once per term.

A follower stops trusting a silent leader after E to 2E, drawn at random. If the leader's link was
reset and its port then refuses a connection, its process is gone, and the follower reacts within 50
ms.

A candidate counts the votes of its own log's voters only. It asks only these, and whoever is asked
votes, though its own log may not say yet that it is a voter (ADR 0081).
"""

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.raft.core import Core, Role
from quorum.raft.core_node import CoreNode
from quorum.raft.messages import RequestVote, VoteGranted
from quorum.terms import TERM_MAX
from quorum.wire.frame_types import PrevoteFrame, PrevoteRequestFrame, VoteRequestFrame
from quorum.wire.frames import FrameKind
from runtime.links.interface import LinkEnd

_LONG_AGO = -1e9
_DOUBT_S = 0.05
_LAST_RESORT_AFTER = 4
"""How many election timeouts nodes without room wait for a node with room to stand."""
_LAST_RESORT_S = 60.0
"""How long a leader that stood without room keeps its leadership before it looks for another."""


class Elections:
    """This node's part in elections."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._heard_at = _LONG_AGO
        self._due_at = context.now + context.random.uniform(0.1, 0.6) * self._timeout
        self._leader: int | None = None
        self._reset_by: int | None = None
        self._doubted_until = _LONG_AGO
        self._doubted_in: int | None = None
        """The term of our present pre-vote round, if the round began after a crash."""
        self._round = 0
        self._grants: set[int] = set()
        self._votes: tuple[int, set[int]] = (0, set())
        self._for_transfer = False
        self._passed_on_at: float | None = None
        """Since when we would have stood if our disk had room."""
        self._last_resort_at = _LONG_AGO
        self._end_logged = False

    @property
    def _timeout(self) -> float:
        return self._context.config.election_timeout_s

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    # Hearing.

    @property
    def leader(self) -> int | None:
        """The leader of the current term, while we know it and trust it."""
        core = self._context.core
        if core is None:
            return None
        if core.role is Role.LEADER:
            return self._context.config.node_id
        return self._leader if core.leader is not None else None

    def heard(self, replica: PeerReplica) -> None:
        """Note that a leader's append arrived."""
        now = self._context.now
        self._heard_at = now
        self._leader = replica.node_id
        self._reset_by = None
        self._passed_on_at = None
        self._doubted_until = _LONG_AGO
        self._due_at = now + self._draw(1, 2)

    def leader_heard(self) -> bool:
        """Tell whether we lead, or have heard the leader within E."""
        if self._core.role is Role.LEADER:
            return True
        return self._context.now - self._heard_at < self._timeout

    def due_in_s(self) -> float:
        """Return the seconds until we begin a pre-vote if nothing happens; 0 or less: it is due."""
        return self._due_at - self._context.now

    def step_back(self, least: float, most: float) -> None:
        """Don't stand for a time drawn between so many election timeouts."""
        self._due_at = self._context.now + self._draw(least, most)

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        """Stop trusting the leader if its link was reset and its port now refuses."""
        if node_id != self._leader:
            return
        if end is LinkEnd.RESET:
            self._reset_by = node_id
        elif end is LinkEnd.REFUSED and self._reset_by == node_id:
            self._doubt()

    def on_link_up(self, node_id: int) -> None:
        """The peer runs after all, or again."""
        if self._reset_by == node_id:
            self._reset_by = None

    def _doubt(self) -> None:
        context = self._context
        self._reset_by = None
        self._leader = None
        self._heard_at = _LONG_AGO
        self._doubted_until = context.now + self._timeout
        self._retry_soon()
        context.log.info("leader_process_gone", epoch=context.term)

    def _retry_soon(self) -> None:
        delay = self._context.random.uniform(0, _DOUBT_S)
        self._due_at = self._context.now + delay
        self._context.clock.call_later(delay, self._context.wake)

    def _draw(self, least: float, most: float) -> float:
        return self._timeout * self._context.random.uniform(least, most)

    # Pre-vote.

    def on_turn(self) -> None:
        """Begin a pre-vote when the time has come."""
        context = self._context
        if self._core.role is Role.LEADER or not context.may_vote or context.now < self._due_at:
            return
        if not context.may_lead and not self._nobody_else():
            self.step_back(1, 2)
            return
        self._leader = None
        if self._no_term_is_left():
            self.step_back(1, 2)
            return
        if context.voters.majority() == 1:
            self._stand(for_transfer=False)
            return
        if context.now < self._doubted_until:
            self._retry_soon()
            again = self._doubted_in == context.term
            self._doubted_in = context.term
        else:
            self.step_back(0.5, 1)
            again, self._doubted_in = False, None
        if not again:
            # A retry after a crash comes sooner than an answer from far away. It keeps its round,
            # so that answers to the requests before it still count.
            self._round += 1
            self._grants = {context.config.node_id}
        view = context.view
        request = context.outbox.encode(
            FrameKind.PREVOTE_REQUEST, context.term, self._round, view.last, view.last_term
        )
        for replica in context.replicas.linked_voters():
            context.outbox.send_encoded(replica.node_id, request)

    def _no_term_is_left(self) -> bool:
        """Tell whether this is the last term: nobody stands in it (`quorum.terms`)."""
        if self._context.term < TERM_MAX:
            return False
        if not self._end_logged:
            self._end_logged = True
            self._context.log.error("epochs_used_up", epoch=self._context.term)
        return True

    def _nobody_else(self) -> bool:
        """Tell whether the nodes with room have had their time to stand.

        A node without room leaves standing to the others, but not for ever. When no node has room,
        a leader that writes nothing still keeps brokers in service.
        """
        context = self._context
        if context.disk_is_stuck:
            return False
        if self._passed_on_at is None:
            self._passed_on_at = context.now
        if context.now - self._passed_on_at < _LAST_RESORT_AFTER * self._timeout:
            return False
        self._last_resort_at = context.now
        return True

    @property
    def last_resort(self) -> bool:
        """Whether we stood without room, less than a minute ago, because nobody else stood."""
        since = self._context.now - self._last_resort_at
        return since < _LAST_RESORT_S and not self._context.disk_is_stuck

    def on_prevote_request(self, replica: PeerReplica, frame: PrevoteRequestFrame) -> None:
        """Answer whether we would vote for a peer if it stood."""
        context = self._context
        term = frame.term
        if not context.is_counted or not replica.may_lead_us:
            return
        granted = False
        if not self.leader_heard():
            if term > context.term:
                self._core.raise_term(term, replica.node)
            view = context.view
            granted = term == context.term and (frame.last_term, frame.last_index) >= (
                view.last_term,
                view.last,
            )
        context.outbox.send(replica.node_id, FrameKind.PREVOTE, context.term, frame.round, granted)
        if granted:
            # Let that node try first: two that stand at once split the votes.
            self._due_at = max(self._due_at, context.now + self._draw(0.1, 0.2))

    def on_prevote(self, replica: PeerReplica, frame: PrevoteFrame) -> None:
        """Count an answer. With a majority of yeses the core stands."""
        if not frame.granted or frame.round != self._round or not replica.is_voter:
            return
        if not self._context.may_vote or self.leader_heard():
            return
        self._grants.add(replica.node_id)
        if len(self._grants) >= self._context.voters.majority():
            self._stand(for_transfer=False)

    def on_timeout_now(self, replica: PeerReplica) -> None:
        """Stand at once: the leader transfers its leadership to us."""
        context = self._context
        may_stand = context.may_vote and context.may_lead and not self._no_term_is_left()
        if may_stand and replica.node == self._core.leader:
            self._stand(for_transfer=True)

    def _stand(self, *, for_transfer: bool) -> None:
        context = self._context
        self._round += 1
        self._grants = set()
        self._doubted_in = None
        self._for_transfer = for_transfer
        # After a crash two may stand at once. Then they try again soon.
        self.step_back(*((0.2, 0.6) if context.now < self._doubted_until else (1, 2)))
        others = [item for item in context.voters.members.items() if item != self._me()]
        through = CoreNode(*others[0]) if others else None
        self._core.stand(through)
        context.log.info("stood_for_election", epoch=context.term, transfer=for_transfer)

    def on_voters_changed(self) -> None:
        """Drop the present pre-vote round: others have to grant it."""
        self._round += 1
        self._grants = set()

    def _me(self) -> tuple[int, bytes]:
        return self._context.config.node_id, self._context.journal.directory_id

    # Votes.

    def send_request(self, node: CoreNode, last_index: int, last_term: int) -> bool:
        """Send our core's vote request, once our own vote is durable."""
        context = self._context
        if context.replicas.of(node) is None:
            return False
        context.outbox.hold(
            context.journal.position_of_vote,
            node.node_id,
            FrameKind.VOTE_REQUEST,
            context.term,
            last_index,
            last_term,
            self._for_transfer,
        )
        return True

    def send_vote(self, node: CoreNode) -> bool:
        """Send our core's vote, once it is durable."""
        context = self._context
        self.step_back(1, 2)
        context.outbox.hold(
            context.journal.position_of_vote, node.node_id, FrameKind.VOTE, context.term
        )
        return True

    def on_vote_request(self, replica: PeerReplica, frame: VoteRequestFrame) -> None:
        """Pass a candidate's request to the core, if we may vote for it at all."""
        context = self._context
        term = frame.term
        if not context.is_counted or not replica.may_lead_us or term <= context.no_vote_up_to:
            return
        if term < context.term:
            context.outbox.send(replica.node_id, FrameKind.PREVOTE, context.term, 0, False)
            return
        if self.leader_heard() and not frame.for_transfer:
            context.count("vote_while_leader_heard")
            return
        self._core.receive(replica.node, RequestVote(term, frame.last_index, frame.last_term))

    def on_vote(self, replica: PeerReplica) -> None:
        """Pass a vote of the current term to the core, one per voter."""
        context = self._context
        if not replica.is_voter or self._core.role is not Role.CANDIDATE:
            return
        if not self.first_vote_of(replica.node_id):
            context.count("vote_twice")
            return
        self._core.receive(replica.node, VoteGranted(context.term))

    def first_vote_of(self, node_id: int) -> bool:
        """Note a voter's vote in the current term; False when it was noted before."""
        term = self._context.term
        if self._votes[0] != term:
            self._votes = (term, set())
        voted = self._votes[1]
        if node_id in voted:
            return False
        voted.add(node_id)
        return True
