"""Who may stand and who gets our voice: pre-vote, votes counted once, a heard leader protected.

Rule: the core can't stand on its own. A node that hears no leader first asks whether it *would*
win (pre-vote: nobody's term moves), and only a majority's yes lets its core stand. While a
leader was heard within E nobody is voted for, save when that leader itself transfers.

A silent leader is doubted after E to 2E, drawn. A leader whose link was reset and whose port
then refuses is dead, not slow: it is doubted within 50 ms.

Nobody stands in the last term: there is none behind it (`quorum.terms`).

A node whose disk has no room leaves standing to the others, but not for ever: when nobody has
room, one that leads without writing keeps brokers in service, and none would end it.
"""

from quorum.guard.inside import Inside
from quorum.guard.replicas import Replica
from quorum.raft.core import Core, Role
from quorum.raft.core_node import CoreNode
from quorum.raft.messages import RequestVote, VoteGranted
from quorum.terms import TERM_MAX
from quorum.wire.frames import Frame, Kind
from runtime.links import LinkEnd

_LONG_AGO = -1e9
_DOUBT_S = 0.05
_LAST_RESORT_AFTER = 4
"""Election timeouts for which nodes without room wait for one with room to stand."""
_LAST_RESORT_S = 60.0
"""For so long a leader that was the last resort does not look for another."""


