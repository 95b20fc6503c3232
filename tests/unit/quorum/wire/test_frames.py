"""Frames: `decode` returns what `encode` wrote, and refuses everything else."""

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.wire import codec
from quorum.wire.codec import BadBytesError
from quorum.wire.frames import FrameKind, decode, encode
from tests.unit.quorum.bench import entry

D = b"d" * 16
FRAMES = [
    (FrameKind.APPEND, (7, 3, 2, (entry(4, 2), entry(5, 3)))),
    (FrameKind.APPEND, (7, 3, 2, ())),
    (FrameKind.ACK, (-1, 5, True, b"0001a-life-1", 5)),
    (FrameKind.ACK, (9, 0, True, b"", 0)),
    (FrameKind.SNAPSHOT, (1, b"manifest")),
    (FrameKind.VOTE_REQUEST, (5, 2, False)),
    (FrameKind.VOTE, ()),
    (FrameKind.PREVOTE_REQUEST, (1, 5, 2)),
    (FrameKind.PREVOTE, (1, True)),
    (FrameKind.TIMEOUT_NOW, ()),
    (FrameKind.PROBE, (4,)),
    (FrameKind.PROBE_ANSWER, (4, 9, True)),
    (FrameKind.FORMATION, (b"f",)),
    (FrameKind.DIGEST, (b"d" * 512, 7_000_000, -1, 9, -1, True)),
    (FrameKind.LIST, (1, "log")),
    (FrameKind.LISTED, (1, True, (("a", 5), ("b", 6)))),
    (FrameKind.READ, (1, "log/a", 0, 100)),
    (FrameKind.PIECE, (1, -1, b"")),
    (FrameKind.REMEMBER, (b"0001a-life-1", 5, b"", 0, b"")),
    (FrameKind.REMEMBER, (b"", 0, b"0001a-life-1", 5, D)),
    (FrameKind.CONTACTS, (b"contacts",)),
    (FrameKind.CONFIRMED, (b"confirmed",)),
    (FrameKind.VOTERS, (70, b"voters")),
]


@pytest.mark.parametrize(("kind", "fields"), FRAMES)
def test_a_frame_comes_back_as_it_was(kind: FrameKind, fields: tuple[object, ...]) -> None:
    assert decode(encode(kind, 3, D, *fields)) == (kind, 3, D, *fields)


def test_an_acknowledgement_of_format_1_tells_nothing_of_its_folder() -> None:
    frame = decode(encode(FrameKind.ACK, 3, D, 9, 0, True))
    assert frame == (FrameKind.ACK, 3, D, 9, 0, True, b"", 0)


def test_a_memory_of_format_1_does_not_say_whose_folder_it_is_about() -> None:
    frame = decode(encode(FrameKind.REMEMBER, 3, D, b"0001a-life-1", 5, b"", 0))
    assert frame == (FrameKind.REMEMBER, 3, D, b"0001a-life-1", 5, b"", 0, b"")


