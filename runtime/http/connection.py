"""One HTTP connection: bytes in and out, its deadline, and the order of its requests.

Rule: one request of a connection is under way at a time; those behind it wait, and the connection
reads ahead by `AHEAD_MAX` requests or `AHEAD_BYTES_MAX` bytes at most. Each pass of the loop begins
at most one request of a connection. The client's certificate and address are read once, when the
connection is made. A client can make the server hold at most one head of 64 KiB beside that, and
one reply for `UNREAD_S` seconds.

The connection always has exactly one deadline: for the next head, for a body, for the handler's
reply, or for the client to read a reply. A request that is answered at once sets no timer: the
timer that is running looks at the deadline when it is due.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol, cast

from runtime.http.parsing import Incoming, RequestParser
from runtime.http.requests import Caller
from runtime.loop import fair_loop
from runtime.sockets.credentials import PeerCertificate, ShownToken
from runtime.sockets.listening import Arrival
from runtime.sockets.tls import SeveralUrisError, certificate_of_peer
from runtime.sockets.transport import cut, socket_transport

UNREAD_S = 30.0
"""A client that doesn't read a small reply within so many seconds loses its connection."""
SLOWEST_BYTES_PER_S = 64 * 1024
"""For a large reply the client has this many seconds more: its size divided by this rate."""
SEND_BYTES = 128 * 1024
"""The size of the socket's send buffer (the kernel doubles it). It bounds what one pass of the loop
copies when many clients are ready to read at once."""
LINGER_S = 2.0
"""How long the server reads the rest of a refused request. If it closed at once, the reset could
destroy the refusal before the client reads it."""
AHEAD_MAX: Final = 16
AHEAD_BYTES_MAX: Final = 64 * 1024


Credentials = tuple[PeerCertificate | None, ShownToken | None, int | None, str]
"""The client's certificate, bearer token, user id on a unix socket, address."""


class UnderWay(Protocol):
    """The request under way, as the connection sees it."""

    awaits_body: bool
    """More of its body is due."""

    def go_on(self) -> None:
        """More of the body has arrived, or its end, or what cannot be parsed."""

    def lost(self) -> None:
        """The connection has ended."""


class ConnectionOwner(Protocol):
    """What has connections: the server."""

    def made(self, connection: "HttpConnection") -> None:
        """The connection can carry requests."""

    def begin(self, connection: "HttpConnection", incoming: Incoming) -> None:
        """Set `under_way` of the connection and start on the request."""

    def ended(self, connection: "HttpConnection") -> None:
        """The connection has ended."""


