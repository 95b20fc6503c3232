"""When the leader last heard from each broker.

A contact is the arrival of a request, or of a request for a piece of a snapshot. It is noted before
the request enters any queue.

Invariant: no broker is fenced because the controller was slow. Sessions run on `AwakeTime`, which
stands still while our event loop does. After a stall every broker gets time to reach us again,
because what it sent may still lie unread in a socket.

This table is the leader's soft state. Only the decision to fence a broker goes into the log, so
replay needs no clock.

A heartbeat costs the same with ten brokers and with ten thousand. The session that ends first and
the lowest applied offset are found without a look at all brokers (`rising_heap`).

A new leader knows all sessions at once, and fills its table in slices. Until then a broker that is
not in the table yet is looked up in the image that the leader began with.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Protocol

from controller.leader.rising_heap import RisingHeap
from runtime.clock import Clock, Timer

NOT_REPORTED = -1
"""The applied offset of a broker that has not reported one to this leader."""
_STALL_NOTICED_S = 0.25
_FILLED_IN_A_STEP = 64


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


class Registered(Protocol):
    """What the table needs of a registration."""

    @property
    def broker_id(self) -> int: ...

    @property
    def broker_epoch(self) -> int: ...

    @property
    def fenced(self) -> bool: ...

    @property
    def active(self) -> bool:
        """Neither fenced nor shutting down."""


class Registrations(Protocol):
    """The registrations of an image, by broker id."""

    def get(self, key: int, /) -> Registered | None: ...

    def unordered_items(self) -> Iterator[tuple[int, Registered]]: ...


class Heartbeats:
    """The table of contacts, on the active controller."""

    def __init__(self, awake: AwakeTime, session_s: float, grace_s: float) -> None:
        """`grace_s`: how long a live broker may need to reach us after a stall."""
        self._awake = awake
        self._session_s = session_s
        self._grace_s = grace_s
        self._contacts: dict[int, Contact] = {}
        self._deadlines: RisingHeap[int, float] = RisingHeap(self._watched_deadline)
        self._aside: set[int] = set()
        """Brokers that are being fenced."""
        self._active: set[int] = set()
        self._applied: RisingHeap[int, int] = RisingHeap(self._active_offset)
        self._began = 0.0
        self._begun_with: Registrations | None = None
        """The registrations at the begin, while the table is not filled; else None."""
        self._left: set[int] = set()
        """Brokers that left the table while it was being filled."""

    def begin(self, brokers: Registrations) -> Generator[None, None, None]:
        """Begin as a new leader, with the registrations of an image that doesn't change.

        An unfenced broker counts as just heard from. A fenced one may be alive too, so it counts as
        alive for `grace_s`. Its id is not given to another process meanwhile. This holds when the
        method returns. The returned generator fills the table; run it in slices.
        """
        self.clear()
        self._began = self._awake.now()
        self._begun_with = brokers
        return self._fill(brokers)

    def _fill(self, brokers: Registrations) -> Generator[None, None, None]:
        """Put the brokers into the table that are not there yet."""
        for number, (broker_id, _) in enumerate(brokers.unordered_items()):
            if self._begun_with is not brokers:
                return  # This leadership is over.
            if number % _FILLED_IN_A_STEP == 0:
                yield
            self._find(broker_id)
        self._end_filling()

    def _fill_at_once(self) -> None:
        """Fill the rest of the table: the caller needs to see all of it."""
        if self._begun_with is not None:
            for broker_id, _ in self._begun_with.unordered_items():
                self._find(broker_id)
            self._end_filling()

    def _end_filling(self) -> None:
        self._begun_with = None
        self._left.clear()

    def _find(self, broker_id: int) -> Contact | None:
        """Return what is known of a broker; None if it has no session here."""
        contact = self._contacts.get(broker_id)
        if contact is not None or self._begun_with is None or broker_id in self._left:
            return contact
        broker = self._begun_with.get(broker_id)
        if broker is None:
            return None
        contact = self._contacts[broker_id] = Contact(broker.broker_epoch, not broker.fenced)
        contact.deadline = self._began + (self._grace_s if broker.fenced else self._session_s)
        self._deadlines.put(broker_id)
        if broker.active:
            self._active.add(broker_id)
            self._applied.put(broker_id)
        return contact

    def clear(self) -> None:
        """This controller leads no more: forget everything."""
        self._contacts.clear()
        self._deadlines.fill([])
        self._aside.clear()
        self._active.clear()
        self._applied.fill([])
        self._end_filling()

    def touch(self, broker_id: int, broker_epoch: int) -> None:
        """Note a contact of a process whose identity was checked.

        If its broker epoch is not the one in the table, nothing changes.
        """
        contact = self._find(broker_id)
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
        contact = self._find(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            return False
        if applied_offset <= contact.applied_offset:
            return False
        contact.applied_offset = applied_offset
        return True

    def note_software(self, broker_id: int, broker_epoch: int, software: str | None) -> None:
        """Note the release of a broker's agent; None if the request didn't name one."""
        contact = self._find(broker_id)
        if contact is not None and contact.broker_epoch == broker_epoch:
            # People read it on a terminal, so control characters must not get in.
            plain = software is not None and software.isascii() and software.isprintable()
            contact.software = software if plain else None

    def software(self, broker_id: int) -> str | None:
        """Return the release of a broker's agent; None if this leader wasn't told."""
        contact = self._find(broker_id)
        return None if contact is None else contact.software

    def register(self, broker_id: int, broker_epoch: int, *, watched: bool) -> None:
        """Begin a session: a broker process has registered, or amended its registration."""
        contact = self._find(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            contact = self._contacts[broker_id] = Contact(broker_epoch, watched)
        contact.watched = watched
        contact.last = now = self._awake.now()
        contact.deadline = now + self._session_s
        self._deadlines.put(broker_id)
        self._applied.put(broker_id)

    def watch(self, broker_id: int, *, watched: bool) -> None:
        """Note that a broker was unfenced (`watched`) or fenced."""
        contact = self._find(broker_id)
        if contact is None or contact.watched == watched:
            return
        if watched and not contact.watched:
            contact.deadline = max(contact.deadline, self._awake.now() + self._session_s)
        contact.watched = watched
        self._deadlines.put(broker_id)

    def forget(self, broker_id: int) -> None:
        """End a session: the broker was unregistered, or was told that it may stop."""
        self._find(broker_id)
        self._contacts.pop(broker_id, None)
        if self._begun_with is not None:
            self._left.add(broker_id)
        self._applied.put(broker_id)

    def note_active(self, broker_id: int, *, active: bool) -> None:
        """Note whether a broker is active: neither fenced nor shutting down."""
        self._find(broker_id)
        if active:
            self._active.add(broker_id)
            self._applied.put(broker_id)
        else:
            self._active.discard(broker_id)

    def is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether that process was heard from within a session, or may have been."""
        self._awake.notice()
        contact = self._find(broker_id)
        return (
            contact is not None
            and contact.broker_epoch == broker_epoch
            and self._awake.now() < contact.deadline
        )

    def count_silent(self, processes: Iterable[tuple[int, int]]) -> int:
        """Count how many of these processes, (broker id, broker epoch), are not alive."""
        self._awake.notice()
        now, silent = self._awake.now(), 0
        for broker_id, broker_epoch in processes:
            contact = self._find(broker_id)
            silent += (
                contact is None or contact.broker_epoch != broker_epoch or now >= contact.deadline
            )
        return silent

    def applied_offset(self, broker_id: int) -> int:
        """Return the offset that a broker reported as applied; -1 if none to this leader yet."""
        contact = self._find(broker_id)
        return NOT_REPORTED if contact is None else contact.applied_offset

    def lowest_applied(self) -> int | None:
        """Return the lowest applied offset of active brokers; None: no broker is active.

        -1: one of them has not reported its offset to this leader yet.
        """
        if self._begun_with is not None:
            return NOT_REPORTED
        least = self._applied.least()
        return None if least is None else least[0]

    def behind(self, offset: int) -> list[int]:
        """Return the active brokers that have not applied everything before an offset, by id."""
        self._fill_at_once()
        return sorted(b for b in self._active if self.applied_offset(b) < offset)

    def silence_s(self, broker_id: int) -> float | None:
        """Return awake seconds since the last contact; None if this leader had none."""
        contact = self._find(broker_id)
        if contact is None or contact.last is None:
            return None
        return self._awake.now() - contact.last

    def set_aside(self, broker_id: int) -> None:
        """The broker is being fenced: until `put_back`, the end of its session is not reported."""
        self._aside.add(broker_id)

    def is_being_fenced(self, broker_id: int) -> bool:
        """Return whether a broker's fencing is asked for and its outcome isn't known yet.

        Until then no answer lets the broker serve: the decision may be committed at any moment.
        """
        return broker_id in self._aside

    def put_back(self, broker_id: int) -> None:
        """The fencing is over, or it was refused: report the end of the broker's session again."""
        self._aside.discard(broker_id)
        self._deadlines.put(broker_id)

    def most_overdue(self) -> int | None:
        """Return the watched broker whose session ended first; None if none ended.

        Brokers that were set aside are left out.
        """
        self._awake.notice()
        if self._awake.now() >= self._began + self._session_s:
            self._fill_at_once()
        least = self._deadlines.least()
        if least is None:
            return None
        deadline, broker_id = least
        return broker_id if deadline <= self._awake.now() else None

    def next_deadline_s(self) -> float | None:
        """Return awake seconds until the first watched session ends; None if none is watched.

        Brokers that were set aside are left out.
        """
        least = self._deadlines.least()
        ends = [] if least is None else [least[0]]
        if self._begun_with is not None:
            ends.append(self._began + self._session_s)
        return min(ends) - self._awake.now() if ends else None

    def after_stall(self) -> None:
        """Give every watched broker at least `grace_s` from now."""
        self._fill_at_once()
        at_least = self._awake.now() + self._grace_s
        for contact in self._contacts.values():
            if contact.watched and not contact.graced and contact.deadline < at_least:
                contact.deadline = at_least
                contact.graced = True

    def _watched_deadline(self, broker_id: int) -> float | None:
        """Return when a broker's session ends; None if nobody waits for that."""
        contact = self._find(broker_id)
        if contact is None or not contact.watched or broker_id in self._aside:
            return None
        return contact.deadline

    def _active_offset(self, broker_id: int) -> int | None:
        return self.applied_offset(broker_id) if broker_id in self._active else None
