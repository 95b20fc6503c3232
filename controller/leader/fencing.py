"""Fences silent brokers, one at a time.

Each timer starts at most one fencing decision. While more brokers are overdue, the next timer is
set when that decision begins, so other decisions come in between. It doesn't wait for the end: a
broker with many replicas is fenced in many rounds. The decision itself checks again whether the
broker is still silent.
"""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.heartbeats import Heartbeats
from controller.leader.proposer import Proposer
from controller.managers.brokers import BrokerManager
from controller.managers.sweep import Sweep, a_sweep, in_rounds
from controller.result import Decided
from ledger.batch import Provenance
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from runtime.clock import Clock, Timer

_SOON_S = 0.001
_REFUSED_S = 1.0
"""Pause after a fencing decision was refused, for example because the journal has no room."""


class Fencing:
    """Watches the brokers' sessions while this controller leads."""

    def __init__(
        self,
        clock: Clock,
        heartbeats: Heartbeats,
        brokers: BrokerManager,
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
        log: FilteringBoundLogger,
    ) -> None:
        """`provenance` makes the provenance of an operation that no request caused."""
        self._clock = clock
        self._heartbeats = heartbeats
        self._brokers = brokers
        self._proposer = proposer
        self._provenance = provenance
        self._log = log
        self._timer: Timer | None = None
        self._due = 0.0
        self._not_before = 0.0
        self._deciding: int | None = None
        """The broker whose fencing has not begun yet."""
        self._active = False

    def begin(self) -> None:
        """This controller leads now: begin to watch."""
        self._active = True
        self._deciding = None
        self.reschedule()

    def end(self) -> None:
        """This controller leads no more: fence nobody."""
        self._active = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def reschedule(self) -> None:
        """Set the timer to the first end of a session. Call this whenever sessions have changed."""
        if not self._active or self._deciding is not None:
            return
        wait_s = self._heartbeats.next_deadline_s()
        if wait_s is None:
            return
        now = self._clock.monotonic()
        wait_s = max(wait_s, self._not_before - now)
        due = now + wait_s
        if self._timer is not None:
            if self._due <= due:
                return  # The timer fires early enough, and `_look` sets it again.
            self._timer.cancel()
        self._due = due
        self._timer = self._clock.call_later(max(wait_s, _SOON_S), self._look)

    def _look(self) -> None:
        self._timer = None
        overdue = self._heartbeats.most_overdue() if self._active else None
        if overdue is None:
            self.reschedule()
            return
        self.fence(overdue)

    def fence(self, broker_id: int) -> None:
        """Decide about a broker whose session has ended: fence it, if it is still silent."""
        self._deciding = broker_id
        # Fencing a broker may take several rounds. Meanwhile the timer waits for the others.
        self._heartbeats.set_aside(broker_id)

        def fence(image: MetadataImage, sweep: Sweep) -> Decided:
            self._clock.call_soon(lambda: self._go_on(broker_id))
            return self._brokers.fence_silent(image, broker_id, sweep)

        sweep = a_sweep()
        self._proposer.submit(
            Decision(
                in_rounds(fence, sweep),
                self._provenance("FenceBroker"),
                lambda outcome: self._report(broker_id, outcome),
                first=True,
                sweep=sweep,
            )
        )

    def _go_on(self, broker_id: int) -> None:
        """The decision about this broker has begun, or it never will."""
        if self._deciding == broker_id:
            self._deciding = None
            self.reschedule()

    def _report(self, broker_id: int, outcome: Outcome) -> None:
        self._heartbeats.put_back(broker_id)
        if self._deciding == broker_id:
            self._deciding = None
        if isinstance(outcome, LogbergError):
            self._not_before = self._clock.monotonic() + _REFUSED_S
        if isinstance(outcome, Written) and outcome.wrote:
            self._log.warning(
                "broker_fenced",
                broker_id=broker_id,
                reason=outcome.result.reason,
                offset=outcome.offset,
            )
        self.reschedule()
