"""Frames: what is written is read, and nothing else is."""

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.wire import codec
from quorum.wire.codec import BadBytesError
from quorum.wire.frames import Kind, decode, encode
from tests.unit.quorum.bench import entry

D = b"d" * 16
FRAMES = [
    (Kind.APPEND, (7, 3, 2, (entry(4, 2), entry(5, 3)))),
    (Kind.APPEND, (7, 3, 2, ())),
    (Kind.ACK, (-1, 5, True)),
    (Kind.SNAPSHOT, (1, b"manifest")),
    (Kind.VOTE_REQUEST, (5, 2, False)),
    (Kind.VOTE, ()),
    (Kind.PREVOTE_REQUEST, (1, 5, 2)),
    (Kind.PREVOTE, (1, True)),
    (Kind.TIMEOUT_NOW, ()),
    (Kind.PROBE, (4,)),
    (Kind.PROBE_ANSWER, (4, 9, True)),
    (Kind.FORMATION, (b"f",)),
    (Kind.DIGEST, (b"d" * 512, 7_000_000, -1, 9, -1, True)),
    (Kind.LIST, (1, "log")),
    (Kind.LISTED, (1, True, (("a", 5), ("b", 6)))),
    (Kind.READ, (1, "log/a", 0, 100)),
    (Kind.PIECE, (1, -1, b"")),
    (Kind.REMEMBER, (b"0001a-life-1", 5, b"", 0)),
]


@pytest.mark.parametrize(("kind", "fields"), FRAMES)
def test_a_frame_comes_back_as_it_was(kind: Kind, fields: tuple[object, ...]) -> None:
    assert decode(encode(kind, 3, D, *fields)) == (kind, 3, D, *fields)


def test_every_kind_is_in_the_list_above() -> None:
    assert {kind for kind, _ in FRAMES} == set(Kind)


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
        encode(Kind.VOTE, -1, D),
        encode(Kind.VOTE, 2**31, D),
        encode(Kind.VOTE, 2**62 - 1, D),
        encode(Kind.VOTE, 2**63, D),
        encode(Kind.ACK, 1, D, -2, 0, True),
        encode(Kind.ACK, 1, D, -1, -1, True),
        encode(Kind.ACK, 1, D, 2**62, 0, True),
        encode(Kind.SNAPSHOT, 1, D, -1, b""),
        encode(Kind.VOTE_REQUEST, 3, D, -1, 2, False),
        encode(Kind.VOTE_REQUEST, 3, D, 1, 4, False),
        encode(Kind.PREVOTE_REQUEST, 3, D, 1, 1, 4),
        encode(Kind.PREVOTE_REQUEST, 3, D, -1, 1, 3),
        encode(Kind.PROBE, 3, D, 2**62),
        encode(Kind.PROBE_ANSWER, 3, D, 1, -1, True),
        encode(Kind.DIGEST, 1, D, b"d", -1, 0, 0, 0, True),
        encode(Kind.DIGEST, 1, D, b"d", 0, 0, 0, -2, True),
        encode(Kind.DIGEST, 1, D, b"d", 0, 0, 2**62, 0, True),
        encode(Kind.READ, 1, D, 1, "log/a", -1, 5),
        encode(Kind.READ, 1, D, 1, "log/a", 2**63, 5),
        encode(Kind.READ, 1, D, 1, "log/a", 0, -1),
        encode(Kind.PIECE, 1, D, 1, -2, b""),
        encode(Kind.PIECE, 1, D, 1, 1, bytes(2**21)),
        encode(Kind.FORMATION, 1, D, bytes(2**17)),
        encode(Kind.REMEMBER, 1, D, bytes(12), 2**62, b"", 0),
        encode(Kind.REMEMBER, 1, D, bytes(11), 0, b"", 0),
        encode(Kind.LISTED, 1, D, 1, True, (("a", -1),)),
        encode(Kind.LISTED, 1, D, 1, True, (("a", 2**62),)),
        b"\xdc\x00\x03" + encode(Kind.VOTE, 1, D)[1:],
        encode(Kind.VOTE, 1, b"short"),
        encode(Kind.VOTE, 1, D, 1),
        encode(Kind.PREVOTE, 1, D, 1),
        encode(Kind.PREVOTE, 1, D, 1, 1),
        encode(Kind.PREVOTE, 1, D, True, True),
        encode(Kind.APPEND, 3, D, -1, 3, 2, ()),
        encode(Kind.APPEND, 3, D, 1, 2**62, 2, ()),
        encode(Kind.APPEND, 3, D, 1, 3, 4, ()),
        encode(Kind.APPEND, 3, D, 1, 3, 2, (entry(5, 2),)),
        encode(Kind.APPEND, 3, D, 1, 3, 2, (entry(4, 1),)),
        encode(Kind.APPEND, 3, D, 1, 3, 2, (entry(4, 4),)),
        encode(Kind.APPEND, 3, D, 1, 3, 2, ((b"", 4, 2),)),
        encode(Kind.APPEND, 3, D, 1, 3, 2, (("text", 4, 2),)),
        encode(Kind.APPEND, 3, D, 1, 3, 2, (7,)),
        encode(Kind.DIGEST, 1, D, b"d" * 513, 0, 0, 0, 0, True),
        encode(Kind.LISTED, 1, D, 1, True, ((b"a", 5),)),
        encode(Kind.LISTED, 1, D, 1, True, (5,)),
        encode(Kind.VOTE, 1, D) + b"\0",
        encode(Kind.VOTE, 1, D)[:-1],
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
    frame: tuple[Kind, tuple[object, ...]], data: st.DataObject
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
