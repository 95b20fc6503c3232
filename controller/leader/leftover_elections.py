"""Elections that an unfencing has left undone.

Rule: an unfencing of many partitions takes several rounds, and the first one unfences the broker.
When a later round does not happen (the leader goes, or its journal has no room), nothing else
makes anybody elect again. So a new leader does once, and whoever was refused tries again after a
second while it leads.
"""

from collections.abc import Callable

from controller.leader.decisions import Decision, Outcome
from controller.leader.proposer import Proposer
from controller.managers.brokers import BrokerManager
from controller.managers.sweep import in_rounds
from ledger.batch import Provenance
from metadata.errors import LogbergError
from runtime.clock import Clock, Timer

_REFUSED_S = 1.0
"""Until it is tried again when the journal has no room."""


class LeftoverElections:
    """Elects what can have a leader and has none."""

    def __init__(
        self,
        clock: Clock,
        brokers: BrokerManager,
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
    ) -> None:
        """`provenance` makes that of an operation of our own."""
        self._clock = clock
        self._brokers = brokers
        self._proposer = proposer
        self._provenance = provenance
        self._timer: Timer | None = None

    def begin(self) -> None:
        """We lead, and what was committed is known: elect what our predecessor left."""
        pending = self._proposer.pending
        if pending is None or not len(pending.image.topics.leaderless):
            return
        self._proposer.submit(
            Decision(
                in_rounds(self._brokers.elect_where_possible),
                self._provenance("ElectLeaders"),
                self.report,
                first=True,
            )
        )

    def end(self) -> None:
        """We lead no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def report(self, outcome: Outcome) -> None:
        """Hear what became of a decision that elects."""
        if isinstance(outcome, LogbergError) and self._timer is None:
            self._timer = self._clock.call_later(_REFUSED_S, self._again)

    def _again(self) -> None:
        self._timer = None
        self.begin()
