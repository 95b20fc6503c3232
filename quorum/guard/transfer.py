"""Gives up leadership in an orderly way: to the most caught-up voter, to a named one, or to nobody.

Rule: no proposal enters the log during a transfer, so the successor can catch up completely. If it
has not taken over within E, we stop leading anyway, because the caller had a reason. But a caller
who named the successor only wanted it to lead: then we go on. In the last term (`quorum.terms`) we
go on leading, too, since no term is left for a successor.

A leader that gave up a moment ago, and has to again, tells nobody to stand. Its reason may hold for
every voter, such as a cluster key that none of them has. Then each would hand over to the next at
once, in a hundred terms a second.
"""

from typing import Final

from quorum.api import TransferRefusedError
from quorum.guard.context import NodeContext
from quorum.guard.elections import Elections
from quorum.guard.replicas import PeerReplica
from quorum.raft.core import Core, Role
from quorum.terms import TERM_MAX
from quorum.wire.frames import FrameKind

_A_MOMENT_E: Final = 10
"""Election timeouts; see above."""


class Transfer:
    """At most one transfer at a time."""

    def __init__(self, context: NodeContext, elections: Elections) -> None:
        self._context = context
        self._elections = elections
        self._since = -1.0
        self._told_at = -1.0
        self._named: PeerReplica | None = None
        """The successor that the caller named."""
        self.running = False
        self._gave_up_at = -float("inf")
        """When a caller last had a reason that we don't lead."""
        self._again = False
        """The one before was a moment ago."""

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    def refusal_to(self, node_id: int, *, voters_change: bool) -> TransferRefusedError | None:
        """Return why the leadership can't go to a node now; None: it can, or the node leads.

        `voters_change`: whether a change of the voters waits.
        """
        context = self._context
        if node_id == context.config.node_id:
            return None
        named = context.replicas.get(node_id)
        if (named is None or not named.linked) and node_id in context.voters.members:
            return TransferRefusedError(f"node {node_id} is not linked", later=True)
        if named is None or not (named.linked and named.is_voter):
            why = f"node {node_id} is no voter; voters are {sorted(context.voters.members)}"
            return TransferRefusedError(why, later=False)
        if self.running or voters_change:
            why = "the leadership is being handed over, or the voters are being changed, already"
            return TransferRefusedError(why, later=True)
        return None

    def begin(self, reason: str, named: PeerReplica | None = None) -> None:
        """Begin to give up leadership; `named`: to this voter, or not at all."""
        if self._core.role is not Role.LEADER:
            return
        if self.running:
            if named is None:
                # This caller has a reason not to lead.
                self._named = None
            return
        now, timeout = self._context.now, self._context.config.election_timeout_s
        if named is None:
            self._again = now - self._gave_up_at < _A_MOMENT_E * timeout
            self._gave_up_at = now
        self.running = True
        self._named = named
        self._since = now
        self._told_at = -1.0
        self._context.log.info("leadership_given_up", epoch=self._context.term, why=reason)
        self._context.wake()

    def on_turn(self) -> None:
        """Tell the successor to stand once it holds everything; stop leading after E anyway."""
        context = self._context
        if not self.running:
            return
        if self._core.role is not Role.LEADER:
            self.running = False
            return
        named = self._named
        successor = self.successor() if named is None else named
        waited = context.now - self._since > context.config.election_timeout_s
        if named is not None and (waited or not (named.linked and named.is_voter)):
            self.running = False
            context.log.warning("leadership_kept", epoch=context.term, successor=named.node_id)
        elif successor is None or waited or (named is None and self._again):
            self._step_down(alone=context.voters.majority() == 1)
        elif (
            successor.acked == context.view.last
            and context.now - self._told_at >= context.config.heartbeat_s
        ):
            self._told_at = context.now
            context.outbox.send(successor.node_id, FrameKind.TIMEOUT_NOW, context.term)

    def successor(self) -> PeerReplica | None:
        """Return the linked voter that holds the most; None when no voter is linked."""
        voters = [r for r in self._context.replicas.linked_voters() if r.acked]
        return max(voters, key=lambda replica: (replica.acked, -replica.node_id), default=None)

    def _step_down(self, *, alone: bool) -> None:
        self.running = False
        if self._context.term == TERM_MAX:
            return
        self._core.raise_term(self._context.term + 1, self._core.self_node)
        self._elections.step_back(*((0, 0.1) if alone and not self._again else (2, 3)))
