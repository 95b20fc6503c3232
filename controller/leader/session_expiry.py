"""Ends the sessions of silent clients, one at a time, while this controller leads.

Each timer starts at most one decision, so other decisions come in between. The decision looks again
whether the client is still silent, since a renewal may have come while it waited for its turn.
"""

from collections.abc import Callable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.proposer import Proposer
from controller.leader.session_contacts import SessionContacts, SessionTable
from controller.managers.coordination.sessions import SessionManager
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.records import EndSessionRecord, Record, SessionRecord
from metadata.uuids import uuid_text
from runtime.clock import Clock, Timer
from runtime.loop.slices import SlicedWork

FOLLOWED: Final = frozenset({EndSessionRecord, SessionRecord})
"""The records that change the table of contacts."""
_SOON_S: Final = 0.001
_REFUSED_S: Final = 1.0
"""Pause after a decision was refused, for example because the journal has no room."""


class SessionExpiry:
    """Watches the sessions' deadlines."""

    def __init__(
        self,
        clock: Clock,
        contacts: SessionContacts,
        sessions: SessionManager,
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
        log: FilteringBoundLogger,
    ) -> None:
        """`provenance` makes the provenance of an operation that no request caused."""
        self._clock = clock
        self._contacts = contacts
        self._sessions = sessions
        self._proposer = proposer
        self._provenance = provenance
        self._log = log
        self._timer: Timer | None = None
        self._due = 0.0
        self._not_before = 0.0
        self._active = False

    def begin(self, sessions: SessionTable) -> None:
        """This controller leads now. `sessions` are those of an image that doesn't change."""
        self._active = True
        filling = self._contacts.begin(sessions, self.reschedule)
        SlicedWork(self._clock, filling, lambda: None).begin(at_once=True)

    def end(self) -> None:
        """This controller leads no more: end no session."""
        self._active = False
        self._contacts.clear()
        self._stop()

    def follow(self, records: Sequence[Record]) -> None:
        """Records were proposed: bring the table up to them."""
        for record in records:
            if isinstance(record, SessionRecord):
                self._contacts.opened(record.session_id, record.ttl_ms / 1000)
            elif isinstance(record, EndSessionRecord):
                self._contacts.ended(record.session_id)
        self.reschedule()

    def reschedule(self) -> None:
        """Set the timer to the first deadline. Call this whenever one may have come nearer."""
        wait_s = self._contacts.next_deadline_s() if self._active else None
        if wait_s is None:
            return
        now = self._clock.monotonic()
        wait_s = max(wait_s, self._not_before - now, _SOON_S)
        if self._timer is not None:
            if self._due <= now + wait_s:
                return  # The timer fires early enough, and `_look` sets it again.
            self._stop()
        self._due = now + wait_s
        self._timer = self._clock.call_later(wait_s, self._look)

    def _look(self) -> None:
        self._timer = None
        overdue = self._contacts.most_overdue() if self._active else None
        if overdue is None:
            self.reschedule()
            return
        self._contacts.set_aside(overdue)

        def expire(image: MetadataImage) -> ControllerResult:
            if not self._contacts.is_overdue(overdue):
                return ControllerResult(())
            return self._sessions.expire(image, overdue)

        self._proposer.submit(
            Decision(
                expire,
                self._provenance("ExpireSession"),
                lambda outcome: self._report(overdue, outcome),
                first=True,
            )
        )
        self.reschedule()

    def _report(self, session_id: bytes, outcome: Outcome) -> None:
        self._contacts.put_back(session_id)
        if isinstance(outcome, LogbergError):
            self._not_before = self._clock.monotonic() + _REFUSED_S
        if isinstance(outcome, Written) and outcome.wrote:
            self._log.info(
                "session_expired", session_id=uuid_text(session_id), offset=outcome.offset
            )
        self.reschedule()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
