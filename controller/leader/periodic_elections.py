"""Elections that the leader holds by itself, again and again.

Two of them: partitions go back to their preferred leaders, and partitions without a leader get one
where their topics allow unclean elections. A pass changes at most `PASS_MAX` partitions. If there
are more, the next pass follows after a moment, so that other decisions come in between.

The time until the next pass counts from the end of the last one, and from the begin of the epoch.
"""

from collections.abc import Callable, Generator

from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.leader.proposer import Proposer
from controller.managers.passes import LOOKS_MAX, Pass
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from runtime.clock import Clock, Timer

PASS_MAX = 1_000
"""Partitions that one pass changes, as in Kafka."""
_SOON_S = 0.01
_REFUSED_S = 1.0
"""Pause after a pass was refused, for example because the journal has no room."""


class PeriodicElection:
    """One kind of election."""

    def __init__(
        self,
        clock: Clock,
        proposer: Proposer,
        interval_s: float,
        due: Callable[[MetadataImage], bool],
        decide: Callable[[MetadataImage, Pass], Generator[None, None, ControllerResult]],
        provenance: Callable[[], Provenance],
    ) -> None:
        """`due` returns whether there is anything to look at. An `interval_s` of 0: never."""
        self._clock = clock
        self._proposer = proposer
        self._interval_s = interval_s
        self._due = due
        self._decide = decide
        self._provenance = provenance
        self._timer: Timer | None = None
        self._once = Pass(PASS_MAX, LOOKS_MAX)

    def begin(self) -> None:
        """This controller is active now."""
        self._next(self._interval_s)

    def end(self) -> None:
        """This controller leads no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next(self, seconds: float, once: Pass | None = None) -> None:
        """Hold the next pass in so many seconds; it goes on with `once` if there is one."""
        self.end()
        if self._interval_s > 0:
            self._once = once or Pass(PASS_MAX, LOOKS_MAX)
            self._timer = self._clock.call_later(seconds, self._pass)

    def _pass(self) -> None:
        self._timer = None
        pending = self._proposer.pending
        if pending is None:
            return
        if not self._due(pending.image):
            self._next(self._interval_s)
            return
        once = self._once

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, LeadershipLost):
                return
            if isinstance(outcome, LogbergError):
                self._next(_REFUSED_S)
            elif once.more:
                self._next(_SOON_S, once)
            else:
                self._next(self._interval_s)

        self._proposer.submit(
            Decision(
                lambda image: self._decide(image, once),
                self._provenance(),
                done,
                in_rounds=True,
            )
        )
