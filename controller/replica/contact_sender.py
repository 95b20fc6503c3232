"""A standby forwards brokers' contacts to the leader in bulk, and waits for its word (ADR 0048).

Rules, as in model/Leases.tla. Without any one of them a broker could serve while it is fenced:

- A bulk has a number, the epoch in which it is forwarded, and the id of this process. Numbers begin
  anew in each epoch and in each process.
- A contact is confirmed when the leader has confirmed its bulk, in the epoch that this node knows
  now, for this process. Any other confirmation is dropped.
- At a new epoch all that waits is forwarded again, with new numbers.

A contact that can't be forwarded, or isn't confirmed in time, is given up: its broker is sent to
the leader. Bounds: contacts in a bulk, bulks under way, contacts that wait, and the time.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from controller.replica.contacts import (
    BULK_MAX,
    Bulk,
    ForwardedContact,
    Word,
    decode_confirmation,
    encode_message,
)
from quorum.api import LeaderAndEpoch
from runtime.clock import Clock, Timer
from runtime.loop.slices import LoopShare

COLLECT_S: Final = 0.02
"""For so long contacts are collected, unless a bulk is full before."""
CONFIRM_S: Final = 0.2
"""A contact that isn't confirmed by then is given up. Agents wait 0.25 s longer than they asked."""
BULKS_MAX: Final = 8
"""Bulks under way. The next one waits until one of them is confirmed or given up."""
WAITING_MAX: Final = 10_000
"""Contacts that wait for their confirmation. Further ones are given up at once."""


class Confirmed(NamedTuple):
    """The leader's word about one contact."""

    epoch: int
    word: Word
    session_ms: int
    """The length of the leader's sessions."""


OnWord = Callable[[Confirmed | None], None]
"""Called once for each contact. None: the contact was given up."""


class _Waiting(NamedTuple):
    contact: ForwardedContact
    on_word: OnWord
    until: float


