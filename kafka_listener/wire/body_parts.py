"""The bytes of a message as parts, so that a long message is never copied as a whole.

Rule: encoders append to `last`, and ask for it anew each time. `settle` closes it when it is long.
"""

from typing import Final

PART_BYTES: Final = 128 * 1024
"""A part that has so many bytes is closed."""
Parts = tuple[bytes, ...]


class BodyParts:
    """Bytes that grow at their end."""

    def __init__(self) -> None:
        self.last = bytearray()
        self.closed: list[bytes] = []
        """The parts before it."""

    def settle(self) -> None:
        """Close the last part if it is long enough."""
        if len(self.last) >= PART_BYTES:
            self._close()

    def add(self, others: "BodyParts") -> None:
        """Append all bytes of `others`, which get no more bytes."""
        if others.closed:
            self._close()
            self.closed += others.closed
        self.last += others.last

    def done(self) -> Parts:
        """Return the parts. No more bytes come."""
        self._close()
        return tuple(self.closed)

    def _close(self) -> None:
        if self.last:
            self.closed.append(bytes(self.last))
            self.last = bytearray()
