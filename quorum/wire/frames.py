"""The frames between controllers: MessagePack arrays that begin (kind, term, directory id).

Rule: every frame carries the sender's current term and the sender's directory. So a receiver never
counts an answer of another term, or of another disk under the same node id.

`decode` refuses a frame that does not have exactly the shape of its kind, or that holds a number
outside its range, before any other code sees it. Terms end at `TERM_MAX`. All other numbers are
below 2^62 and not negative, except for -1 where the table says so. Each kind has a size limit, so a
cheap kind can't be made expensive to read.

| kind | further fields |
|---|---|
| APPEND | commit index, previous index, its term, entries (command, index, term) |
| ACK | match (-1: none), next (0: none), counted |
| SNAPSHOT | commit index, manifest |
| VOTE_REQUEST | last index, last term, for a transfer |
| VOTE | - |
| PREVOTE_REQUEST | round, last index, last term |
| PREVOTE | round, granted |
| TIMEOUT_NOW | - |
| PROBE | round |
| PROBE_ANSWER | round, last index, counted |
| FORMATION | formation |
| DIGEST | digest, our clock, your newest (-1: none), delivered, age (-1: no leader), counted |
| LIST, READ | request id, folder; request id, name, position, length |
| LISTED | request id, found, ((name, size), …) |
| PIECE | request id, total size (-1: no such file), data |
| REMEMBER | our incarnation, its durable position; yours, as we remember it (empty: nothing) |
"""

from enum import IntEnum
from typing import Any

from quorum.journal.lineage import INCARNATION_BYTES
from quorum.terms import is_term
from quorum.wire.codec import BadBytesError, dumps, loads
from quorum.wire.formats import OLDEST_FORMAT, TOLERANT_FORMAT
from runtime.links import FRAME_BYTES_MAX

Frame = tuple[Any, ...]
DIGEST_BYTES_MAX = 512
FILE_PIECE_BYTES_MAX = 1024 * 1024


class FrameKind(IntEnum):
    """The kind of a frame; the table above lists the fields of each."""

    APPEND = 1
    ACK = 2
    SNAPSHOT = 3
    VOTE_REQUEST = 4
    VOTE = 5
    PREVOTE_REQUEST = 6
    PREVOTE = 7
    TIMEOUT_NOW = 8
    PROBE = 9
    PROBE_ANSWER = 10
    FORMATION = 11
    DIGEST = 12
    LIST = 13
    LISTED = 14
    READ = 15
    PIECE = 16
    REMEMBER = 17


_FIELDS: dict[int, tuple[type, ...]] = {
    FrameKind.APPEND: (int, int, int, tuple),
    FrameKind.ACK: (int, int, bool),
    FrameKind.SNAPSHOT: (int, bytes),
    FrameKind.VOTE_REQUEST: (int, int, bool),
    FrameKind.VOTE: (),
    FrameKind.PREVOTE_REQUEST: (int, int, int),
    FrameKind.PREVOTE: (int, bool),
    FrameKind.TIMEOUT_NOW: (),
    FrameKind.PROBE: (int,),
    FrameKind.PROBE_ANSWER: (int, int, bool),
    FrameKind.FORMATION: (bytes,),
    FrameKind.DIGEST: (bytes, int, int, int, int, bool),
    FrameKind.LIST: (int, str),
    FrameKind.LISTED: (int, bool, tuple),
    FrameKind.READ: (int, str, int, int),
    FrameKind.PIECE: (int, int, bytes),
    FrameKind.REMEMBER: (bytes, int, bytes, int),
}
_SHAPES = {int(kind): (int, int, bytes, *fields) for kind, fields in _FIELDS.items()}
_INDEX_MAX = 2**62
_MAY_BE_NONE: dict[int, tuple[int, ...]] = {
    FrameKind.ACK: (3,),
    FrameKind.DIGEST: (5, 7),
    FrameKind.PIECE: (4,),
}
"""The fields, by place, that may be -1 for "none"."""
_NUMBERS = {
    kind: tuple(
        (place, -1 if place in _MAY_BE_NONE.get(kind, ()) else 0)
        for place, field in enumerate(shape)
        if field is int and place > 1
    )
    for kind, shape in _SHAPES.items()
}
"""For each kind: the places of its numbers, and the lowest value of each."""
_SMALL_BYTES_MAX = 64 * 1024
_BYTES_MAX: dict[int, int] = {
    FrameKind.APPEND: FRAME_BYTES_MAX,
    FrameKind.SNAPSHOT: FRAME_BYTES_MAX,
    FrameKind.LISTED: FRAME_BYTES_MAX,
    FrameKind.PIECE: FILE_PIECE_BYTES_MAX + 1024,
}
_FIXARRAY = 0x90
_KINDS_MAX = 128
"""Kinds are below this, so that MessagePack encodes a kind in one byte."""


