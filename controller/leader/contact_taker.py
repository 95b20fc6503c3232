"""The leader notes the contacts that standbys forward, and confirms them (ADR 0048).

Rules, as in model/Leases.tla. Without any one of them a broker could serve while it is fenced:

- The leader takes a bulk of its own epoch only.
- It notes the contacts as if the brokers had come to it, and only then confirms the bulk.
- After a stall it confirms nothing before a majority has confirmed its leadership.
- It says what the brokers are when it confirms, and "online" of none whose fencing is decided.
"""

from collections.abc import Callable
from typing import Final

from controller.leader.heartbeats import Heartbeats
from controller.leader.leadership_check import LeadershipCheck
from controller.leader.proposer import Proposer
from controller.managers.broker_states import RegisteredState, state_of
from controller.replica.contacts import (
    Bulk,
    Confirmation,
    ForwardedContact,
    Word,
    decode_bulk,
    encode_message,
)
from metadata.image import MetadataImage

HELD_MAX: Final = 64
"""Bulks that wait for the leadership check. Further ones are dropped: standbys give them up."""


class ContactTaker:
    """Takes bulks, on the active controller."""

    def __init__(
        self,
        proposer: Proposer,
        heartbeats: Heartbeats,
        leadership_check: LeadershipCheck,
        session_s: float,
        committed: Callable[[], MetadataImage],
        log_end: Callable[[], int],
        send: Callable[[int, bytes], bool],
        on_rose: Callable[[], None],
    ) -> None:
        """`send` takes a node id and a confirmation. `on_rose`: some broker has applied more."""
        self._proposer = proposer
        self._heartbeats = heartbeats
        self._leadership_check = leadership_check
        self._session_ms = int(session_s * 1000)
        self._committed = committed
        self._log_end = log_end
        self._send = send
        self._on_rose = on_rose
        self._held = 0
        self.noted = 0
        """Contacts that standbys forwarded and that were noted here, since the start."""

    def take(self, node_id: int, data: bytes) -> None:
        """A voter forwards a bulk. The caller has looked for a stall of this process."""
        bulk = decode_bulk(data)
        if bulk is None or not self._is_ours(bulk) or self._held >= HELD_MAX:
            return
        if self._note(bulk):
            self._on_rose()
        self._held += 1

        def go_on() -> None:
            self._held -= 1
            self._confirm(node_id, bulk)

        if not self._leadership_check.holds(go_on):
            go_on()

    def _is_ours(self, bulk: Bulk) -> bool:
        """Return whether this node leads in the epoch of the bulk."""
        return self._proposer.pending is not None and bulk.epoch == self._proposer.epoch

    def _note(self, bulk: Bulk) -> bool:
        """Note the contacts. Returns whether some broker has applied more than it said before."""
        heartbeats, log_end, rose = self._heartbeats, self._log_end(), False
        for broker_id, broker_epoch, applied_offset, software in bulk.contacts:
            heartbeats.touch(broker_id, broker_epoch)
            if applied_offset <= log_end:
                rose |= heartbeats.report(broker_id, broker_epoch, applied_offset)
            heartbeats.note_software(broker_id, broker_epoch, software)
        self.noted += len(bulk.contacts)
        return rose

    def _confirm(self, node_id: int, bulk: Bulk) -> None:
        pending = self._proposer.pending
        if pending is None or not self._is_ours(bulk):
            return  # It leads no more.
        committed, decided = self._committed(), pending.image
        words = bytes(self._word(contact, committed, decided) for contact in bulk.contacts)
        confirmation = Confirmation(
            bulk.life, self._proposer.epoch, bulk.number, self._session_ms, words
        )
        self._send(node_id, encode_message(confirmation))

    def _word(
        self, contact: ForwardedContact, committed: MetadataImage, decided: MetadataImage
    ) -> Word:
        """Return what a broker is: online only if that is committed, and nothing else decided."""
        states = []
        for image in (committed, decided):
            broker = image.cluster.brokers.get(contact.broker_id)
            if broker is None or broker.broker_epoch != contact.broker_epoch:
                return Word.UNDECIDED
            states.append(state_of(broker))
        if self._heartbeats.is_being_fenced(contact.broker_id) or RegisteredState.FENCED in states:
            return Word.FENCED
        online = states == [RegisteredState.UNFENCED, RegisteredState.UNFENCED]
        return Word.ONLINE if online else Word.UNDECIDED
