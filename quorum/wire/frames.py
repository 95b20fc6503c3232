"""Reads and writes the frames between controllers: MessagePack arrays of a frame's fields.

Rule: `decode` refuses a frame that does not have exactly the shape of its kind
(`quorum.wire.frame_types`), or that holds a number outside its range, before any other code sees
it. Terms end at `TERM_MAX`. All other numbers are below 2^62 and not negative, except where -1
means "none". Each kind has a size limit, so a cheap kind can't be made expensive to read.
"""

from enum import IntEnum
from typing import Any, cast, get_origin, get_type_hints

from quorum.journal.lineage import INCARNATION_BYTES
from quorum.terms import is_term
from quorum.wire import frame_types as types
from quorum.wire.codec import BadBytesError, dumps, loads
from quorum.wire.formats import OLDEST_FORMAT, TOLERANT_FORMAT
from quorum.wire.frame_types import Frame
from runtime.links.interface import FRAME_BYTES_MAX

DIGEST_BYTES_MAX = 512
CONTACTS_BYTES_MAX = 60 * 1024
FILE_PIECE_BYTES_MAX = 1024 * 1024


class FrameKind(IntEnum):
    """The kind of a frame, its first field."""

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
    CONTACTS = 18
    CONFIRMED = 19
    VOTERS = 20


_TYPES: dict[int, type[Any]] = {
    FrameKind.APPEND: types.AppendFrame,
    FrameKind.ACK: types.AckFrame,
    FrameKind.SNAPSHOT: types.SnapshotFrame,
    FrameKind.VOTE_REQUEST: types.VoteRequestFrame,
    FrameKind.VOTE: types.VoteFrame,
    FrameKind.PREVOTE_REQUEST: types.PrevoteRequestFrame,
    FrameKind.PREVOTE: types.PrevoteFrame,
    FrameKind.TIMEOUT_NOW: types.TimeoutNowFrame,
    FrameKind.PROBE: types.ProbeFrame,
    FrameKind.PROBE_ANSWER: types.ProbeAnswerFrame,
    FrameKind.FORMATION: types.FormationFrame,
    FrameKind.DIGEST: types.DigestFrame,
    FrameKind.LIST: types.ListFrame,
    FrameKind.LISTED: types.ListedFrame,
    FrameKind.READ: types.ReadFrame,
    FrameKind.PIECE: types.PieceFrame,
    FrameKind.REMEMBER: types.RememberFrame,
    FrameKind.CONTACTS: types.ContactsFrame,
    FrameKind.CONFIRMED: types.ConfirmedFrame,
    FrameKind.VOTERS: types.VotersFrame,
}
_SHAPES: dict[int, tuple[type, ...]] = {
    int(kind): tuple(get_origin(hint) or hint for hint in get_type_hints(frame_type).values())
    for kind, frame_type in _TYPES.items()
}
_OPTIONAL: dict[int, tuple[Any, ...]] = {
    int(kind): tuple(frame_type._field_defaults.values()) for kind, frame_type in _TYPES.items()
}
"""The last fields that a frame of each kind may lack, by what stands for them then."""
_INDEX_MAX = 2**62
_MAY_BE_NONE = {"match", "echo_us", "age_us", "total_size"}
"""The fields that may be -1 for "none"."""
_NUMBERS = {
    kind: tuple(
        (place, -1 if name in _MAY_BE_NONE else 0)
        for place, name in enumerate(_TYPES[kind]._fields)
        if shape[place] is int and place > 1
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
    frame = _all_fields(loads(data), kind, wire_format)
    if tuple(map(type, frame)) != _SHAPES[kind]:
        raise BadBytesError(f"a {FrameKind(kind).name} frame of a wrong shape")
    if not is_term(frame[1]) or len(frame[2]) != 16:
        raise BadBytesError("a frame with an impossible term or directory id")
    for place, least in _NUMBERS[kind]:
        if not least <= frame[place] < _INDEX_MAX:
            raise BadBytesError(f"a {FrameKind(kind).name} frame with an impossible number")
    typed = cast("Frame", _TYPES[kind](*frame))
    _check(typed)
    return typed


def _check(frame: Frame) -> None:
    """Check what the types of the fields don't say. Raises BadBytesError."""
    match frame:
        case types.AppendFrame():
            _check_append(frame)
        case types.VoteRequestFrame() | types.PrevoteRequestFrame() if frame.last_term > frame.term:
            raise BadBytesError("a candidate whose last entry has a later term than the candidate")
        case types.AckFrame() if len(frame.incarnation) not in (0, INCARNATION_BYTES):
            raise BadBytesError("an acknowledgement with an incarnation id of a wrong length")
        case types.ListedFrame():
            _check_listing(frame.listing)
        case types.DigestFrame() if len(frame.digest) > DIGEST_BYTES_MAX:
            raise BadBytesError("a digest that is too long")
        case types.RememberFrame():
            for incarnation in (frame.incarnation, frame.your_incarnation):
                if len(incarnation) not in (0, INCARNATION_BYTES):
                    raise BadBytesError("a memory with an incarnation id of a wrong length")
            if len(frame.your_directory_id) not in (0, 16):
                raise BadBytesError("a memory of a folder whose id has a wrong length")


def _all_fields(frame: tuple[Any, ...], kind: int, wire_format: int) -> tuple[Any, ...]:
    """Drop the fields that this build does not know, if the link's format allows them.

    Add those that the frame may lack.
    """
    lacking = len(_SHAPES[kind]) - len(frame)
    if lacking < 0:
        return frame[:lacking] if wire_format >= TOLERANT_FORMAT else frame
    optional = _OPTIONAL[kind]
    if 0 < lacking <= len(optional):
        return (*frame, *optional[-lacking:])
    return frame


def _check_append(frame: types.AppendFrame) -> None:
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
