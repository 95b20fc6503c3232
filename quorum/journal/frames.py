"""Frames: what a journal's segments consist of.

Rule: a frame says its kind, its place, and what was durable when it was written. Two CRC-32C
checksums prove it: one over the header, and inside the header one over the body. The header's
checksum starts from a seed that names the journal (cluster, node, directory) and the segment. So
bytes of another node, another segment, or another place in the same segment never pass for a frame
of this one.

A frame's *position* is the number of frame bytes ever written before it, counted across segments
and restarts. A *synced position* P means: every frame that ends at or before P was durable when
this frame was written. Only that distinguishes damage from a torn tail. So it is read from every
header whose own checksum holds, even when the body is lost.

Header (little endian, 36 bytes): magic `QRJ1`, kind, three zero bytes, body length, position,
synced position, body's CRC-32C, header's CRC-32C.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import google_crc32c

MAGIC = b"QRJ1"
_UNSEALED = struct.Struct("<4sB3xIQQI")
_HEADER = struct.Struct("<4sB3xIQQII")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size


class JournalFrameKind(IntEnum):
    """The kind of a frame."""

    OPENING = 1
    """First in every segment: whose journal it is. Its position is where the segment begins."""
    STATE = 2
    """The whole state except the entries, so that older segments can be removed."""
    ENTRY = 3
    TRUNCATE_FROM = 4
    """Entries with this index and above are void; 0 voids all."""
    VOTE = 5
    """Term and vote."""
    COMMIT = 6
    """The commit index; nobody waits for it to be durable."""
    FORMATION = 7
    """The voters of the first start; opaque here."""
    COMPACTION = 8
    """Entries below this index are not needed."""
    NOTE = 9
    """Nothing but the synced position in its header."""
    REPAIRED = 10
    """A repair after damage: the node may vote again, in the incarnation with this id."""
    INCARNATION = 11
    """A process begins: its id (see `lineage`)."""
    KNOWN = 12
    """What the peers last told of themselves; nobody waits for it to be durable."""


class JournalFrame(NamedTuple):
    """One frame, as read."""

    kind: int
    position: int
    synced: int
    end: int
    """The position behind it."""
    body: bytes


def encode_header(kind: int, position: int, synced: int, body: bytes, seed: int) -> bytes:
    """Return the header for `body`, sealed with the segment's seed."""
    unsealed = _UNSEALED.pack(MAGIC, kind, len(body), position, synced, google_crc32c.value(body))
    return unsealed + _CRC.pack(google_crc32c.extend(seed, unsealed))


class JournalFrameReader:
    """Reads the frames of one segment in order, up to the first bad byte.

    `shift` is position minus offset in the file. A frame at another place than its position says is
    bad. After the iteration `offset` is the first byte that is not part of a good frame, and
    `problem` says what is wrong there (empty at a clean end).
    """

    def __init__(self, data: bytes, offset: int, shift: int, seed: int) -> None:
        self._data = data
        self._seed = seed
        self._shift = shift
        self.offset = offset
        self.problem = ""

    def __iter__(self) -> Iterator[JournalFrame]:
        data, size = self._data, len(self._data)
        unpack, crc = _HEADER.unpack_from, google_crc32c.value
        extend, seed, shift = google_crc32c.extend, self._seed, self._shift
        offset = self.offset
        while offset < size:
            start = offset + HEADER_BYTES
            if start > size:
                self.problem = "the file ends within a header"
                return
            magic, kind, length, position, synced, body_crc, header_crc = unpack(data, offset)
            if magic != MAGIC or extend(seed, data[offset : start - 4]) != header_crc:
                self.problem = "a header is bad"
                return
            if position - offset != shift:
                self.problem = "a frame stands at the wrong place"
                return
            body = data[start : start + length]
            if len(body) != length:
                self.problem = "the file ends within a body"
                return
            if crc(body) != body_crc:
                self.problem = "a body is bad"
                return
            offset = start + length
            self.offset = offset
            yield JournalFrame(kind, position, synced, offset + shift, body)


class FoundHeader(NamedTuple):
    """A good header found behind bad bytes."""

    kind: int
    offset: int
    position: int
    synced: int
    end: int
    """Position behind the frame."""
    body: bytes | None
    """None when the body is bad or cut off."""


def find_frames(data: bytes, offset: int, seed: int) -> Iterator[FoundHeader]:
    """Find every good header from `offset` on, whatever lies between them."""
    while (offset := data.find(MAGIC, offset)) >= 0:
        start = offset + HEADER_BYTES
        if start > len(data):
            return
        _, kind, length, position, synced, body_crc, header_crc = _HEADER.unpack_from(data, offset)
        if google_crc32c.extend(seed, data[offset : start - 4]) == header_crc:
            body: bytes | None = data[start : start + length]
            if body is None or len(body) != length or google_crc32c.value(body) != body_crc:
                body = None
            end = position + HEADER_BYTES + length
            yield FoundHeader(kind, offset, position, synced, end, body)
        offset += 1
