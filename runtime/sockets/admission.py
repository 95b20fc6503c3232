"""Limits how many connections there are, and chooses which one to close for a new one.

Rule: every accepted connection holds a place from `accept()` until it closes. So the number of
connections is limited while each costs no more than a file descriptor. If no place is free, the
connection that has been longest in the lowest rank is closed for the new one. A connection with a
request under way is never closed for another.

A connection that has sent bytes but is not authenticated also needs a slot, because it costs
memory: a TLS session, part of a request's head. There are few slots. A connection that waits for a
slot costs only a descriptor.
"""

from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from runtime.sockets.byte_budget import ByteBudget, ByteClaim


class Rank(IntEnum):
    """What is known about a connection. Connections of the lowest rank are closed first."""

    SILENT = 0
    """It has not sent a byte, or not all of its ClientHello."""
    UNKNOWN = 1
    """It has sent bytes, and its caller is not authenticated yet."""
    IDLE = 2
    """Its caller is authenticated, and no request is under way."""
    BUSY = 3
    """Its caller is authenticated, and a request is under way."""


class ConnectionPlace:
    """One connection's place.

    `end` closes the connection. Whoever owns the connection sets it anew when the way to close it
    changes.
    """

    __slots__ = ("address", "claim", "end", "is_unread", "rank", "since")

    def __init__(self, address: str, end: Callable[[], None]) -> None:
        self.address = address
        self.end = end
        self.is_unread: Callable[[], bool] = _is_read
        """Whether bytes have arrived that this process has not read."""
        self.rank = Rank.SILENT
        self.claim: ByteClaim | None = None
        """The memory that its slot holds; None while it has no slot."""
        self.since = 0.0
        """When it got its slot, by the loop's clock, in seconds."""


_UNREAD_GRACES = 5
"""A connection whose bytes are not read yet keeps its slot for so many times the grace period."""
_Queue = dict[Rank, dict[ConnectionPlace, None]]


class Slots(NamedTuple):
    """How many connections may cost memory before they are authenticated."""

    places: int
    bytes_each: int
    budget: ByteBudget
    grace_s: float
    """While others wait for a slot, a connection that holds one for longer is closed."""


