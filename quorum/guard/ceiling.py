"""Which terms this node believes: those of voters, and only up to a ceiling.

Rule: a term in a frame of a non-voter (a fresh directory, an observer) means nothing. A voter's
frame whose term is above the ceiling is dropped whole, counted, and logged now and then. The
ceiling is `leap_from` above the term with which the process started.

A node can truly be that far behind, because one voter was misled further than another. So the
ceiling rises while a voter goes on showing a term above it: by `CLIMB_ALONE` in each election
timeout without a leader, and by `CLIMB_LED` in each one with a leader. To take over a higher term
is always safe; the pace only keeps one voter from using up the terms. Example: of nodes 1, 2 and
3, node 3 lies. It raises node 1 by 2^20, node 1 is restarted, and node 3 raises it by 2^20 again.
Now node 2 drops what node 1 sends. No leader comes, so the ceiling of node 2 reaches the term of
node 1 after two election timeouts.
"""

from typing import NamedTuple

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.terms import TERM_MAX, leap_from

CLIMB_ALONE = 2**19
CLIMB_LED = 2**10
_RESERVE = 16
"""The ceiling takes at most one part in so many of the terms that are left."""
_LOGGED_EVERY_S = 10.0
_SHOWN_FOR = 3
"""Election timeouts for which a refused term counts as shown."""
_NEVER = -1e9


class Shown(NamedTuple):
    """A term above the ceiling: who said it, and when (monotonic seconds)."""

    node_id: int
    term: int
    at: float


class Ceiling:
    """The highest term that one node takes from a voter."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.term = context.term + leap_from(context.term)
        self._shown: Shown | None = None
        self._counts_from = _NEVER
        self._logged_at = _NEVER

    def admits(self, replica: PeerReplica, term: int) -> bool:
        """Tell whether a frame with this term is looked at."""
        context = self._context
        if not replica.is_voter or term <= max(self.term, context.term):
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
        """What a voter shows above the ceiling, these days; None when nobody does."""
        shown, context = self._shown, self._context
        if shown is None or shown.term <= max(self.term, context.term):
            return None
        return shown if context.now - shown.at <= _SHOWN_FOR * self._timeout else None

    @property
    def _timeout(self) -> float:
        return self._context.config.election_timeout_s

    def on_tick(self, *, leader_heard: bool) -> None:
        """Rise a step, when a voter has shown a term above the ceiling for a timeout."""
        shown = self.shown
        if shown is None:
            self._counts_from = _NEVER
        elif self._counts_from == _NEVER:
            self._counts_from = shown.at
        elif shown.at - self._counts_from >= self._timeout:
            self._counts_from = shown.at
            left = (TERM_MAX - self.term) // _RESERVE
            step = CLIMB_LED if leader_heard else CLIMB_ALONE
            # A whole step, also past what was shown: the next election is one term higher.
            self.term = min(TERM_MAX, self.term + max(1, min(step, left)))
