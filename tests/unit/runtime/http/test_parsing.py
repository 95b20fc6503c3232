"""Which requests the bytes of a connection hold, however the network cuts them.

Each row of `ONE_MEANING` is a way to smuggle a request past a proxy: two programs find different
ends of the first request. Only one end may be found here, or the connection carries nothing more.
"""

import tracemalloc

import pytest

from runtime.http.parsing import (
    HEADERS_MAX,
    LINE_BYTES_MAX,
    ONCE,
    PIECE_BYTES,
    UNFINISHED_BYTES_MAX,
    RequestParser,
)

HOST = b"Host: localhost\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"
EMPTY_CHUNKED = b"0\r\n\r\n" + NEXT
Seen = list[tuple[str, str, bytes] | str]


def post(headers: bytes, rest: bytes = b"", version: bytes = b"1.1") -> bytes:
    return b"POST /x HTTP/" + version + b"\r\n" + HOST + headers + b"\r\n" + rest


def chunked(rest: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked\r\n", rest)


def seen(sent: bytes, size: int) -> Seen:
    """The requests that are found when so many bytes arrive at a time; a refusal is a word."""
    parser = RequestParser()
    for at in range(0, len(sent), size):
        parser.feed(sent[at : at + size])
    found: Seen = []
    for incoming in parser.arrived:
        if incoming.refused is not None:
            found.append("refused")
        elif incoming.head is not None and incoming.complete:
            found.append((incoming.head.method, incoming.head.target, incoming.take_body()))
        else:
            found.append("half")
    parser.close()
    return found


X, AFTER = ("POST", "/x"), ("GET", "/next", b"")
REFUSED: Seen = ["refused"]
ONE_MEANING: dict[str, tuple[bytes, Seen]] = {
    # RFC 9112, section 6.3: the length of a body.
    "two lengths": (post(b"Content-Length: 1\r\nContent-Length: 2\r\n", b"ab" + NEXT), REFUSED),
    "one length twice": (post(b"Content-Length: 1\r\nContent-Length: 1\r\n", b"a" + NEXT), REFUSED),
    "a list of lengths": (post(b"Content-Length: 1, 1\r\n", b"a" + NEXT), REFUSED),
    "a length with a sign": (post(b"Content-Length: +1\r\n", b"a" + NEXT), REFUSED),
    "a length in two words": (post(b"Content-Length: 1 1\r\n", b"a" + NEXT), REFUSED),
    "a length in hexadecimal": (post(b"Content-Length: 0x1\r\n", b"a" + NEXT), REFUSED),
    "a length with an underscore": (post(b"Content-Length: 1_0\r\n", b"a" + NEXT), REFUSED),
    "an empty length": (post(b"Content-Length: \r\n", b"a" + NEXT), REFUSED),
    "a length of 23 digits": (post(b"Content-Length: 99999999999999999999999\r\n", NEXT), REFUSED),
    "a space before the colon": (post(b"Content-Length : 1\r\n", b"a" + NEXT), REFUSED),
    "a vertical tab in a length": (post(b"Content-Length: \x0b1\r\n", b"a" + NEXT), REFUSED),
    # Section 6.1: transfer codings.
    "length, then coding": (
        post(b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", EMPTY_CHUNKED),
        REFUSED,
    ),
    "coding, then length": (
        post(b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", EMPTY_CHUNKED),
        REFUSED,
    ),
    "identity": (post(b"Transfer-Encoding: identity\r\n", NEXT), REFUSED),
    "gzip, then chunked": (post(b"Transfer-Encoding: gzip, chunked\r\n", EMPTY_CHUNKED), REFUSED),
    "chunked, then gzip": (post(b"Transfer-Encoding: chunked, gzip\r\n", EMPTY_CHUNKED), REFUSED),
    "xchunked": (post(b"Transfer-Encoding: xchunked\r\n", EMPTY_CHUNKED), REFUSED),
    "quoted": (post(b'Transfer-Encoding: "chunked"\r\n', EMPTY_CHUNKED), REFUSED),
    "a vertical tab": (post(b"Transfer-Encoding: \x0bchunked\r\n", EMPTY_CHUNKED), REFUSED),
    "two codings": (
        post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", EMPTY_CHUNKED),
        REFUSED,
    ),
    "one coding twice": (post(b"Transfer-Encoding: chunked\r\n" * 2, EMPTY_CHUNKED), REFUSED),
    "an empty coding": (post(b"Transfer-Encoding: \r\n", EMPTY_CHUNKED), REFUSED),
    "chunks from an old client": (
        post(b"Transfer-Encoding: chunked\r\n", EMPTY_CHUNKED, b"1.0"),
        REFUSED,
    ),
    "a folded coding": (post(b"Transfer-Encoding:\r\n chunked\r\n", EMPTY_CHUNKED), REFUSED),
    "in capitals": (post(b"TRANSFER-ENCODING: CHUNKED\r\n", EMPTY_CHUNKED), [(*X, b""), AFTER]),
    # Section 7.1: chunks.
    "a chunk with an extension": (
        chunked(b"3;a=b\r\nabc\r\n0\r\n\r\n" + NEXT),
        [(*X, b"abc"), AFTER],
    ),
    "a line feed in an extension": (chunked(b"3;a\nabc\r\n0\r\n\r\n" + NEXT), REFUSED),
    "chunks with line feeds only": (chunked(b"3\nabc\n0\n\n" + NEXT), REFUSED),
    "a chunk size and a space": (chunked(b"3 \r\nabc\r\n0\r\n\r\n" + NEXT), REFUSED),
    "a chunk size with 0x": (chunked(b"0x3\r\nabc\r\n0\r\n\r\n" + NEXT), REFUSED),
    "a chunk size with a sign": (chunked(b"-3\r\nabc\r\n0\r\n\r\n" + NEXT), REFUSED),
    "a chunk size of 17 digits": (chunked(b"f" * 17 + b"\r\nabc\r\n0\r\n\r\n" + NEXT), REFUSED),
    "a chunk without its end": (chunked(b"3\r\nabcX\r\n0\r\n\r\n" + NEXT), REFUSED),
    "a trailer": (chunked(b"3\r\nabc\r\n0\r\nX-T: y\r\n\r\n" + NEXT), [(*X, b"abc"), AFTER]),
    "a length in a trailer": (
        chunked(b"3\r\nabc\r\n0\r\nContent-Length: 50\r\n\r\n" + NEXT),
        REFUSED,
    ),
    "a coding in a trailer": (
        chunked(b"3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n" + NEXT),
        REFUSED,
    ),
    "a broken trailer": (chunked(b"3\r\nabc\r\n0\r\nno colon\r\n\r\n" + NEXT), REFUSED),
    # Sections 2.2 and 5: lines and headers.
    "line feeds only": (b"GET /x HTTP/1.1\nHost: localhost\n\n" + NEXT, REFUSED),
    "a line feed among headers": (post(b"X: a\nY: b\r\n", NEXT), REFUSED),
    "a carriage return alone": (post(b"X: a\rY: b\r\n", NEXT), REFUSED),
    "a folded header": (post(b"X: a\r\n b\r\n", NEXT), REFUSED),
    "a NUL in a value": (post(b"X: a\0b\r\n", NEXT), REFUSED),
    "a NUL in a name": (post(b"X\0: a\r\n", NEXT), REFUSED),
    "a space in a name": (post(b"X y: a\r\n", NEXT), REFUSED),
    "an empty name": (post(b": a\r\n", NEXT), REFUSED),
    "a space before the first header": (b"GET /x HTTP/1.1\r\n " + HOST + b"\r\n" + NEXT, REFUSED),
    "two spaces in the line": (
        b"GET  /x HTTP/1.1\r\n" + HOST + b"\r\n" + NEXT,
        [("GET", "/x", b""), AFTER],
    ),
    "an empty line before": (b"\r\n" + NEXT, [AFTER]),
    "HTTP/0.9": (b"GET /x\r\n\r\n" + NEXT, REFUSED),
    "HTTP/0.9 by name": (b"GET /x HTTP/0.9\r\n" + HOST + b"\r\n" + NEXT, REFUSED),
    "HTTP/2.0": (b"GET /x HTTP/2.0\r\n" + HOST + b"\r\n" + NEXT, REFUSED),
    "HTTP/2 from the start": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + NEXT, REFUSED),
    "an unknown method": (b"FOO /x HTTP/1.1\r\n" + HOST + b"\r\n" + NEXT, REFUSED),
    "a target that is not ASCII": (b"GET /?q=\xff HTTP/1.1\r\n" + HOST + b"\r\n" + NEXT, REFUSED),
    # Section 9.6: nothing behind the last request is a request.
    "behind the last request": (post(b"Connection: close\r\n", NEXT), [(*X, b"")]),
    "behind an old client's request": (post(b"", NEXT, b"1.0"), [(*X, b"")]),
    "behind a tunnel": (
        b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n" + NEXT,
        [("CONNECT", "a:1", b"")],
    ),
    # RFC 9110, section 7.8: an upgrade that is not made changes no framing.
    "an upgrade": (
        post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", NEXT),
        [(*X, b""), AFTER],
    ),
    "an upgrade with a body": (
        post(
            b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 43\r\n", NEXT + b"abcd" + NEXT
        ),
        [(*X, NEXT + b"abcd"), AFTER],
    ),
    "an upgrade with chunks": (
        post(
            b"Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
            b"3\r\nabc\r\n0\r\n\r\n" + NEXT,
        ),
        [(*X, b"abc"), AFTER],
    ),
    "an upgrade, then a refused request": (
        post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", post(HOST)),
        [(*X, b""), "refused"],
    ),
    "an upgrade, then a coding that is not spoken": (
        post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", post(b"Transfer-Encoding: gzip\r\n")),
        [(*X, b""), "refused"],
    ),
    "an upgrade, then the last request": (
        post(b"Connection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: 1\r\n", b"a" + NEXT),
        [(*X, b"a")],
    ),
}


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
@pytest.mark.parametrize("name", list(ONE_MEANING))
def test_a_request_has_one_end_however_its_bytes_are_cut(name: str, size: int) -> None:
    sent, expected = ONE_MEANING[name]
    assert seen(sent, size) == expected


def test_requests_before_a_broken_one_are_kept() -> None:
    assert seen(NEXT + NEXT + b"garbage\r\n\r\n", 1_000_000) == [AFTER, AFTER, "refused"]


@pytest.mark.parametrize("name", sorted(ONCE - {"content-length", "transfer-encoding"}))
def test_a_header_that_may_stand_once_is_refused_when_it_comes_twice(name: str) -> None:
    head = b"GET /x HTTP/1.1\r\n" + f"{name}: a\r\n{name.upper()}: b\r\n\r\n".encode()
    assert seen(head, 1_000_000) == REFUSED


@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [
        (b"GET /" + b"y" * (LINE_BYTES_MAX - 1) + b" HTTP/1.1\r\n\r\n", True),
        (b"GET /" + b"y" * LINE_BYTES_MAX + b" HTTP/1.1\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * (LINE_BYTES_MAX - 1) + b"\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * LINE_BYTES_MAX + b"\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * HEADERS_MAX + b"\r\n", True),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * (HEADERS_MAX + 1) + b"\r\n", False),
    ],
)
def test_lines_and_headers_are_limited(sent: bytes, is_taken: bool) -> None:
    assert (seen(sent, 2048) != REFUSED) == is_taken


@pytest.mark.parametrize(
    ("begin", "repeated"),
    [
        (b"GET /", b"y"),
        (b"GET / HTTP/1.1\r\nX: ", b"y"),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
        (chunked(b"3;"), b"y"),
        (chunked(b"3\r\nabc\r\n0\r\nX: "), b"y"),
        (chunked(b"3\r\nabc\r\n0\r\n"), b"X: y\r\n"),
    ],
    ids=["target", "header", "headers", "extension", "trailer", "trailers"],
)
def test_what_never_ends_is_not_kept(begin: bytes, repeated: bytes) -> None:
    parser = RequestParser()
    parser.feed(begin)
    piece = repeated * (1024 // len(repeated))
    fed = 0
    while not (parser.ended or parser.overran):
        parser.feed(piece)
        fed += len(piece)
        assert fed <= UNFINISHED_BYTES_MAX + len(piece)
    parser.close()


def test_a_long_body_is_no_overrun_in_pieces_of_any_kind() -> None:
    parser = RequestParser()
    parser.feed(post(b"Content-Length: 1000000\r\n"))
    for _ in range(100):
        parser.feed(bytes(10_000))
    parser.feed(chunked(b""))
    for _ in range(50_000):
        parser.feed(b"1\r\nx\r\n")
    parser.feed(b"0\r\n\r\n")
    assert not parser.overran
    assert [(each.complete, each.size) for each in parser.arrived] == [
        (True, 1_000_000),
        (True, 50_000),
    ]
    parser.close()


def test_a_piece_completes_few_requests_and_a_body_is_parsed_in_few_pieces() -> None:
    shortest = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    parser = RequestParser()
    parser.feed((shortest * 1000)[: parser.piece_bytes()])
    assert 0 < len(parser.arrived) <= 80
    parser.close()
    parser = RequestParser()
    sent = post(b"Content-Length: 1000000\r\n", bytes(1_000_000)) + shortest * 1000
    at = 0
    pieces = 0
    while not (parser.arrived and parser.arrived[0].complete):
        size = parser.piece_bytes()
        parser.feed(sent[at : at + size])
        at += size
        pieces += 1
    assert pieces <= 20
    assert len(parser.arrived) <= 80
    parser.close()


def test_a_dropped_body_is_counted_but_not_kept() -> None:
    parser = RequestParser()
    parser.feed(post(b"Content-Length: 6\r\n", b"abc"))
    [incoming] = parser.arrived
    incoming.drop()
    parser.feed(b"def")
    assert (incoming.complete, incoming.size, incoming.take_body()) == (True, 6, b"")
    parser.close()


def test_a_body_in_tiny_chunks_costs_about_its_size() -> None:
    parser = RequestParser()
    parser.feed(chunked(b""))
    tracemalloc.start()
    for _ in range(500):
        parser.feed(b"2\r\nab\r\n" * 100)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    [incoming] = parser.arrived
    assert incoming.size == 100_000
    assert held < 2 * incoming.size
    parser.feed(b"0\r\n\r\n")
    assert incoming.take_body() == b"ab" * 50_000
    parser.close()


LENGTH_5 = post(b"Content-Length: 5\r\n", b"abcde")
AGAIN: dict[str, list[bytes]] = {
    **{name: [sent, sent, sent] for name, (sent, _) in ONE_MEANING.items()},
    "chunks": [chunked(b"3\r\nabc\r\n0\r\n\r\n")] * 3,
    "another body": [LENGTH_5, LENGTH_5[:-5] + b"fghij"],
    "a body that is cut": [LENGTH_5, LENGTH_5[:-2], LENGTH_5[-2:], LENGTH_5],
    "a body that is cut behind the head": [LENGTH_5, LENGTH_5[:-5], LENGTH_5[-5:], LENGTH_5],
    "more than the body": [LENGTH_5, LENGTH_5 + b"\r\n", LENGTH_5, LENGTH_5 + NEXT, LENGTH_5],
    "the begin of the next": [LENGTH_5, LENGTH_5 + NEXT[:9], NEXT[9:], LENGTH_5],
    "in another's body": [
        LENGTH_5,
        post(b"Content-Length: %d\r\n" % len(LENGTH_5)),
        LENGTH_5,
        LENGTH_5,
    ],
    "in another's chunk": [
        LENGTH_5,
        chunked(b"%x\r\n" % len(LENGTH_5)),
        LENGTH_5,
        b"\r\n0\r\n\r\n",
        LENGTH_5,
    ],
    "in another's head": [LENGTH_5, b"GET /y HTTP/1.1\r\nX: ", LENGTH_5, LENGTH_5],
    "behind a target": [b"GET /y?z=", LENGTH_5, LENGTH_5],
    "two with bodies": [LENGTH_5 + LENGTH_5, LENGTH_5 + LENGTH_5, LENGTH_5],
    "behind an empty line": [
        *(b"\r\n" + LENGTH_5, b"\r\n", LENGTH_5, b"\r", LENGTH_5),
        *(b"\n" + LENGTH_5, LENGTH_5),
    ],
    "behind a refused one": [LENGTH_5, b"garbage\r\n\r\n", LENGTH_5],
    "behind the last one": [LENGTH_5, post(b"Connection: close\r\n"), LENGTH_5],
}


@pytest.mark.parametrize("name", list(AGAIN))
def test_a_head_that_comes_again_means_what_it_means_byte_by_byte(name: str) -> None:
    pieces = AGAIN[name]
    parser = RequestParser()
    for piece in pieces:
        parser.feed(piece)
    found: list[object] = []
    for each in (parser, bytewise(b"".join(pieces))):
        found.append(
            [(i.head, i.size, i.complete, str(i.refused), i.take_body()) for i in each.arrived]
        )
        found.append((each.ended, each.overran))
        each.close()
    assert found[:2] == found[2:]


def bytewise(sent: bytes) -> RequestParser:
    """A parser that has read every byte by itself."""
    parser = RequestParser()
    for at in range(len(sent)):
        parser.feed(sent[at : at + 1])
    return parser


def test_a_head_that_comes_again_is_not_parsed_again() -> None:
    parser = RequestParser()
    for body in (b"abcde", b"fghij"):
        parser.feed(LENGTH_5[:-5] + body)
    first, second = parser.arrived
    assert second.head is first.head
    assert (first.take_body(), second.take_body()) == (b"abcde", b"fghij")
    parser.close()


def test_a_large_head_is_not_kept() -> None:
    parser = RequestParser()
    for _ in range(2):
        parser.feed(post(b"Content-Length: 1\r\nX: " + b"y" * PIECE_BYTES + b"\r\n", b"a"))
    first, second = parser.arrived
    assert second.head == first.head
    assert second.head is not first.head
    parser.close()