class Admission:
    """Counts connections, in total and by address, and closes some to make room for others."""

    def __init__(
        self,
        total: int,
        per_address: int,
        *,
        slots: Slots,
        now: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._total = total
        self._per_address = per_address
        self._slots = slots
        self._now = now
        self._call_later = call_later
        self._places: set[ConnectionPlace] = set()
        self._at: Counter[str] = Counter()
        self._queue: _Queue = _empty()
        self._queues_at: dict[str, _Queue] = {}
        self._holders: dict[ConnectionPlace, None] = {}
        self._waiting: dict[str, dict[ConnectionPlace, Callable[[], None]]] = {}
        self._is_checking = False
        self.turned_away = 0
        """Connections that got no place."""
        self.ended = 0
        """Connections that were closed for another one."""

    @property
    def inside(self) -> int:
        """The number of connections that have a place."""
        return len(self._places)

    @property
    def unknown(self) -> int:
        """The number of connections that have a slot."""
        return len(self._holders)

    # -- places ------------------------------------------------------------------------------

    def enter(self, place: ConnectionPlace) -> bool:
        """Give the connection a place. False: there is none, and the caller must close it."""
        own = self._queues_at.get(place.address, {})
        if self._at[place.address] >= self._per_address and not self._end_first(own):
            self.turned_away += 1
            return False
        if len(self._places) >= self._total and not self._end_first(self._queue):
            self.turned_away += 1
            return False
        self._places.add(place)
        self._at[place.address] += 1
        self._put(place, Rank.SILENT)
        return True

    def move(self, place: ConnectionPlace, rank: Rank) -> None:
        """Change a place's rank. A connection that is authenticated now gives its slot back."""
        before = place.rank
        if before is rank or place not in self._places:
            return
        place.rank = rank
        own = self._queues_at[place.address]
        del self._queue[before][place], own[before][place]
        self._queue[rank][place] = own[rank][place] = None
        if place.claim is not None and rank >= Rank.IDLE:
            self._release_slot(place)

    def leave(self, place: ConnectionPlace) -> None:
        """Give the place back; a second call changes nothing."""
        if place not in self._places:
            return
        self._places.remove(place)
        self._at[place.address] -= 1
        if not self._at[place.address]:
            del self._at[place.address]
        self._take_out(place)
        self._stop_waiting(place)
        # `end` refers to the connection, which refers to this place. The garbage collector could
        # take minutes to free such a cycle.
        place.end = _is_over
        place.is_unread = _is_read
        self._release_slot(place)

    def make_room(self) -> bool:
        """Close one connection, because the process has no file descriptor left."""
        return self._end_first(self._queue)

    def _end_first(self, queue: _Queue) -> bool:
        for rank in (Rank.SILENT, Rank.UNKNOWN, Rank.IDLE):
            first = next(iter(queue.get(rank, ())), None)
            if first is not None:
                self._end(first)
                return True
        return False

    def _end(self, place: ConnectionPlace) -> None:
        self.ended += 1
        place.end()
        self.leave(place)

    def _put(self, place: ConnectionPlace, rank: Rank) -> None:
        place.rank = rank
        self._queue[rank][place] = None
        own = self._queues_at.get(place.address)
        if own is None:
            own = self._queues_at[place.address] = _empty()
        own[rank][place] = None

    def _take_out(self, place: ConnectionPlace) -> None:
        del self._queue[place.rank][place]
        own = self._queues_at[place.address]
        del own[place.rank][place]
        if not any(own.values()):
            del self._queues_at[place.address]

    # -- slots -------------------------------------------------------------------------------

    def when_room(self, place: ConnectionPlace, begin: Callable[[], None]) -> None:
        """Call `begin` when the connection gets a slot: at once, or later."""
        if not self._give_slot(place, begin):
            self._waiting.setdefault(place.address, {})[place] = begin
            self._check_later(self._slots.grace_s)

    def _give_slot(self, place: ConnectionPlace, begin: Callable[[], None]) -> bool:
        if len(self._holders) >= self._slots.places:
            return False
        claim = self._slots.budget.claim(f"address {place.address}")
        if not claim.grow(self._slots.bytes_each):
            return False
        place.claim, place.since = claim, self._now()
        self._holders[place] = None
        self.move(place, Rank.UNKNOWN)
        begin()
        return True

    def _release_slot(self, place: ConnectionPlace) -> None:
        if place.claim is None:
            return
        del self._holders[place]
        place.claim.close()
        place.claim = None
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        """Give free slots to the addresses in turn, to the newest connection of each.

        In a flood the oldest connections are the attacker's. A client that comes later is newer.
        """
        while self._waiting and len(self._holders) < self._slots.places:
            address, queue = next(iter(self._waiting.items()))
            place, begin = queue.popitem()
            del self._waiting[address]
            if queue:
                self._waiting[address] = queue
            if not self._give_slot(place, begin):
                self._waiting.setdefault(address, {})[place] = begin
                return

    def _stop_waiting(self, place: ConnectionPlace) -> None:
        queue = self._waiting.get(place.address)
        if queue is not None and queue.pop(place, None) is not None and not queue:
            del self._waiting[place.address]

    def _check_later(self, delay_s: float) -> None:
        if not self._is_checking:
            self._is_checking = True
            self._call_later(delay_s, self._check_slots)

    def _check_slots(self) -> None:
        """While others wait, close the connections whose grace period is over."""
        self._is_checking = False
        until = self._now() - self._slots.grace_s
        at_last = self._now() - _UNREAD_GRACES * self._slots.grace_s
        for place in list(self._holders):
            if not self._waiting or place.since > until:
                break
            if place in self._holders and (place.since <= at_last or not place.is_unread()):
                self._end(place)
        self._serve_waiting()
        if self._waiting:
            oldest = next(iter(self._holders), None)
            wait = self._slots.grace_s if oldest is None else oldest.since - until
            self._check_later(max(0.05, wait))


def _is_over() -> None:
    """Replaces `end` of a connection that is closed."""


def _is_read() -> bool:
    """Stands for `is_unread` where there is no socket."""
    return False


def _empty() -> _Queue:
    return {rank: {} for rank in Rank}
