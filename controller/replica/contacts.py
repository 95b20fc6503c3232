"""What a standby and the leader tell each other of brokers' contacts, and its bytes (ADR 0048).

Rule: bytes that are not of this shape count as not received. Each message is an array of the fields
below, in MessagePack, and fits into one frame of the controllers' links.
"""

from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

LIFE_BYTES: Final = 8
BULK_MAX: Final = 256
"""Contacts in one bulk: the leader notes them in about a millisecond."""


class ForwardedContact(NamedTuple):
    """One heartbeat of a broker, as far as the leader must know it."""

    broker_id: int
    broker_epoch: int
    applied_offset: int
    software: str | None
    """The release of the agent, at most 64 ASCII characters; None: it didn't say."""


class Bulk(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Contacts that a standby forwards together."""

    life: bytes
    """Of the standby's process."""
    epoch: int
    """In which it forwards them."""
    number: int
    """From 1 on, in each epoch and in each process."""
    contacts: tuple[ForwardedContact, ...]


class Word(IntEnum):
    """What the leader says that a broker is."""

    ONLINE = 0
    FENCED = 1
    UNDECIDED = 2
    """Something else, or no longer that process. The broker must ask the leader itself."""


class Confirmation(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The leader has noted a bulk."""

    life: bytes
    """As in the bulk."""
    epoch: int
    """Of the leader that says so."""
    number: int
    """As in the bulk."""
    session_ms: int
    """The length of the leader's sessions. A standby may be configured with another one."""
    words: bytes
    """A `Word` for each contact of the bulk, in order."""


def encode_message(message: Bulk | Confirmation) -> bytes:
    """Return the bytes of a message."""
    return msgspec.msgpack.encode(message)


def decode_bulk(data: bytes) -> Bulk | None:
    """Return a bulk; None: these bytes are none."""
    try:
        bulk = _BULKS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    sound = len(bulk.life) == LIFE_BYTES and len(bulk.contacts) <= BULK_MAX
    return bulk if sound else None


def decode_confirmation(data: bytes) -> Confirmation | None:
    """Return a confirmation; None: these bytes are none."""
    try:
        confirmation = _CONFIRMATIONS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    sound = confirmation.session_ms > 0 and all(word in _WORDS for word in confirmation.words)
    return confirmation if sound else None


_BULKS = msgspec.msgpack.Decoder(Bulk)
_CONFIRMATIONS = msgspec.msgpack.Decoder(Confirmation)
_WORDS = frozenset(Word)
