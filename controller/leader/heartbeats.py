"""When the leader last heard from each broker.

A contact is the arrival of a request, or of a request for a piece of a snapshot. It is noted before
the request enters any queue.

Invariant: no broker is fenced because the controller was slow. Sessions run on `AwakeTime`, which
stands still while our event loop does. After a stall every broker gets time to reach us again,
because what it sent may still lie unread in a socket.

This table is the leader's soft state. Only the decision to fence a broker goes into the log, so
replay needs no clock.
"""

from collections.abc import Callable, Collection, Iterable

from runtime.clock import Clock, Timer

NOT_REPORTED = -1
"""The applied offset of a broker that has not reported one to this leader."""
_STALL_NOTICED_S = 0.25


class AwakeTime:
    """Monotonic time minus the stalls of our event loop.

    A timer fires every `beat_s` seconds. If it fires late, the delay is a stall. `now` leaves a
    stall out even before the timer has noticed it.
    """

    def __init__(self, clock: Clock, beat_s: float, on_stall: Callable[[float], None]) -> None:
        """`on_stall` is called with the seconds of each stall of 0.25 s or more."""
        self._clock = clock
        self._beat_s = beat_s
        self._on_stall = on_stall
        self._last_beat = clock.monotonic()
        self._stalled = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        """Start the timer."""
        self._last_beat = self._clock.monotonic()
        self._timer = self._clock.call_later(self._beat_s, self._beat)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def now(self) -> float:
        """Return monotonic seconds without stalls. They never go back."""
        now = self._clock.monotonic()
        return now - self._stalled - self._overdue(now)

    def stalled_s(self) -> float:
        """Return the seconds of all stalls so far, including one that is not over."""
        return self._stalled + self._overdue(self._clock.monotonic())

    def notice(self) -> None:
        """Check for a stall now, without waiting for the timer."""
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
    """What the leader knows of one broker process."""

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
        """The broker is unfenced, so silence leads to fencing. Fenced brokers are in the table
        too: while one is alive, no other process gets its id."""
        self.last: float | None = None
        """Awake seconds at the last contact; None if there was none since this leader began."""
        self.deadline = 0.0
        """Awake seconds at which the session ends."""
        self.applied_offset = NOT_REPORTED
        self.software: str | None = None
        self.graced = False
        """The session was extended after a stall. This happens once per silence; otherwise frequent
        stalls would keep a dead broker unfenced for ever."""


class Heartbeats:
    """The table of contacts, on the active controller."""

    def __init__(self, awake: AwakeTime, session_s: float, grace_s: float) -> None:
        """`grace_s`: how long a live broker may need to reach us after a stall."""
        self._awake = awake
        self._session_s = session_s
        self._grace_s = grace_s
        self._contacts: dict[int, Contact] = {}

    def begin(self, brokers: Iterable[tuple[int, int, bool]]) -> None:
        """Begin as a new leader, with (broker id, broker epoch, fenced) of every registration.

        An unfenced broker counts as just heard from. A fenced one may be alive too, so it counts as
        alive for `grace_s`. Its id is not given to another process meanwhile.
        """
        self._contacts.clear()
        now = self._awake.now()
        for broker_id, broker_epoch, fenced in brokers:
            contact = self._contacts[broker_id] = Contact(broker_epoch, watched=not fenced)
            contact.deadline = now + (self._grace_s if fenced else self._session_s)

    def clear(self) -> None:
        """This controller leads no more: forget everything."""
        self._contacts.clear()

    def touch(self, broker_id: int, broker_epoch: int) -> None:
        """Note a contact of a process whose identity was checked.

        If its broker epoch is not the one in the table, nothing changes.
        """
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            return
        now = self._awake.now()
        contact.last = now
        contact.deadline = now + self._session_s
        contact.graced = False

    def report(self, broker_id: int, broker_epoch: int, applied_offset: int) -> bool:
        """Note the offset that a process has applied. Returns whether it rose.

        The caller has checked that the offset is not beyond our log end.
        """
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            return False
        if applied_offset <= contact.applied_offset:
            return False
        contact.applied_offset = applied_offset
        return True

    def note_software(self, broker_id: int, broker_epoch: int, software: str | None) -> None:
        """Note the release of a broker's agent; None if the request didn't name one."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.broker_epoch == broker_epoch:
            # People read it on a terminal, so control characters must not get in.
            plain = software is not None and software.isascii() and software.isprintable()
            contact.software = software if plain else None

    def software(self, broker_id: int) -> str | None:
        """Return the release of a broker's agent; None if this leader wasn't told."""
        contact = self._contacts.get(broker_id)
        return None if contact is None else contact.software

    def register(self, broker_id: int, broker_epoch: int, *, watched: bool) -> None:
        """Begin a session: a broker process has registered, or amended its registration."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            contact = self._contacts[broker_id] = Contact(broker_epoch, watched)
        contact.watched = watched
        contact.last = now = self._awake.now()
        contact.deadline = now + self._session_s

    def watch(self, broker_id: int, *, watched: bool) -> None:
        """Note that a broker was unfenced (`watched`) or fenced."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.watched == watched:
            return
        if watched and not contact.watched:
            contact.deadline = max(contact.deadline, self._awake.now() + self._session_s)
        contact.watched = watched

    def forget(self, broker_id: int) -> None:
        """End a session: the broker was unregistered, or was told that it may stop."""
        self._contacts.pop(broker_id, None)

    def is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether that process was heard from within a session, or may have been."""
        self._awake.notice()
        contact = self._contacts.get(broker_id)
        return (
            contact is not None
            and contact.broker_epoch == broker_epoch
            and self._awake.now() < contact.deadline
        )

    def applied_offset(self, broker_id: int) -> int:
        """Return the offset that a broker reported as applied; -1 if none to this leader yet."""
        contact = self._contacts.get(broker_id)
        return NOT_REPORTED if contact is None else contact.applied_offset

    def silence_s(self, broker_id: int) -> float | None:
        """Return awake seconds since the last contact; None if this leader had none."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.last is None:
            return None
        return self._awake.now() - contact.last

    def most_overdue(self, besides: Collection[int] = ()) -> int | None:
        """Return the watched broker whose session ended first; None if none ended.

        Brokers in `besides` are left out.
        """
        self._awake.notice()
        now = self._awake.now()
        ended = [
            (c.deadline, b) for b, c in self._contacts.items() if c.watched and b not in besides
        ]
        deadline, broker_id = min(ended, default=(now + 1.0, -1))
        return broker_id if deadline <= now else None

    def next_deadline_s(self, besides: Collection[int] = ()) -> float | None:
        """Return awake seconds until the first watched session ends; None if none is watched."""
        deadlines = [
            c.deadline for b, c in self._contacts.items() if c.watched and b not in besides
        ]
        return min(deadlines) - self._awake.now() if deadlines else None

    def after_stall(self) -> None:
        """Give every watched broker at least `grace_s` from now."""
        at_least = self._awake.now() + self._grace_s
        for contact in self._contacts.values():
            if contact.watched and not contact.graced and contact.deadline < at_least:
                contact.deadline = at_least
                contact.graced = True