class HttpConnection(asyncio.Protocol):
    """asyncio's protocol for one connection."""

    def __init__(self, arrival: Arrival, head_s: float, owner: ConnectionOwner) -> None:
        self.arrival = arrival
        self.certificate: PeerCertificate | None = None
        """What the client's certificate says; None: it showed none, or one that names nobody."""
        self.certificate_problem: str | None = None
        """Why the client's certificate identifies nobody; None: it does, or there is none."""
        self.caller: Caller | None = None
        """The caller of the request under way, or of the last one; None if it was refused."""
        self.credentials: Credentials | None = None
        """The credentials of the last caller that was not refused."""
        self.own_host = ""
        """The Host header of the last request, which names this server."""
        self.under_way: UnderWay | None = None
        self._head_s = head_s
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._hasten = fair_loop.hastener()
        self._socket_transport: object = None
        self._parser: RequestParser | None = None
        self._tail = b""
        """What was received but not parsed, because enough requests wait."""
        self._ahead = 0
        """Bytes parsed behind the request under way."""
        self._next_is_due = False
        self.is_ending = False
        """The connection ends after the request under way, whatever the client wants."""
        self._due = 0.0
        self._on_due: Callable[[], None] = _nothing_is_due
        self._timer: asyncio.TimerHandle | None = None
        self.is_blocked = False
        """The client has not read enough of what was written."""
        self._on_drained: Callable[[], None] = _nothing_is_due

    # -- its life ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        try:
            self.certificate = certificate_of_peer(transport.get_extra_info("ssl_object"))
        except SeveralUrisError as error:
            self.certificate_problem = str(error)
        self._transport = cast("asyncio.Transport", transport)
        self._socket_transport = socket_transport(transport)
        sock = transport.get_extra_info("socket")
        self._descriptor = sock.fileno()
        self.arrival.taken_over(self._transport.abort)
        if self.arrival.unix_uid is None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_S * 1000))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self._parser = RequestParser()
        self._owner.made(self)
        self.expect(self._head_s, self._no_head)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.is_ending = True
        self.expect_nothing()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parser is not None:
            self._parser.close()
        self._transport = None
        self._tail = b""
        cut(self._socket_transport)
        self._socket_transport = None
        under_way, self.under_way = self.under_way, None
        if under_way is not None:
            under_way.lost()
        self._on_drained = _nothing_is_due
        self._owner.ended(self)

    def hasten(self) -> None:
        """Serve this connection before those of strangers.

        This holds until reading is paused, so it is to be called for each request that counts.
        """
        if self._transport is not None:
            self._hasten(self._descriptor)

    def abort(self) -> None:
        """Close at once, even with a request under way."""
        if self._transport is not None:
            self._transport.abort()

    def end_after_request(self) -> None:
        """Close at once if no request is under way, else after its reply."""
        self.is_ending = True
        if self.under_way is None:
            self._close()

    def _close(self) -> None:
        """Close when the client has what was written."""
        self.is_ending = True
        if self._parser is not None:
            self._parser.close()
        self.expect(UNREAD_S, self.abort)
        if self._transport is not None:
            self._transport.close()

    def _hang_up_gently(self) -> None:
        """End a connection whose bytes cannot be parsed. What the client still sends is dropped.

        If the server closed at once, the reset could destroy the refusal before the client reads
        it. TLS can't end one direction, so there the connection is closed at once.
        """
        self.is_ending = True
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()
            self.expect(LINGER_S, self._close)
        else:
            self._close()

    # -- deadlines ---------------------------------------------------------------------------

    def expect(self, seconds: float, on_due: Callable[[], None]) -> None:
        """Call `on_due` after so many seconds, unless another deadline replaces this one."""
        self._due = self._loop.time() + seconds
        self._on_due = on_due
        if self._timer is None or self._due < self._timer.when():
            self._arm()

    def expect_nothing(self) -> None:
        """Drop the deadline: the caller sees to it that the connection ends."""
        self._due = float("inf")
        self._on_due = _nothing_is_due

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._look_at_deadline)

    def _look_at_deadline(self) -> None:
        self._timer = None
        if self._due == float("inf"):
            return
        if self._due > self._loop.time():
            self._arm()
        else:
            self._on_due()

    def _no_head(self) -> None:
        self._close()

    # -- reading -----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser is None or parser.ended:
            return
        if self._tail:
            self._tail += data
        elif len(data) <= parser.piece_bytes() and not self._is_full(parser):
            self._parse(parser, data)
        else:
            self._parse_in_pieces(parser, data)

    def _is_full(self, parser: RequestParser) -> bool:
        return len(parser.arrived) >= AHEAD_MAX or self._ahead >= AHEAD_BYTES_MAX

    def _parse(self, parser: RequestParser, piece: bytes | memoryview) -> None:
        under_way = self.under_way
        if self._next_is_due or (under_way is not None and not under_way.awaits_body):
            self._ahead += len(piece)
        parser.feed(piece)
        if parser.overran:
            self.abort()
        elif under_way is None:
            self._begin_next()
        elif under_way.awaits_body:
            under_way.go_on()

    def _parse_in_pieces(self, parser: RequestParser, data: bytes) -> None:
        """Parse until enough requests wait; keep the rest, and read no more meanwhile."""
        view = memoryview(data)
        at = 0
        while at < len(data) and not parser.ended:
            if self._is_full(parser):
                self._tail = data[at:]
                if self._transport is not None:
                    self._transport.pause_reading()
                return
            size = parser.piece_bytes()
            self._parse(parser, view[at : at + size])
            at += size

    def _begin_next(self) -> None:
        parser = self._parser
        if parser is None or self.under_way is not None or self._next_is_due or self.is_ending:
            return
        if parser.arrived:
            self._owner.begin(self, parser.arrived.popleft())

    def finished(self, *, keep_alive: bool, is_broken: bool = False) -> None:
        """The request under way is over: its reply is written, its body read or given up.

        `is_broken`: the request could not be parsed.
        """
        self.under_way = None
        parser = self._parser
        if is_broken and not self.is_ending:
            self._hang_up_gently()
            return
        if not keep_alive or self.is_ending or parser is None:
            self._close()
            return
        self.expect(self._head_s, self._no_head)
        if parser.arrived or self._tail:
            # Others come first: a connection with many requests begins one in each pass.
            self._next_is_due = True
            self._loop.call_soon(self._next)
        else:
            self._ahead = 0

    def _next(self) -> None:
        self._next_is_due = False
        self._begin_next()
        parser = self._parser
        if parser is None or len(parser.arrived) > AHEAD_MAX // 2:
            return
        if not parser.arrived:
            self._ahead = 0
        if self._tail and not self._is_full(parser):
            tail, self._tail = self._tail, b""
            self._parse_in_pieces(parser, tail)
            if not self._tail and self._transport is not None:
                self._transport.resume_reading()

    # -- writing -----------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Write bytes; `is_blocked` tells afterwards whether the client must read first."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause_writing(self) -> None:
        self.is_blocked = True

    def resume_writing(self) -> None:
        self.is_blocked = False
        on_drained, self._on_drained = self._on_drained, _nothing_is_due
        on_drained()

    def when_drained(self, then: Callable[[], None]) -> None:
        """Call `then` as soon as the client has read enough: at once, or later."""
        if self.is_blocked:
            self._on_drained = then
        else:
            then()


def _nothing_is_due() -> None:
    """Stands for a callback where nothing is waited for."""
