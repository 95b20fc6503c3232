"""Parses the bytes of one connection into requests, with httptools.

Rule: every accepted request has exactly one framing. httptools is llhttp, the parser of Node.js, in
its strict mode. It refuses two lengths, a length beside chunks, bare line feeds and folded headers.
This module adds what llhttp leaves to its caller: limits on sizes and counts, headers that may
stand once, and refusals of an HTTP version or transfer coding that we don't speak.

The parser holds at most `UNFINISHED_BYTES_MAX` bytes of a head, or between two bytes of a body.
Trailers behind a body in chunks are checked and dropped. A request that asks for another protocol
(`Upgrade`) is read as HTTP/1.1, as RFC 9110, section 7.8 allows.

A client that sends bodies mostly sends the same head again and again on one connection. So the
parser keeps the bytes of the last such head, with what they mean. If exactly those bytes arrive
between two requests, with their whole body and nothing behind it, llhttp need not read them: it
would understand the same.
"""

from collections import deque
from typing import Final, NamedTuple

import httptools
import msgspec

from runtime.http.refusal import RefusedError, bad_request

LINE_BYTES_MAX: Final = 8190
"""The most bytes of a request's target, and of one header."""
HEADERS_MAX: Final = 128
UNFINISHED_BYTES_MAX: Final = 64 * 1024
"""The most bytes of a request line with all its headers, or of what is no body within a body."""
PIECE_BYTES: Final = 2048
"""How many bytes the connection parses at a time while it waits for a head. A request has at least
29 bytes, so a piece completes 70 requests at most."""
CHUNKED_PIECE_BYTES: Final = 4096
"""The same within a body in chunks."""
_BODY_PIECE_BYTES: Final = 64 * 1024
SECRET_HEADERS: Final = ("authorization", "proxy-authorization", "cookie")
"""Not passed to the handler, so that it cannot log them."""
ONCE: Final = frozenset(
    {
        "authorization",
        "content-length",
        "content-location",
        "content-range",
        "content-type",
        "etag",
        "host",
        "max-forwards",
        "server",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that may not be repeated."""
_COMMON = (
    *("accept", "accept-encoding", "authorization", "connection", "content-digest"),
    *("content-length", "content-type", "host", "user-agent", "x-logberg-request-id"),
)
_KEYS: Final = {
    form.encode(): name
    for name in _COMMON
    for form in (name, "-".join(word.capitalize() for word in name.split("-")))
}
_METHODS: Final = {name.encode(): name for name in ("GET", "POST", "PUT", "DELETE", "HEAD")}


class RequestHead(msgspec.Struct, frozen=True):
    """What a request says before its body."""

    method: str
    target: str
    """As the client sent it."""
    path: str
    """The target up to `?`, as the client sent it."""
    headers: dict[str, str]
    """By lower-case name, without `SECRET_HEADERS`."""
    authorization: str | None
    length: int | None
    """The length of the body that the client has announced; None: it comes in chunks."""
    keep_alive: bool
    """Whether the connection may carry another request."""
    is_old: bool
    """The client speaks HTTP/1.0."""


class Incoming(msgspec.Struct, eq=False):
    """One request as it arrives."""

    head: RequestHead | None
    """None: the head itself was refused."""
    first: bytes = b""
    """The body's first piece: mostly all of it."""
    rest: bytearray | None = None
    """The body behind its first piece, in one run: a list would cost twenty times the bytes if a
    client sent them in chunks of two."""
    size: int = 0
    """Bytes of the body that have arrived."""
    complete: bool = False
    refused: RefusedError | None = None
    """Why the rest cannot be parsed. Then the connection carries nothing more."""
    is_dropped: bool = False
    """The rest of the body is read but not kept."""

    def drop(self) -> None:
        """Free the body, and keep nothing more of it."""
        self.is_dropped = True
        self.first, self.rest = b"", None

    def keep(self, piece: bytes) -> None:
        """Append to the body."""
        if self.rest is not None:
            self.rest += piece
        elif self.first:
            self.rest = bytearray(piece)
        else:
            self.first = piece

    def take_body(self) -> bytes:
        """Return the body, and free it here."""
        first, rest = self.first, self.rest
        self.first, self.rest = b"", None
        return first if rest is None else first + rest


class _KnownHead(NamedTuple):
    """A head that this connection has sent before."""

    data: bytes
    """From the request line to the empty line."""
    head: RequestHead
    body_bytes: int


class RequestParser:
    """Parses what one connection receives. `close` must be called at its end."""

    def __init__(self) -> None:
        self.arrived: deque[Incoming] = deque()
        """Requests whose head has arrived, in order. The owner takes them from here."""
        self.ended = False
        """Nothing that arrives from now on is a request."""
        self.overran = False
        """The client has sent `UNFINISHED_BYTES_MAX` bytes without coming to an end."""
        self._incoming: Incoming | None = None
        """The request whose body is arriving; None: a head is due."""
        self._target = b""
        self._headers: dict[str, str] = {}
        self._count = 0
        self._unfinished = 0
        self._is_between = True
        """No request has begun whose end has not come."""
        self._known: _KnownHead | None = None
        self._skips_body = False
        """httptools takes the body of this request for bytes of another protocol."""
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)

    def close(self) -> None:
        """Break the reference cycle with httptools' parser."""
        self._parser = None
        self.ended = True

    def piece_bytes(self) -> int:
        """Return how many bytes may be parsed now before the owner looks at `arrived` again."""
        incoming = self._incoming
        if incoming is None or incoming.head is None:
            return PIECE_BYTES
        if incoming.head.length is None:
            return CHUNKED_PIECE_BYTES
        return min(_BODY_PIECE_BYTES, max(1, incoming.head.length - incoming.size))

    def feed(self, data: bytes | memoryview) -> None:
        """Parse the next bytes. What is wrong with them stands in `arrived`."""
        if self._parser is None or self.ended:
            return
        if not self._is_between:
            self._parse(data)
        elif not self._take_known(data):
            before = len(self.arrived)
            self._parse(data)
            if self._is_between and len(self.arrived) > before:
                self._remember(data, self.arrived[-1])

    def _take_known(self, data: bytes | memoryview) -> bool:
        """Take one whole request with the head that is known; False: the data is something else."""
        known = self._known
        if (
            known is None
            or len(data) != len(known.data) + known.body_bytes
            or data[: len(known.data)] != known.data
        ):
            return False
        incoming = Incoming(known.head, size=known.body_bytes, complete=True)
        if known.body_bytes:
            incoming.first = bytes(data[len(known.data) :])
        self._unfinished = 0
        self.arrived.append(incoming)
        return True

    def _remember(self, data: bytes | memoryview, incoming: Incoming) -> None:
        """Keep the head of a request, if the request and nothing else is what arrived.

        Without a body it is mostly a read of something else each time, so it is not kept.
        """
        head = incoming.head
        if head is None or not head.length or len(data) > PIECE_BYTES:
            return
        # A head cannot end before its first empty line. So if the body fits behind that, no line
        # end stands before the request line, and no other request behind the body.
        known = bytes(data[: len(data) - head.length])
        if known.find(b"\r\n\r\n") == len(known) - 4:
            self._known = _KnownHead(known, head, head.length)

    def _parse(self, data: bytes | memoryview) -> None:
        parser = self._parser
        assert parser is not None
        self._unfinished += len(data)
        rest: bytes | memoryview | None = None
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, RefusedError):
                raise
            self._refuse(error.__context__)
        except httptools.HttpParserError as error:
            self._refuse(bad_request(f"the request cannot be read: {str(error)[:100]}"))
        if rest is not None:
            # Not in the handler above. There Python replaces the context of the next error by the
            # upgrade, and the context is where httptools puts the refusal.
            self._stay_with_http()
            if rest:
                self.feed(rest)
        if self._unfinished > UNFINISHED_BYTES_MAX:
            self.overran = True

    def _refuse(self, refused: RefusedError) -> None:
        """Parse nothing more. After a last request the client may send what it likes."""
        if self.ended:
            return
        self.ended = True
        refused.__traceback__ = refused.__context__ = None
        if self._incoming is not None:
            self._incoming.refused = refused
            self._incoming = None
        else:
            self.arrived.append(Incoming(None, refused=refused))

    def _stay_with_http(self) -> None:
        """Go on after a request that asked for another protocol, and doesn't get it.

        httptools has skipped its body. A new parser gets the same framing, so it reads the body.
        """
        self._skips_body = False
        incoming = self._incoming
        if self.ended or incoming is None or incoming.head is None:
            return
        length = incoming.head.length
        framing = (
            b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
        )
        after = b"keep-alive" if incoming.head.keep_alive else b"close"
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(
            b"POST / HTTP/1.1\r\nConnection: %b\r\n%b\r\n\r\n" % (after, framing)
        )

    # -- called by httptools -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_between = False

    def on_url(self, url: bytes) -> None:
        if self._incoming is not None:
            return
        self._target += url
        if len(self._target) > LINE_BYTES_MAX:
            raise bad_request(f"the request's target is longer than {LINE_BYTES_MAX} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is not None:
            return
        key = _KEYS.get(name) or name.decode("latin-1").lower()
        if len(name) + len(value) > LINE_BYTES_MAX:
            raise bad_request(f"the header {key[:100]} is longer than {LINE_BYTES_MAX} bytes")
        self._count += 1
        if self._count > HEADERS_MAX:
            raise bad_request(f"more than {HEADERS_MAX} headers")
        try:
            text = value.decode().rstrip(" \t")
        except UnicodeDecodeError:
            raise bad_request(f"the header {key[:100]} is not UTF-8") from None
        headers = self._headers
        if key not in headers:
            headers[key] = text
        elif key in ONCE:
            raise bad_request(f"two headers {key}, which may stand once")
        else:
            headers[key] = f"{headers[key]}, {text}"

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self._incoming is not None or parser is None:
            return
        headers = self._headers
        method = parser.get_method()
        version = parser.get_http_version()
        try:
            target = self._target.decode("ascii")
        except UnicodeDecodeError:
            raise bad_request("a forbidden character in the path") from None
        if version not in ("1.1", "1.0"):
            raise bad_request(f"HTTP/{version} is not spoken here: use HTTP/1.1")
        authorization = headers.pop("authorization", None)
        for name in SECRET_HEADERS:
            headers.pop(name, None)
        head = RequestHead(
            method=_METHODS.get(method) or method.decode(),
            target=target,
            path=target.partition("?")[0],
            headers=headers,
            authorization=authorization,
            length=_length(headers, version),
            keep_alive=parser.should_keep_alive() and method != b"CONNECT",
            is_old=version == "1.0",
        )
        self._target, self._headers, self._count, self._unfinished = b"", {}, 0, 0
        self._incoming = Incoming(head)
        self.arrived.append(self._incoming)
        self._skips_body = parser.should_upgrade() and method != b"CONNECT"

    def on_body(self, body: bytes) -> None:
        incoming = self._incoming
        self._unfinished = 0
        if incoming is None:
            return
        incoming.size += len(body)
        if not incoming.is_dropped:
            incoming.keep(body)

    def on_message_complete(self) -> None:
        incoming = self._incoming
        if incoming is None or self._skips_body:
            return
        self._unfinished = 0
        self._incoming = None
        incoming.complete = self._is_between = True
        if incoming.head is not None and not incoming.head.keep_alive:
            self.ended = True


def _length(headers: dict[str, str], version: str) -> int | None:
    """Return the length of the body; None: it comes in chunks. Raises RefusedError.

    llhttp has refused a length beside a coding, and a length that is no number.
    """
    coding = headers.get("transfer-encoding")
    if coding is None:
        return int(headers.get("content-length", 0))
    if version != "1.1" or coding.lower() != "chunked":
        raise bad_request(f"Transfer-Encoding {coding[:40]!r}: only chunked, and with HTTP/1.1")
    return None
