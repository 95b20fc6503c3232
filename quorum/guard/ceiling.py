"""Limits which terms a node accepts: only those of voters, and only up to a ceiling.

Rule: the term in a non-voter's frame (a fresh directory, an observer) means nothing. A voter's
frame with a term above the ceiling is dropped whole, counted, and logged now and then. The ceiling
begins `leap_from` above the term with which the process started.

A node can be that far behind without any forgery, because forged frames may have raised one voter
further than another. So the ceiling rises while a voter keeps showing a term above it: by
`CLIMB_ALONE` per election timeout without a leader, by `CLIMB_LED` per timeout with one. Accepting
a higher term is always safe. The limit on the pace only keeps one voter from using up the terms.

Example: node 3 of three forges. It raises node 1 by 2^20; node 1 restarts; node 3 raises it by 2^20
again. Node 2 now drops node 1's frames, so no leader is elected. After two election timeouts the
ceiling of node 2 reaches node 1's term.
"""

from typing import NamedTuple

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.terms import TERM_MAX, leap_from

CLIMB_ALONE = 2**19
CLIMB_LED = 2**10
_RESERVE = 16
"""One step of the ceiling uses at most this part (1/16) of the terms that are left."""
_LOGGED_EVERY_S = 10.0
_SHOWN_FOR = 3
"""A refused term counts as shown for this many election timeouts."""
_NEVER = -1e9


class Shown(NamedTuple):
    """A term above the ceiling: which node showed it, and when (monotonic seconds)."""

    node_id: int
    term: int
    at: float


class Ceiling:
    """The highest term that this node accepts from a voter."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.term = context.term + leap_from(context.term)
        self._shown: Shown | None = None
        self._counts_from = _NEVER
        self._logged_at = _NEVER

    def admits(self, replica: PeerReplica, term: int) -> bool:
        """Tell whether to read a frame with this term."""
        context = self._context
        if not replica.may_lead_us or term <= max(self.term, context.term):
            return True
        context.count("epoch_too_far_ahead")
        self._shown = Shown(replica.node_id, term, context.now)
        if context.now - self._logged_at >= _LOGGED_EVERY_S:
            self._logged_at = context.now
            context.log.warning(
                "epoch_too_far_ahead",
                node=replica.node_id,
                epoch=term,
                ours=context.term,
                taken_up_to=self.term,
            )
        return False

    @property
    def shown(self) -> Shown | None:
        """The term above the ceiling that a voter showed recently; None when no voter did."""
        shown, context = self._shown, self._context
        if shown is None or shown.term <= max(self.term, context.term):
            return None
        return shown if context.now - shown.at <= _SHOWN_FOR * self._timeout else None

    @property
    def _timeout(self) -> float:
        return self._context.config.election_timeout_s

    def on_tick(self, *, leader_heard: bool) -> None:
        """Raise the ceiling a step if a voter has shown a term above it for a whole timeout."""
        shown = self.shown
        if shown is None:
            self._counts_from = _NEVER
        elif self._counts_from == _NEVER:
            self._counts_from = shown.at
        elif shown.at - self._counts_from >= self._timeout:
            self._counts_from = shown.at
            left = (TERM_MAX - self.term) // _RESERVE
            step = CLIMB_LED if leader_heard else CLIMB_ALONE
            # A whole step, even past the shown term: the next election is one term higher.
            self.term = min(TERM_MAX, self.term + max(1, min(step, left)))
