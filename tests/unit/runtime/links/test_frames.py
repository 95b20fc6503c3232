"""Frames between peers arrive whole, or the link ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.links.frames import (
    MAGIC,
    BadFrameError,
    Hello,
    LinkFrameReader,
    Note,
    framed,
    framed_hello,
    framed_refusal,
    header,
    parse_hello,
    parse_note,
)


@given(st.lists(st.binary(max_size=200)), st.lists(st.integers(1, 50)))
def test_payloads_come_out_as_they_went_in_however_the_stream_is_cut(
    payloads: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(framed(payload) for payload in payloads)
    reader, out = LinkFrameReader(), []
    position = 0
    for size in cuts or [7]:
        out += reader.feed(stream[position : position + size])
        position += size
    out += reader.feed(stream[position:])
    assert out == payloads


@given(st.binary(min_size=1, max_size=100), st.integers(0))
def test_every_flipped_bit_ends_the_stream_at_once(payload: bytes, bit: int) -> None:
    """Also one of the length: nobody waits for bytes that were never sent."""
    frame = bytearray(framed(payload))
    bit %= len(frame) * 8
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BadFrameError):
        list(LinkFrameReader(cap=2**32).feed(bytes(frame)))


def test_a_length_beyond_the_cap_is_refused_before_its_bytes_come() -> None:
    reader = LinkFrameReader(cap=100)
    with pytest.raises(BadFrameError, match="a frame of 101 bytes, where 100 are allowed"):
        list(reader.feed(header(101, 0)))


def test_the_cap_may_be_raised_between_frames_of_one_chunk() -> None:
    reader = LinkFrameReader(cap=2)
    out = []
    for payload in reader.feed(framed(b"ab") + framed(b"a longer one")):
        out.append(payload)
        reader.cap = 100
    assert out == [b"ab", b"a longer one"]


def test_an_http_request_is_no_frame() -> None:
    with pytest.raises(BadFrameError, match="a frame of"):
        list(LinkFrameReader().feed(b"GET / HTTP/1.1\r\n"))


@pytest.mark.parametrize(
    "payload", [b"", b"QLK", MAGIC, b"XXXX\x01", MAGIC + b"\x00", MAGIC + b"\x09"]
)
def test_what_is_no_note_of_ours_is_refused(payload: bytes) -> None:
    with pytest.raises(BadFrameError):
        parse_note(payload)


def test_a_hello_comes_back() -> None:
    hello = Hello(b"i" * 8, b"l" * 8, b"a" * 8 + b"b" * 8 + bytes(48), b"greeting")
    [payload] = LinkFrameReader().feed(framed_hello(hello))
    note, body = parse_note(payload)
    assert (note, parse_hello(body)) == (Note.HELLO, hello)
    assert hello.says_ended(b"b" * 8)
    assert not hello.says_ended(b"ab" * 4)


@pytest.mark.parametrize("size", [0, 79, 80 + 4097])
def test_a_hello_of_a_wrong_size_is_refused(size: int) -> None:
    with pytest.raises(BadFrameError, match="a greeting of"):
        parse_hello(bytes(size))


def test_a_long_sentence_is_cut() -> None:
    [payload] = LinkFrameReader().feed(framed_refusal("no! " * 1000))
    assert len(payload) <= 505