def test_every_kind_is_in_the_list_above() -> None:
    assert {kind for kind, _ in FRAMES} == set(FrameKind)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        codec.dumps([]),
        codec.dumps([99, 1, D]),
        codec.dumps([True, 1, D]),
        codec.dumps([5.0, 1, D]),
        codec.dumps({"kind": 5}),
        encode(FrameKind.VOTE, -1, D),
        encode(FrameKind.VOTE, 2**31, D),
        encode(FrameKind.VOTE, 2**62 - 1, D),
        encode(FrameKind.VOTE, 2**63, D),
        encode(FrameKind.ACK, 1, D, -2, 0, True),
        encode(FrameKind.ACK, 1, D, -1, -1, True),
        encode(FrameKind.ACK, 1, D, 2**62, 0, True),
        encode(FrameKind.ACK, 1, D, 9, 0),
        encode(FrameKind.ACK, 1, D, 9, 0, True, bytes(11), 5),
        encode(FrameKind.ACK, 1, D, 9, 0, True, bytes(12), 2**62),
        encode(FrameKind.ACK, 1, D, 9, 0, True, bytes(12), 5, 6),
        encode(FrameKind.SNAPSHOT, 1, D, -1, b""),
        encode(FrameKind.VOTE_REQUEST, 3, D, -1, 2, False),
        encode(FrameKind.VOTE_REQUEST, 3, D, 1, 4, False),
        encode(FrameKind.PREVOTE_REQUEST, 3, D, 1, 1, 4),
        encode(FrameKind.PREVOTE_REQUEST, 3, D, -1, 1, 3),
        encode(FrameKind.PROBE, 3, D, 2**62),
        encode(FrameKind.PROBE_ANSWER, 3, D, 1, -1, True),
        encode(FrameKind.DIGEST, 1, D, b"d", -1, 0, 0, 0, True),
        encode(FrameKind.DIGEST, 1, D, b"d", 0, 0, 0, -2, True),
        encode(FrameKind.DIGEST, 1, D, b"d", 0, 0, 2**62, 0, True),
        encode(FrameKind.READ, 1, D, 1, "log/a", -1, 5),
        encode(FrameKind.READ, 1, D, 1, "log/a", 2**63, 5),
        encode(FrameKind.READ, 1, D, 1, "log/a", 0, -1),
        encode(FrameKind.PIECE, 1, D, 1, -2, b""),
        encode(FrameKind.PIECE, 1, D, 1, 1, bytes(2**21)),
        encode(FrameKind.FORMATION, 1, D, bytes(2**17)),
        encode(FrameKind.REMEMBER, 1, D, bytes(12), 2**62, b"", 0),
        encode(FrameKind.REMEMBER, 1, D, bytes(11), 0, b"", 0),
        encode(FrameKind.REMEMBER, 1, D, bytes(12), 0, b"", 0, b"short"),
        encode(FrameKind.REMEMBER, 1, D, bytes(12), 0, b"", 0, D, 1),
        encode(FrameKind.LISTED, 1, D, 1, True, (("a", -1),)),
        encode(FrameKind.LISTED, 1, D, 1, True, (("a", 2**62),)),
        b"\xdc\x00\x03" + encode(FrameKind.VOTE, 1, D)[1:],
        encode(FrameKind.VOTE, 1, b"short"),
        encode(FrameKind.VOTE, 1, D, 1),
        encode(FrameKind.PREVOTE, 1, D, 1),
        encode(FrameKind.PREVOTE, 1, D, 1, 1),
        encode(FrameKind.PREVOTE, 1, D, True, True),
        encode(FrameKind.APPEND, 3, D, -1, 3, 2, ()),
        encode(FrameKind.APPEND, 3, D, 1, 2**62, 2, ()),
        encode(FrameKind.APPEND, 3, D, 1, 3, 4, ()),
        encode(FrameKind.APPEND, 3, D, 1, 3, 2, (entry(5, 2),)),
        encode(FrameKind.APPEND, 3, D, 1, 3, 2, (entry(4, 1),)),
        encode(FrameKind.APPEND, 3, D, 1, 3, 2, (entry(4, 4),)),
        encode(FrameKind.APPEND, 3, D, 1, 3, 2, ((b"", 4, 2),)),
        encode(FrameKind.APPEND, 3, D, 1, 3, 2, (("text", 4, 2),)),
        encode(FrameKind.APPEND, 3, D, 1, 3, 2, (7,)),
        encode(FrameKind.DIGEST, 1, D, b"d" * 513, 0, 0, 0, 0, True),
        encode(FrameKind.LISTED, 1, D, 1, True, ((b"a", 5),)),
        encode(FrameKind.LISTED, 1, D, 1, True, (5,)),
        encode(FrameKind.VOTE, 1, D) + b"\0",
        encode(FrameKind.VOTE, 1, D)[:-1],
        b"\x91" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        msgpack.packb(msgpack.Timestamp(1)),
        msgpack.packb([5, 1, msgpack.ExtType(7, D)]),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(BadBytesError):
        decode(data)


def test_more_than_a_frame_may_hold_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadBytesError, match="more than"):
        codec.loads(bytes(16 * 1024 * 1024 + 1))


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(BadBytesError):
        decode(data)


@given(st.sampled_from(FRAMES), st.data())
def test_damaged_frames_are_read_or_refused(
    frame: tuple[FrameKind, tuple[object, ...]], data: st.DataObject
) -> None:
    whole = bytearray(encode(frame[0], 3, D, *frame[1]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadBytesError):
        decode(bytes(whole))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=20,
)


@given(values)
def test_the_codec_keeps_tuples(value: object) -> None:
    assert codec.loads(codec.dumps(value)) == value