class ContactSender:
    """The contacts that brokers made with this standby."""

    def __init__(
        self,
        clock: Clock,
        node_id: int,
        life: bytes,
        leader: Callable[[], LeaderAndEpoch],
        send: Callable[[int, bytes], bool],
    ) -> None:
        """`life`: drawn for this process, `LIFE_BYTES` long. `leader`: as the quorum knows it now.

        `send` takes a node id and a bulk, and returns whether it was sent.
        """
        self._clock = clock
        self._node_id = node_id
        self._life = life
        self._leader = leader
        self._send = send
        self._epoch = -1
        self._number = 0
        """Of the newest bulk in this epoch."""
        self._collected: deque[_Waiting] = deque()
        """Not forwarded yet, in the order of arrival."""
        self._under_way: dict[int, list[_Waiting]] = {}
        """By the number of the bulk, in this order."""
        self._told: deque[tuple[_Waiting, Confirmed | None]] = deque()
        """Who has got a word and must hear of it."""
        self._waiting = 0
        self._due: Timer | None = None
        self._limit: Timer | None = None
        self._share = LoopShare(clock, self._tell)
        self.confirmed = 0
        """Contacts that the leader has confirmed, since the start."""
        self.given_up = 0

    def take(self, contact: ForwardedContact, on_word: OnWord) -> None:
        """Forward a contact whose identity was checked; `on_word` is called once, now or later."""
        if self._waiting >= WAITING_MAX:
            self.given_up += 1
            on_word(None)
            return
        self._waiting += 1
        until = self._clock.monotonic() + CONFIRM_S
        self._collected.append(_Waiting(contact, on_word, until))
        self._follow_epoch()
        if len(self._collected) >= BULK_MAX:
            self._forward()
        self._set_timers()

    def can_forward(self, seen_epoch: int) -> bool:
        """Return whether there is a leader to forward to, of this epoch or of a newer one."""
        leader, epoch = self._leader()
        return leader is not None and leader != self._node_id and seen_epoch <= epoch

    def is_current(self, epoch: int) -> bool:
        """Return whether a word of this epoch still counts: this node knows no newer one."""
        return epoch == self._leader().epoch

    def on_confirmed(self, data: bytes) -> None:
        """A confirmation has come from a voter."""
        self._follow_epoch()
        confirmation = decode_confirmation(data)
        if confirmation is None or confirmation.life != self._life:
            return
        if confirmation.epoch != self._epoch:
            return
        bulk = self._under_way.get(confirmation.number, ())
        if len(bulk) != len(confirmation.words):
            return  # It was given up, or this is the answer to another one.
        self._under_way.pop(confirmation.number, None)
        for waiting, word in zip(bulk, confirmation.words, strict=True):
            said = Confirmed(confirmation.epoch, Word(word), confirmation.session_ms)
            self._told.append((waiting, said))
        self._tell()
        self._forward_full()
        self._set_timers()

    def on_leader(self) -> None:
        """The leader or the epoch that this node knows has changed."""
        self._follow_epoch()
        if self._leader().leader == self._node_id:
            self.end()
        self._set_timers()

    def end(self) -> None:
        """Give up all that waits: this node leads, or stops."""
        while self._collected:
            self._told.append((self._collected.popleft(), None))
        for bulk in self._under_way.values():
            self._told.extend((waiting, None) for waiting in bulk)
        self._under_way.clear()
        self._tell()

    def _follow_epoch(self) -> None:
        """If the epoch is a new one, forward in it what isn't confirmed."""
        epoch = self._leader().epoch
        if epoch == self._epoch:
            return
        self._epoch, self._number = epoch, 0
        again = [waiting for bulk in self._under_way.values() for waiting in bulk]
        self._under_way.clear()
        self._collected.extendleft(reversed(again))

    # -- forwarding -----------------------------------------------------------------------

    def _forward_full(self) -> None:
        """Forward what had to wait for room, and has collected enough."""
        while len(self._collected) >= BULK_MAX and self._forward():
            pass

    def _forward(self) -> bool:
        """Forward one bulk, if there is a leader and room. Returns whether one went out."""
        leader = self._leader().leader
        if leader is None or leader == self._node_id or len(self._under_way) >= BULKS_MAX:
            return False
        count = min(BULK_MAX, len(self._collected))
        bulk = [self._collected.popleft() for _ in range(count)]
        self._number += 1
        contacts = tuple(waiting.contact for waiting in bulk)
        message = Bulk(self._life, self._epoch, self._number, contacts)
        if self._send(leader, encode_message(message)):
            self._under_way[self._number] = bulk
            return True
        self._told.extend((waiting, None) for waiting in bulk)
        self._tell()
        return False

    def _set_timers(self) -> None:
        if self._collected and self._due is None:
            self._due = self._clock.call_later(COLLECT_S, self._collected_long)
        if (self._collected or self._under_way) and self._limit is None:
            self._limit = self._clock.call_later(CONFIRM_S / 4, self._give_up_late)

    def _collected_long(self) -> None:
        self._due = None
        self._follow_epoch()
        while self._collected and self._forward():
            pass
        self._set_timers()

    def _give_up_late(self) -> None:
        """Give up what has waited too long. The oldest contact of a bulk decides for all of it."""
        self._limit = None
        now = self._clock.monotonic()
        while self._collected and self._collected[0].until <= now:
            self._told.append((self._collected.popleft(), None))
        for number, bulk in list(self._under_way.items()):
            if bulk[0].until <= now:
                del self._under_way[number]
                self._told.extend((waiting, None) for waiting in bulk)
        self._tell()
        self._set_timers()

    def _tell(self) -> None:
        """Tell each what became of its contact, over several passes if there are many."""
        while self._told and not self._share.spent():
            waiting, said = self._told.popleft()
            self._waiting -= 1
            if said is None:
                self.given_up += 1
            else:
                self.confirmed += 1
            waiting.on_word(said)
