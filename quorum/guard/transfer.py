"""Giving up leadership in order: to the most caught-up voter, or to nobody.

Rule: while a transfer runs no proposal enters the log, so the successor can hold all of it. If
it hasn't taken over within E, we stop leading all the same, since whoever asked had a reason. In
the last term (`quorum.terms`) we go on, since nobody could follow.
"""

from quorum.guard.elections import Elections
from quorum.guard.inside import Inside
from quorum.guard.replicas import Replica
from quorum.raft.core import Core, Role
from quorum.terms import TERM_MAX
from quorum.wire.frames import Kind


class Transfer:
    """At most one transfer at a time."""

    def __init__(self, inside: Inside, elections: Elections) -> None:
        self._inside = inside
        self._elections = elections
        self._since = -1.0
        self._told_at = -1.0
        self.running = False

    @property
    def _core(self) -> Core:
        assert self._inside.core is not None
        return self._inside.core

    def begin(self, reason: str) -> None:
        """Stop leading."""
        if self._core.role is not Role.LEADER or self.running:
            return
        self.running = True
        self._since = self._inside.now
        self._told_at = -1.0
        self._inside.log.info("leadership_given_up", epoch=self._inside.term, why=reason)
        self._inside.wake()

    def on_turn(self) -> None:
        """Tell the successor when it holds everything; give up when it takes too long."""
        inside = self._inside
        if not self.running:
            return
        if self._core.role is not Role.LEADER:
            self.running = False
            return
        successor = self.successor()
        if successor is None or inside.now - self._since > inside.config.election_timeout_s:
            self._step_down(alone=inside.formation.majority() == 1)
        elif (
            successor.acked == inside.view.last
            and inside.now - self._told_at >= inside.config.heartbeat_s
        ):
            self._told_at = inside.now
            inside.outbox.send(successor.node_id, Kind.TIMEOUT_NOW, inside.term)

    def successor(self) -> Replica | None:
        """Return the linked voter that holds most; None when nobody is there."""
        voters = [r for r in self._inside.replicas.linked_voters() if r.acked]
        return max(voters, key=lambda replica: (replica.acked, -replica.node_id), default=None)

    def _step_down(self, *, alone: bool) -> None:
        self.running = False
        if self._inside.term == TERM_MAX:
            return
        self._core.raise_term(self._inside.term + 1, self._core.self_node)
        self._elections.step_back(*((0, 0.1) if alone else (2, 3)))
