"""Sealed blocks as texts, where a field of a record is a string (ADR 0031, 0093).

Rule: a value that begins with `SEALED_TEXT` holds a block. Nobody can write such a value in clear.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from metadata.sealed_blocks import SealingError, number_of_block

SEALED_TEXT: Final = "logberg-sealed:"
"""Behind it stands a sealed block in base64."""


def text_of_block(block: bytes) -> str:
    """Return the text that holds a sealed block."""
    return SEALED_TEXT + urlsafe_b64encode(block).decode()


def block_of_text(value: str) -> bytes | None:
    """Return the sealed block in a text; None: the value is in clear.

    Raises SealingError for a text that says that it holds a block, and doesn't.
    """
    if not value.startswith(SEALED_TEXT):
        return None
    try:
        return urlsafe_b64decode(value.removeprefix(SEALED_TEXT))
    except ValueError:
        raise SealingError("its text is not base64") from None


def number_of_text(value: str) -> bytes | None:
    """Return the number of the subject that a sealed text is about.

    None: it is in clear, or about none, or it can't be read.
    """
    try:
        block = block_of_text(value)
    except SealingError:
        return None
    return None if block is None else number_of_block(block)
