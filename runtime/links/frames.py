"""The wire format between two peers.

Rule: anything that is not a whole frame with the right checksum ends the link. A length is compared
with the limit before it is used, and no memory is allocated for bytes that have not arrived.

A frame: length of the payload (4 bytes, big-endian), CRC-32C of the payload (4 bytes), CRC-32C of
these eight bytes (4 bytes), payload. The header has its own checksum so that the receiver finds a
flipped bit in the length at once. Otherwise it would take up to 16 MiB of the following frames for
this one's payload. On an open link the payloads are the owner's; an empty payload is the goodbye of
a sender that closes in order. While a link opens, the payloads are the notes below. Each begins
with the magic, so that a connection with another program ends at once.

HELLO   instance (8 bytes, a random number of the process), link (8 bytes, a random number that the
        node that dialled chose; the other node repeats it), ended (64 bytes: the numbers of the
        last links with this peer that ended here, then zeros), greeting (the rest)
READY   from the lower id, if it dialled: it accepts the greeting
OPEN    from the higher id: the connection is the link from now on
REFUSE  a sentence that says why not
"""

import struct
from collections.abc import Generator, Iterator
from enum import IntEnum
from typing import NamedTuple

import google_crc32c

from runtime.links.interface import FRAME_BYTES_MAX

HEADER = struct.Struct(">III")
_SAID = struct.Struct(">II")
GREETING_BYTES_MAX = 4096
NOTE_BYTES_MAX = 5000
SENTENCE_BYTES_MAX = 500
MAGIC = b"QLK2"
ENDED_BYTES = 64
_HELLO = struct.Struct(">8s8s64s")


class BadFrameError(Exception):
    """What arrived is no valid frame; the message says why."""


class Note(IntEnum):
    """The messages while a link opens."""

    HELLO = 1
    READY = 2
    OPEN = 3
    REFUSE = 4


class Hello(NamedTuple):
    """The body of a HELLO; see the head of this file."""

    instance: bytes
    link: bytes
    ended: bytes
    greeting: bytes

    def says_ended(self, link: bytes) -> bool:
        """Tell whether the sender says that this link ended on its side."""
        return link in {self.ended[at : at + 8] for at in range(0, ENDED_BYTES, 8)}


def framed(payload: bytes) -> bytes:
    """Return the frame around a payload."""
    return header(len(payload), google_crc32c.value(payload)) + payload


def header(length: int, checksum: int) -> bytes:
    """Return the header of a payload with this length and checksum."""
    said = _SAID.pack(length, checksum)
    return said + int(google_crc32c.value(said)).to_bytes(4, "big")


GOODBYE = framed(b"")


def framed_note(note: Note, body: bytes = b"") -> bytes:
    """Return the frame around a note."""
    return framed(MAGIC + bytes((note,)) + body)


def framed_hello(hello: Hello) -> bytes:
    """Return the frame around a HELLO."""
    fixed = _HELLO.pack(hello.instance, hello.link, hello.ended)
    return framed_note(Note.HELLO, fixed + hello.greeting)


def framed_refusal(sentence: str) -> bytes:
    """Return the frame around a REFUSE."""
    return framed_note(Note.REFUSE, sentence.encode()[:SENTENCE_BYTES_MAX])


def parse_note(payload: bytes) -> tuple[Note, bytes]:
    """Return the kind of a note and its body. Raises BadFrameError."""
    if payload[:4] != MAGIC or len(payload) < 5:
        raise BadFrameError("the other side does not speak our protocol, or another version of it")
    try:
        return Note(payload[4]), payload[5:]
    except ValueError:
        raise BadFrameError(f"an unknown note {payload[4]}") from None


def parse_hello(body: bytes) -> Hello:
    """Return the parts of a HELLO's body. Raises BadFrameError."""
    if len(body) < _HELLO.size or len(body) > _HELLO.size + GREETING_BYTES_MAX:
        raise BadFrameError(f"a greeting of {len(body)} bytes")
    instance, link, ended = _HELLO.unpack_from(body)
    return Hello(instance, link, ended, body[_HELLO.size :])


class LinkFrameReader:
    """Turns chunks of a stream into payloads."""

    def __init__(self, cap: int = NOTE_BYTES_MAX) -> None:
        self.cap = cap
        """The longest payload that is accepted, in bytes. May be changed between frames."""
        self._rest = bytearray()
        self._needed = HEADER.size

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the payloads that this chunk completes. Raises BadFrameError."""
        if not self._rest:
            used = yield from self._parse(chunk)
            self._rest += chunk if used == 0 else chunk[used:]
            return
        self._rest += chunk
        if len(self._rest) < self._needed:
            return
        whole = bytes(self._rest)
        self._rest.clear()
        used = yield from self._parse(whole)
        self._rest += whole[used:]

    def _parse(self, data: bytes) -> Generator[bytes, None, int]:
        """Yield payloads; return how many bytes of `data` they and their headers take."""
        position, end = 0, len(data)
        while end - position >= HEADER.size:
            length, checksum, sealed = HEADER.unpack_from(data, position)
            if length > self.cap:
                raise BadFrameError(f"a frame of {length} bytes, where {self.cap} are allowed")
            if google_crc32c.value(data[position : position + _SAID.size]) != sealed:
                raise BadFrameError("a header with a wrong checksum")
            start = position + HEADER.size
            if end - start < length:
                self._needed = HEADER.size + length
                return position
            payload = data[start : start + length]
            if google_crc32c.value(payload) != checksum:
                raise BadFrameError("a frame with a wrong checksum")
            position = start + length
            yield payload
        self._needed = HEADER.size
        return position


assert FRAME_BYTES_MAX + HEADER.size < 2**32
