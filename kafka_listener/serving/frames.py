"""Splits what a connection brings into Kafka's frames: a length of four bytes, then so many bytes.

Rule: a length is compared with the limit before anything is kept for it, and nothing is allocated
for bytes that have not arrived.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from kafka_listener.wire.errors import WireError

_LENGTH: Final = Struct(">i")
PIECE_BYTES: Final = 256 * 1024
"""The most of a long answer that is given to the socket at once, behind its first part."""


def framed(*parts: bytes) -> bytes:
    """Return one frame with these parts."""
    return b"".join((_LENGTH.pack(sum(map(len, parts))), *parts))


def framed_parts(head: bytes, body: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the pieces of one frame: the first has its length, the head and the first part."""
    size = len(head) + sum(map(len, body))
    yield b"".join((_LENGTH.pack(size), head, *body[:1]))
    for part in body[1:]:
        for start in range(0, len(part), PIECE_BYTES):
            yield part[start : start + PIECE_BYTES]


class FrameBuffer:
    """The bytes of one connection that no request has taken yet."""

    def __init__(self) -> None:
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> None:
        """Append bytes that have arrived."""
        self._data += data

    def size(self, most: int) -> int | None:
        """Return the length of the next frame; None while its four bytes are not there.

        Raises WireError if it is longer than `most` or negative.
        """
        if len(self._data) < _LENGTH.size:
            return None
        size: int = _LENGTH.unpack_from(self._data)[0]
        if not 0 <= size <= most:
            raise WireError(f"a request of {size} bytes is not accepted here: at most {most}")
        return size

    def take(self, most: int) -> bytes | None:
        """Return the next frame without its length; None while it is not whole."""
        size = self.size(most)
        if size is None or len(self._data) < _LENGTH.size + size:
            return None
        end = _LENGTH.size + size
        frame = bytes(memoryview(self._data)[_LENGTH.size : end])
        del self._data[:end]
        return frame
