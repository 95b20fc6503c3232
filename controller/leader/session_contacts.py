"""When the leader last heard from each session's client.

A contact is the arrival of a renewal. It is noted before the request enters any queue, and writes
nothing to the log. Only the decision to end a session does, so replay needs no clock.

Invariant: a session lives at least its ttl from the moment at which its client sent the last
renewal that was answered. A renewal is answered only after a majority has confirmed that this
controller leads. A new leader gives every session its full ttl again. Time runs on `AwakeTime`, so
a leader that stood still ends no session early.
"""

from collections.abc import Callable, Generator, Iterator
from typing import Final, Protocol

from controller.leader.heartbeats import AwakeTime
from controller.leader.rising_heap import RisingHeap
from metadata.records import SessionRecord

_FILLED_IN_A_STEP: Final = 256
_GRACE_SHARE: Final = 0.5
"""After a stall a session has at least this part of its ttl: clients renew more often than that."""


class SessionTable(Protocol):
    """The open sessions of an image, by id."""

    def get(self, key: bytes, /) -> SessionRecord | None: ...

    def unordered_items(self) -> Iterator[tuple[bytes, SessionRecord]]: ...


class SessionContact:
    """What the leader knows of one session's client."""

    __slots__ = ("deadline", "graced", "ttl_s")

    def __init__(self, ttl_s: float, deadline: float) -> None:
        self.ttl_s = ttl_s
        self.deadline = deadline
        """Awake seconds at which the session may be ended."""
        self.graced = False
        """It was extended after a stall. This happens once per silence."""


class SessionContacts:
    """The table of contacts, on the active controller."""

    def __init__(self, awake: AwakeTime) -> None:
        self._awake = awake
        self._contacts: dict[bytes, SessionContact] = {}
        self._deadlines: RisingHeap[bytes, float] = RisingHeap(self._deadline)
        self._aside: set[bytes] = set()
        """Sessions that are being ended."""
        self._filling: SessionTable | None = None
        """What is being put into the table; None: it is complete."""
        self._gone: set[bytes] = set()
        """Sessions that ended while the table was being filled."""

    def __len__(self) -> int:
        return len(self._contacts)

    def begin(
        self, sessions: SessionTable, on_filled: Callable[[], None]
    ) -> Generator[None, None, None]:
        """Begin as a new leader: every session counts as just heard from.

        `sessions` doesn't change. Run the returned generator in slices; no session is overdue
        before it has ended and called `on_filled`.
        """
        self.clear()
        self._filling = sessions
        return self._fill(sessions, self._awake.now(), on_filled)

    def _fill(
        self, sessions: SessionTable, began: float, on_filled: Callable[[], None]
    ) -> Generator[None, None, None]:
        for number, (session_id, session) in enumerate(sessions.unordered_items()):
            if number % _FILLED_IN_A_STEP == 0:
                yield
            if self._filling is not sessions:
                return  # This leadership is over.
            if session_id not in self._contacts and session_id not in self._gone:
                ttl_s = session.ttl_ms / 1000
                self._add(session_id, SessionContact(ttl_s, began + ttl_s))
        self._filling = None
        self._gone.clear()
        on_filled()

    def clear(self) -> None:
        """This controller leads no more: forget everything."""
        self._contacts.clear()
        self._deadlines.fill([])
        self._aside.clear()
        self._gone.clear()
        self._filling = None

    def opened(self, session_id: bytes, ttl_s: float) -> None:
        """A session is being opened."""
        self._add(session_id, SessionContact(ttl_s, self._awake.now() + ttl_s))

    def ended(self, session_id: bytes) -> None:
        """A session is being ended."""
        self._contacts.pop(session_id, None)
        self._aside.discard(session_id)
        if self._filling is not None:
            self._gone.add(session_id)

    def touch(self, session_id: bytes, ttl_s: float) -> None:
        """Note a contact of an open session's client."""
        contact = self._contacts.get(session_id)
        if contact is None:
            # The table is not filled yet.
            self.opened(session_id, ttl_s)
            return
        contact.deadline = self._awake.now() + contact.ttl_s
        contact.graced = False

    def set_aside(self, session_id: bytes) -> None:
        """The session is being ended: until `put_back`, its deadline is not reported."""
        self._aside.add(session_id)

    def put_back(self, session_id: bytes) -> None:
        """The outcome is known: report the session's deadline again, if it is there."""
        self._aside.discard(session_id)
        self._deadlines.put(session_id)

    def is_overdue(self, session_id: bytes) -> bool:
        """Return whether the session may be ended now."""
        self._awake.notice()
        contact = self._contacts.get(session_id)
        return contact is not None and contact.deadline <= self._awake.now()

    def most_overdue(self) -> bytes | None:
        """Return the session whose deadline passed first; None: none has passed."""
        self._awake.notice()
        least = None if self._filling is not None else self._deadlines.least()
        return None if least is None or least[0] > self._awake.now() else least[1]

    def next_deadline_s(self) -> float | None:
        """Return awake seconds until the first deadline; None: there is none to wait for."""
        least = None if self._filling is not None else self._deadlines.least()
        return None if least is None else least[0] - self._awake.now()

    def after_stall(self) -> None:
        """Give every session half its ttl at least: what was sent to us may lie in a socket."""
        now = self._awake.now()
        for contact in self._contacts.values():
            at_least = now + _GRACE_SHARE * contact.ttl_s
            if not contact.graced and contact.deadline < at_least:
                contact.deadline = at_least
                contact.graced = True

    def _add(self, session_id: bytes, contact: SessionContact) -> None:
        self._contacts[session_id] = contact
        self._deadlines.put(session_id)

    def _deadline(self, session_id: bytes) -> float | None:
        contact = self._contacts.get(session_id)
        return None if contact is None or session_id in self._aside else contact.deadline