class Elections:
    """One node's part in electing."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._heard_at = _LONG_AGO
        self._due_at = inside.now + inside.random.uniform(0.1, 0.6) * self._timeout
        self._leader: int | None = None
        self._reset_by: int | None = None
        self._doubted_until = _LONG_AGO
        self._round = 0
        self._grants: set[int] = set()
        self._votes: tuple[int, set[int]] = (0, set())
        self._for_transfer = False
        self._passed_on_at: float | None = None
        """Since when we would have stood, had our disk room."""
        self._last_resort_at = _LONG_AGO
        self._end_logged = False

    @property
    def _timeout(self) -> float:
        return self._inside.config.election_timeout_s

    @property
    def _core(self) -> Core:
        assert self._inside.core is not None
        return self._inside.core

    # Hearing.

    @property
    def leader(self) -> int | None:
        """Who leads the current term, as far as we know and don't doubt."""
        core = self._inside.core
        if core is None:
            return None
        if core.role is Role.LEADER:
            return self._inside.config.node_id
        return self._leader if core.leader is not None else None

    def heard(self, replica: Replica) -> None:
        """A leader's append arrived."""
        now = self._inside.now
        self._heard_at = now
        self._leader = replica.node_id
        self._reset_by = None
        self._passed_on_at = None
        self._doubted_until = _LONG_AGO
        self._due_at = now + self._draw(1, 2)

    def leader_heard(self) -> bool:
        """Tell whether a leader, ourselves included, is too alive to be replaced."""
        if self._core.role is Role.LEADER:
            return True
        return self._inside.now - self._heard_at < self._timeout

    def step_back(self, least: float, most: float) -> None:
        """Don't stand for so many election timeouts."""
        self._due_at = self._inside.now + self._draw(least, most)

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        """Doubt the leader when its process is known to be gone."""
        if node_id != self._leader:
            return
        if end is LinkEnd.RESET:
            self._reset_by = node_id
        elif end is LinkEnd.REFUSED and self._reset_by == node_id:
            self._doubt()

    def on_link_up(self, node_id: int) -> None:
        """It lives after all, or again."""
        if self._reset_by == node_id:
            self._reset_by = None

    def _doubt(self) -> None:
        inside = self._inside
        self._reset_by = None
        self._leader = None
        self._heard_at = _LONG_AGO
        self._doubted_until = inside.now + self._timeout
        self._retry_soon()
        inside.log.info("leader_process_gone", epoch=inside.term)

    def _retry_soon(self) -> None:
        delay = self._inside.random.uniform(0, _DOUBT_S)
        self._due_at = self._inside.now + delay
        self._inside.clock.call_later(delay, self._inside.wake)

    def _draw(self, least: float, most: float) -> float:
        return self._timeout * self._inside.random.uniform(least, most)

    # Pre-vote.

    def on_turn(self) -> None:
        """Begin a pre-vote when the time has come."""
        inside = self._inside
        if self._core.role is Role.LEADER or not inside.may_vote or inside.now < self._due_at:
            return
        if not inside.may_lead and not self._nobody_else():
            self.step_back(1, 2)
            return
        self._leader = None
        if self._no_term_is_left():
            self.step_back(1, 2)
            return
        if inside.formation.majority() == 1:
            self._stand(for_transfer=False)
            return
        self._round += 1
        self._grants = {inside.config.node_id}
        if inside.now < self._doubted_until:
            self._retry_soon()
        else:
            self.step_back(0.5, 1)
        view = inside.view
        request = inside.outbox.encode(
            Kind.PREVOTE_REQUEST, inside.term, self._round, view.last, view.last_term
        )
        for replica in inside.replicas.linked_voters():
            inside.outbox.send_encoded(replica.node_id, request)

    def _no_term_is_left(self) -> bool:
        if self._inside.term < TERM_MAX:
            return False
        if not self._end_logged:
            self._end_logged = True
            self._inside.log.error("epochs_used_up", epoch=self._inside.term)
        return True

    def _nobody_else(self) -> bool:
        """Tell whether those with room have had their time to stand."""
        inside = self._inside
        if inside.disk_is_stuck:
            return False
        if self._passed_on_at is None:
            self._passed_on_at = inside.now
        if inside.now - self._passed_on_at < _LAST_RESORT_AFTER * self._timeout:
            return False
        self._last_resort_at = inside.now
        return True

    @property
    def last_resort(self) -> bool:
        """Whether we stood without room, not long ago, since nobody else did."""
        since = self._inside.now - self._last_resort_at
        return since < _LAST_RESORT_S and not self._inside.disk_is_stuck

    def on_prevote_request(self, replica: Replica, frame: Frame) -> None:
        """Say whether we would vote for a peer, if it stood."""
        inside = self._inside
        _, term, _, number, last_index, last_term = frame
        if not inside.may_vote or not replica.is_voter:
            return
        granted = False
        if not self.leader_heard():
            if term > inside.term:
                self._core.raise_term(term, replica.node)
            view = inside.view
            granted = term == inside.term and (last_term, last_index) >= (
                view.last_term,
                view.last,
            )
        inside.outbox.send(replica.node_id, Kind.PREVOTE, inside.term, number, granted)
        if granted:
            # Let it try first: two that stand at once split the votes.
            self._due_at = max(self._due_at, inside.now + self._draw(0.1, 0.2))

    def on_prevote(self, replica: Replica, frame: Frame) -> None:
        """Count an answer; a majority lets the core stand."""
        _, _, _, number, granted = frame
        if not granted or number != self._round or not replica.is_voter:
            return
        if not self._inside.may_vote or self.leader_heard():
            return
        self._grants.add(replica.node_id)
        if len(self._grants) >= self._inside.formation.majority():
            self._stand(for_transfer=False)

    def on_timeout_now(self, replica: Replica) -> None:
        """The leader transfers to us."""
        inside = self._inside
        may_stand = inside.may_vote and inside.may_lead and not self._no_term_is_left()
        if may_stand and replica.node == self._core.leader:
            self._stand(for_transfer=True)

    def _stand(self, *, for_transfer: bool) -> None:
        inside = self._inside
        self._round += 1
        self._grants = set()
        self._for_transfer = for_transfer
        # After a crash two may have stood at once: they needn't wait long to try again.
        self.step_back(*((0.2, 0.6) if inside.now < self._doubted_until else (1, 2)))
        others = [item for item in inside.formation.pinned.items() if item != self._me()]
        through = CoreNode(*others[0]) if others else None
        self._core.stand(through)
        inside.log.info("stood_for_election", epoch=inside.term, transfer=for_transfer)

    def _me(self) -> tuple[int, bytes]:
        return self._inside.config.node_id, self._inside.journal.directory_id

    # Votes.

    def send_request(self, node: CoreNode, last_index: int, last_term: int) -> bool:
        """Send our core's vote request, once our own vote is durable."""
        inside = self._inside
        if inside.replicas.of(node) is None:
            return False
        inside.outbox.hold(
            inside.journal.position_of_vote,
            node.node_id,
            Kind.VOTE_REQUEST,
            inside.term,
            last_index,
            last_term,
            self._for_transfer,
        )
        return True

    def send_vote(self, node: CoreNode) -> bool:
        """Send our core's vote, once it is durable."""
        inside = self._inside
        self.step_back(1, 2)
        inside.outbox.hold(inside.journal.position_of_vote, node.node_id, Kind.VOTE, inside.term)
        return True

    def on_vote_request(self, replica: Replica, frame: Frame) -> None:
        """Let the core judge a candidate, if it may stand at all."""
        inside = self._inside
        _, term, _, last_index, last_term, for_transfer = frame
        if not inside.may_vote or not replica.is_voter or term <= inside.no_vote_up_to:
            return
        if term < inside.term:
            inside.outbox.send(replica.node_id, Kind.PREVOTE, inside.term, 0, False)
            return
        if self.leader_heard() and not for_transfer:
            inside.count("vote_while_leader_heard")
            return
        self._core.receive(replica.node, RequestVote(term, last_index, last_term))

    def on_vote(self, replica: Replica) -> None:
        """Give the core a vote of the current term: one a voter."""
        inside = self._inside
        if not replica.is_voter or self._core.role is not Role.CANDIDATE:
            return
        if not self.first_vote_of(replica.node_id):
            inside.count("vote_twice")
            return
        self._core.receive(replica.node, VoteGranted(inside.term))

    def first_vote_of(self, node_id: int) -> bool:
        """Note a vote in the current term; False when it was noted before."""
        term = self._inside.term
        if self._votes[0] != term:
            self._votes = (term, set())
        voted = self._votes[1]
        if node_id in voted:
            return False
        voted.add(node_id)
        return True
