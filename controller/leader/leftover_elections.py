"""Elects leaders for partitions that an interrupted unfencing left without one.

An unfencing of many partitions takes several rounds, and the first one unfences the broker. If a
later round does not happen, because the leader goes or its journal has no room, no other event
triggers the missing elections. So every new leader looks for such partitions once. A leader whose
election was refused tries again after a second.

A config that allows unclean elections also gives partitions a leader that had none to elect.
"""

from collections.abc import Callable

from controller.leader.decisions import Decision, Outcome
from controller.leader.proposer import Proposer
from controller.managers.brokers import BrokerManager
from controller.managers.sweep import a_sweep, in_rounds
from ledger.batch import Provenance
from metadata.errors import LogbergError
from runtime.clock import Clock, Timer

_REFUSED_S = 1.0
"""Pause after an election was refused because the journal has no room."""


class LeftoverElections:
    """Elects a leader for each partition that can have one and has none."""

    def __init__(
        self,
        clock: Clock,
        brokers: BrokerManager,
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
    ) -> None:
        """`provenance` makes the provenance of an operation that no request caused."""
        self._clock = clock
        self._brokers = brokers
        self._proposer = proposer
        self._provenance = provenance
        self._timer: Timer | None = None
        self._reason = ""

    def begin(self, reason: str = "a broker is back") -> None:
        """Hold the elections that are possible, for this reason.

        At the begin of a leadership: those that the predecessor left.
        """
        self._reason = reason
        pending = self._proposer.pending
        if pending is None or not len(pending.image.topics.leaderless):
            return
        shared = a_sweep()
        self._proposer.submit(
            Decision(
                in_rounds(
                    lambda image, sweep: self._brokers.elect_where_possible(image, sweep, reason),
                    shared,
                ),
                self._provenance("ElectLeaders"),
                self.report,
                first=True,
                sweep=shared,
            )
        )

    def end(self) -> None:
        """This controller leads no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def report(self, outcome: Outcome) -> None:
        """Note the outcome of a decision that elects; try again later if it was refused."""
        if isinstance(outcome, LogbergError) and self._timer is None:
            self._timer = self._clock.call_later(_REFUSED_S, self._again)

    def _again(self) -> None:
        self._timer = None
        self.begin(self._reason)
