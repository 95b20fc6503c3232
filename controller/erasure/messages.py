"""What controllers tell each other about trees of subjects' keys, with their heartbeats.

Rule: a message has one form. What can't be read is of another release, and is passed over. No
message holds a key.

    0    7, the kind of the message
    1    1: the leader asks who holds a tree. 2: the sender holds it, durably
    2    the tree's id, 8 bytes
"""

from enum import IntEnum
from typing import Final, NamedTuple

from metadata.subject_keys import ID_BYTES

SUBJECT_KEYS: Final = b"\x07"
"""The first byte of messages about subjects' keys."""


class Telling(IntEnum):
    """What a message says."""

    OFFERED = 1
    HELD = 2


class KeysTold(NamedTuple):
    """A message about a tree."""

    telling: Telling
    keys_id: bytes

    def encode(self) -> bytes:
        """Return the message."""
        return SUBJECT_KEYS + bytes([self.telling]) + self.keys_id


def read_told(data: bytes) -> KeysTold | None:
    """Return what a peer told; None if it can't be read."""
    if len(data) != 2 + ID_BYTES or data[:1] != SUBJECT_KEYS or data[1] not in set(Telling):
        return None
    return KeysTold(Telling(data[1]), data[2:])