def encode(kind: FrameKind, term: int, directory_id: bytes, *fields: Any) -> bytes:
    """Return a frame's bytes."""
    return dumps((int(kind), term, directory_id, *fields))


def is_of_a_newer_kind(data: bytes) -> bool:
    """Tell whether data begins like a frame of a kind that this build doesn't know."""
    is_array = len(data) >= 2 and data[0] & 0xF0 == _FIXARRAY
    return is_array and data[1] < _KINDS_MAX and data[1] not in _SHAPES


def kind_of(data: bytes) -> int | None:
    """Return a frame's kind without reading the rest; None when it does not begin like a frame."""
    if len(data) < 2 or data[0] & 0xF0 != _FIXARRAY:
        return None
    return data[1] if data[1] in _SHAPES else None


def decode(data: bytes, wire_format: int = OLDEST_FORMAT) -> Frame:
    """Read a frame of a link that speaks `wire_format`. Raises BadBytesError."""
    kind = kind_of(data)
    if kind is None:
        raise BadBytesError("not an array that begins with a known kind of frame")
    if len(data) > _SMALL_BYTES_MAX and len(data) > _BYTES_MAX.get(kind, 0):
        raise BadBytesError(f"a {FrameKind(kind).name} frame of {len(data)} bytes")
    frame: Frame = _known_fields(loads(data), kind, wire_format)
    if tuple(map(type, frame)) != _SHAPES[kind]:
        raise BadBytesError(f"a {FrameKind(kind).name} frame of a wrong shape")
    if not is_term(frame[1]) or len(frame[2]) != 16:
        raise BadBytesError("a frame with an impossible term or directory id")
    for place, least in _NUMBERS[kind]:
        if not least <= frame[place] < _INDEX_MAX:
            raise BadBytesError(f"a {FrameKind(kind).name} frame with an impossible number")
    if kind == FrameKind.APPEND:
        _check_append(frame)
    elif kind in (FrameKind.VOTE_REQUEST, FrameKind.PREVOTE_REQUEST):
        if frame[-2 if kind == FrameKind.VOTE_REQUEST else -1] > frame[1]:
            raise BadBytesError("a candidate whose last entry has a later term than the candidate")
    elif kind == FrameKind.LISTED:
        _check_listing(frame[5])
    elif kind == FrameKind.DIGEST and len(frame[3]) > DIGEST_BYTES_MAX:
        raise BadBytesError("a digest that is too long")
    elif kind == FrameKind.REMEMBER:
        _check_memory(frame)
    return frame


def _known_fields(frame: Frame, kind: int, wire_format: int) -> Frame:
    """Drop the fields that this build does not know, if the link's format allows them."""
    known = len(_SHAPES[kind])
    return frame[:known] if wire_format >= TOLERANT_FORMAT and len(frame) > known else frame


def _check_memory(frame: Frame) -> None:
    for incarnation in (frame[3], frame[5]):
        if len(incarnation) not in (0, INCARNATION_BYTES):
            raise BadBytesError("a memory with an incarnation id of a wrong length")


def _check_append(frame: Frame) -> None:
    """Raise BadBytesError unless indexes follow one another and terms never fall."""
    _, term, _, _, index, last_term, entries = frame
    if last_term > term:
        raise BadBytesError("an append whose previous entry has a later term than the append")
    for entry in entries:
        index += 1
        if type(entry) is not tuple or tuple(map(type, entry)) != (bytes, int, int):
            raise BadBytesError("an append with an entry of a wrong shape")
        if not entry[0] or entry[1] != index or not last_term <= entry[2] <= term:
            raise BadBytesError("an append whose entries don't follow one another")
        last_term = entry[2]


def _check_listing(listing: tuple[Any, ...]) -> None:
    for item in listing:
        if type(item) is not tuple or tuple(map(type, item)) != (str, int):
            raise BadBytesError("a listing with an item of a wrong shape")
        if not 0 <= item[1] < _INDEX_MAX:
            raise BadBytesError("a listing with an impossible size")
