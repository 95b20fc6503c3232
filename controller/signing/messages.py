"""What controllers tell each other about heads and keys, in the heartbeats' small messages.

Rule: a message has one form. What can't be read is of another release, and is passed over. The
first byte tells the two kinds apart, because one that waits is replaced by the next of its kind.

    0    4, the kind of the message
    1    1 if the sender leads and asks the others to sign this size, too; else 0
    2    size         u64
    10   root         32 bytes
    42   public key   32 bytes
    74   signature    64 bytes

    0    5, the kind of the message
    1    new public key   32 bytes
    33   signature by the key before   64 bytes
    97   signature by the new key      64 bytes
"""

import struct
from typing import Final

import msgspec

HEADS: Final = b"\x04"
"""The first byte of messages about heads."""
KEYS: Final = b"\x05"
"""The first byte of messages about keys."""
_SIGNED: Final = struct.Struct(">BBQ32s32s64s")
_ROTATED: Final = struct.Struct(">B32s64s64s")


class HeadSigned(msgspec.Struct, frozen=True):
    """A controller has signed the head of its tree at a size."""

    asks: bool
    size: int
    root: bytes
    public: bytes
    signature: bytes

    def encode(self) -> bytes:
        """Return the message."""
        numbers = (HEADS[0], self.asks, self.size)
        return _SIGNED.pack(*numbers, self.root, self.public, self.signature)


class KeyRotation(msgspec.Struct, frozen=True):
    """A controller has drawn another key; the one before and the new one have signed that."""

    public: bytes
    old_signature: bytes
    new_signature: bytes

    def encode(self) -> bytes:
        """Return the message."""
        return _ROTATED.pack(KEYS[0], self.public, self.old_signature, self.new_signature)


def read_told(data: bytes) -> HeadSigned | KeyRotation | None:
    """Return what a peer told; None if it can't be read."""
    if len(data) == _ROTATED.size and data[:1] == KEYS:
        return KeyRotation(*_ROTATED.unpack(data)[1:])
    if len(data) != _SIGNED.size or data[:1] != HEADS or data[1] > 1:
        return None
    _, asks, *fields = _SIGNED.unpack(data)
    return HeadSigned(bool(asks), *fields)
