"""What a sealed block looks like, for those who read its head and open nothing (ADR 0031, 0093).

    magic `LGBS` (4 bytes), format 1 (1 byte), key id (8), nonce (12), AES-256-GCM of salt (16) and
    secret, with its tag (16)

A block about a subject has format 2, and the subject's number (8) behind the key id.

Rule: records import this module and never `metadata.sealing`. So whoever only replays a log needs
no library for ciphers.
"""

from typing import Final

from metadata.subject_keys import NUMBER_BYTES

KEY_ID_BYTES: Final = 8
MAGIC: Final = b"LGBS\x01"
SUBJECT_MAGIC: Final = b"LGBS\x02"
NONCE_BYTES: Final = 12
SALT_BYTES: Final = 16
_TAG_BYTES: Final = 16
NUMBER_AT: Final = len(MAGIC) + KEY_ID_BYTES
"""Where a subject's number stands."""
OVERHEAD: Final = NUMBER_AT + NONCE_BYTES + SALT_BYTES + _TAG_BYTES
"""How many bytes a block is longer than its secret."""


class SealingError(Exception):
    """A block can't be opened; the message says why."""


def key_id_of(block: bytes) -> bytes | None:
    """Return the id of the key that a block is sealed under; None: it is no sealed block."""
    longer = NUMBER_BYTES if block.startswith(SUBJECT_MAGIC) else 0
    if len(block) < OVERHEAD + longer or not block.startswith((MAGIC, SUBJECT_MAGIC)):
        return None
    return block[len(MAGIC) : NUMBER_AT]


def number_of_block(block: bytes) -> bytes | None:
    """Return the number of the subject that a sealed block is about; None: it is about none."""
    if len(block) < OVERHEAD + NUMBER_BYTES or not block.startswith(SUBJECT_MAGIC):
        return None
    return block[NUMBER_AT : NUMBER_AT + NUMBER_BYTES]
