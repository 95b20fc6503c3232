"""The frames between controllers: MessagePack arrays that begin (kind, term, directory id).

Rule: the *stamp* (the sender's current term) and the sender's directory stand in every frame, so
that an answer of another term, or of another disk under the same node id, is never counted. A
frame that isn't exactly of its shape is refused before anything looks at it.

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
| DIGEST | digest, our clock, your newest (-1: none), handed up, age (-1: no leader), counted |
| LIST, READ | request id, folder; request id, name, position, length |
| LISTED | request id, found, ((name, size), …) |
| PIECE | request id, total size (-1: no such file), data |
| REMEMBER | our life, its durable position; yours, as we remember it (empty: nothing) |
"""

from enum import IntEnum
from typing import Any

from quorum.codec import BadBytesError, dumps, loads
from quorum.config import DIGEST_BYTES_MAX
from quorum.journal.lineage import LIFE_BYTES

Entry = tuple[bytes, int, int]
"""Command, index, term: the core's own shape."""
Frame = tuple[Any, ...]


class Kind(IntEnum):
    """What a frame says."""

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
    Kind.APPEND: (int, int, int, tuple),
    Kind.ACK: (int, int, bool),
    Kind.SNAPSHOT: (int, bytes),
    Kind.VOTE_REQUEST: (int, int, bool),
    Kind.VOTE: (),
    Kind.PREVOTE_REQUEST: (int, int, int),
    Kind.PREVOTE: (int, bool),
    Kind.TIMEOUT_NOW: (),
    Kind.PROBE: (int,),
    Kind.PROBE_ANSWER: (int, int, bool),
    Kind.FORMATION: (bytes,),
    Kind.DIGEST: (bytes, int, int, int, int, bool),
    Kind.LIST: (int, str),
    Kind.LISTED: (int, bool, tuple),
    Kind.READ: (int, str, int, int),
    Kind.PIECE: (int, int, bytes),
    Kind.REMEMBER: (bytes, int, bytes, int),
}
_SHAPES = {int(kind): (int, int, bytes, *fields) for kind, fields in _FIELDS.items()}
_INDEX_MAX = 2**62


def encode(kind: Kind, term: int, directory_id: bytes, *fields: Any) -> bytes:
    """Return a frame's bytes."""
    return dumps((int(kind), term, directory_id, *fields))


def decode(data: bytes) -> Frame:
    """Read a frame. Raises BadBytesError."""
    frame = loads(data)
    if type(frame) is not tuple or not frame:
        raise BadBytesError("a frame is not an array")
    kind = frame[0]
    shape = _SHAPES.get(kind) if type(kind) is int else None
    if shape is None:
        raise BadBytesError("a frame of unknown kind")
    if tuple(map(type, frame)) != shape:
        raise BadBytesError(f"a {Kind(kind).name} frame of a wrong shape")
    if not 0 <= frame[1] < _INDEX_MAX or len(frame[2]) != 16:
        raise BadBytesError("a frame with an impossible stamp")
    if kind == Kind.APPEND:
        _check_append(frame)
    elif kind == Kind.LISTED:
        _check_listing(frame[5])
    elif kind == Kind.DIGEST and len(frame[3]) > DIGEST_BYTES_MAX:
        raise BadBytesError("a digest that is too long")
    elif kind == Kind.REMEMBER:
        _check_memory(frame)
    return frame


def _check_memory(frame: Frame) -> None:
    for life, position in (frame[3:5], frame[5:7]):
        if len(life) not in (0, LIFE_BYTES) or not 0 <= position < _INDEX_MAX:
            raise BadBytesError("a memory of an impossible life")


def _check_append(frame: Frame) -> None:
    """Raise unless the entries follow one another, in terms that never fall."""
    _, term, _, commit, index, last_term, entries = frame
    if not (0 <= commit < _INDEX_MAX and 0 <= index < _INDEX_MAX and 0 <= last_term <= term):
        raise BadBytesError("an append with impossible numbers")
    for entry in entries:
        index += 1
        if type(entry) is not tuple or tuple(map(type, entry)) != (bytes, int, int):
            raise BadBytesError("an append with a strange entry")
        if not entry[0] or entry[1] != index or not last_term <= entry[2] <= term:
            raise BadBytesError("an append whose entries don't follow one another")
        last_term = entry[2]


def _check_listing(listing: tuple[Any, ...]) -> None:
    for item in listing:
        if type(item) is not tuple or tuple(map(type, item)) != (str, int):
            raise BadBytesError("a listing with a strange item")
