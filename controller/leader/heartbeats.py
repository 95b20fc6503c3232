"""Who was heard from, and when: the soft state behind fencing.

Rule: contact is the arrival of a request or of a request for a piece of a snapshot, noted before
any queue. Nothing here is in the log; only the decision to fence is. So replaying the log gives
the same fencing without a clock.

No broker is fenced because *we* were slow: sessions run on `AwakeTime`, which stands still while
our loop does, and after a stall every broker is left the time to reach us again, since what it
sent meanwhile may still lie in a socket that nobody has read.
"""

from collections.abc import Callable, Collection, Iterable

from runtime.clock import Clock, Timer

NOT_REPORTED = -1
"""The applied offset of a broker that has not told it to this leader."""
_STALL_NOTICED_S = 0.25


class AwakeTime:
    """Monotonic time minus our own stalls.

    A timer beats every `beat_s`; the time by which a beat is late is a stall. Readings between
    a stall and the beat that notices it leave it out already.
    """

    def __init__(self, clock: Clock, beat_s: float, on_stall: Callable[[float], None]) -> None:
        """`on_stall` is called with seconds for a stall that is worth telling."""
        self._clock = clock
        self._beat_s = beat_s
        self._on_stall = on_stall
        self._last_beat = clock.monotonic()
        self._stalled = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to beat."""
        self._last_beat = self._clock.monotonic()
        self._timer = self._clock.call_later(self._beat_s, self._beat)

    def stop(self) -> None:
        """Beat no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def now(self) -> float:
        """Seconds that we were awake; never goes back."""
        now = self._clock.monotonic()
        return now - self._stalled - self._overdue(now)

    def stalled_s(self) -> float:
        """Seconds of stalls so far, the present one included."""
        return self._stalled + self._overdue(self._clock.monotonic())

    def notice(self) -> None:
        """Account for a stall now, if there is one, without waiting for the beat."""
        now = self._clock.monotonic()
        late = self._overdue(now)
        if late >= _STALL_NOTICED_S:
            self._stalled += late
            self._last_beat = now
            self._on_stall(late)

    def _overdue(self, now: float) -> float:
        return max(0.0, now - self._last_beat - self._beat_s)

    def _beat(self) -> None:
        now = self._clock.monotonic()
        late = self._overdue(now)
        self._stalled += late
        self._last_beat = now
        self._timer = self._clock.call_later(self._beat_s, self._beat)
        if late >= _STALL_NOTICED_S:
            self._on_stall(late)


class Contact:
    """What is known of one broker process."""

    __slots__ = (
        "applied_offset",
        "broker_epoch",
        "deadline",
        "graced",
        "last",
        "software",
        "watched",
    )

    def __init__(self, broker_epoch: int, watched: bool) -> None:
        self.broker_epoch = broker_epoch
        self.watched = watched
        """Unfenced: silence leads to fencing. Others are tracked for duplicates only."""
        self.last: float | None = None
        """Awake seconds at the last contact; None: none since this leader began."""
        self.deadline = 0.0
        """Awake seconds at which the session ends."""
        self.applied_offset = NOT_REPORTED
        self.software: str | None = None
        self.graced = False
        """The session was lengthened after a stall; once a silence, or nobody were ever fenced."""


class Heartbeats:
    """The table of contacts, on the active controller."""

    def __init__(self, awake: AwakeTime, session_s: float, grace_s: float) -> None:
        """`grace_s`: how long a live broker may need to reach us after we were away."""
        self._awake = awake
        self._session_s = session_s
        self._grace_s = grace_s
        self._contacts: dict[int, Contact] = {}

    def begin(self, brokers: Iterable[tuple[int, int, bool]]) -> None:
        """Start anew as leader, with (broker id, broker epoch, fenced) of every registration.

        An unfenced broker counts as just heard from. A fenced one may be alive too: for
        `grace_s` it counts as alive, so that its id is not given to another process meanwhile.
        """
        self._contacts.clear()
        now = self._awake.now()
        for broker_id, broker_epoch, fenced in brokers:
            contact = self._contacts[broker_id] = Contact(broker_epoch, watched=not fenced)
            contact.deadline = now + (self._grace_s if fenced else self._session_s)

    def clear(self) -> None:
        """Forget everything: we lead no more."""
        self._contacts.clear()

    def touch(self, broker_id: int, broker_epoch: int) -> None:
        """Note a contact of a process whose identity was checked.

        A contact of another broker epoch than the one in the table changes nothing.
        """
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            return
        now = self._awake.now()
        contact.last = now
        contact.deadline = now + self._session_s
        contact.graced = False

    def report(self, broker_id: int, broker_epoch: int, applied_offset: int) -> bool:
        """Note what that process has applied; at most our log's end. Returns whether it rose."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            return False
        if applied_offset <= contact.applied_offset:
            return False
        contact.applied_offset = applied_offset
        return True

    def note_software(self, broker_id: int, broker_epoch: int, software: str | None) -> None:
        """Note the release of the agent that calls; None: it did not say."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.broker_epoch == broker_epoch:
            # People read it on a terminal: nothing but plain characters goes there.
            plain = software is not None and software.isascii() and software.isprintable()
            contact.software = software if plain else None

    def software(self, broker_id: int) -> str | None:
        """Return the release of a broker's agent, if it said so to this leader."""
        contact = self._contacts.get(broker_id)
        return None if contact is None else contact.software

    def register(self, broker_id: int, broker_epoch: int, *, watched: bool) -> None:
        """Begin the session of a broker process that has just registered (or amended that)."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            contact = self._contacts[broker_id] = Contact(broker_epoch, watched)
        contact.watched = watched
        contact.last = now = self._awake.now()
        contact.deadline = now + self._session_s

    def watch(self, broker_id: int, *, watched: bool) -> None:
        """Say whether silence leads to fencing: it was unfenced, or fenced."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.watched == watched:
            return
        if watched and not contact.watched:
            contact.deadline = max(contact.deadline, self._awake.now() + self._session_s)
        contact.watched = watched

    def forget(self, broker_id: int) -> None:
        """End a session: the broker is unregistered, or was told that it may go."""
        self._contacts.pop(broker_id, None)

    def is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        """Tell whether that process was heard from within a session (or may have been)."""
        self._awake.notice()
        contact = self._contacts.get(broker_id)
        return (
            contact is not None
            and contact.broker_epoch == broker_epoch
            and self._awake.now() < contact.deadline
        )

    def applied_offset(self, broker_id: int) -> int:
        """The offset that a broker reports to have applied; -1: not yet to this leader."""
        contact = self._contacts.get(broker_id)
        return NOT_REPORTED if contact is None else contact.applied_offset

    def silence_s(self, broker_id: int) -> float | None:
        """Awake seconds since the last contact; None: none since this leader began."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.last is None:
            return None
        return self._awake.now() - contact.last

    def most_overdue(self, besides: Collection[int] = ()) -> int | None:
        """The watched broker whose session ended first, if any has ended, `besides` some."""
        self._awake.notice()
        now = self._awake.now()
        ended = [
            (c.deadline, b) for b, c in self._contacts.items() if c.watched and b not in besides
        ]
        deadline, broker_id = min(ended, default=(now + 1.0, -1))
        return broker_id if deadline <= now else None

    def next_deadline_s(self, besides: Collection[int] = ()) -> float | None:
        """Awake seconds from now to the first end of a watched session; None: none is watched."""
        deadlines = [
            c.deadline for b, c in self._contacts.items() if c.watched and b not in besides
        ]
        return min(deadlines) - self._awake.now() if deadlines else None

    def after_stall(self) -> None:
        """Leave everyone the time to reach us: what they sent lies in sockets unread."""
        at_least = self._awake.now() + self._grace_s
        for contact in self._contacts.values():
            if contact.watched and not contact.graced and contact.deadline < at_least:
                contact.deadline = at_least
                contact.graced = True
