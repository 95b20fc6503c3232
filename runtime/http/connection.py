"""One HTTP connection: aiohttp's protocol, with our own limits, error format and clean-up.

Rule: the client's certificate and address are read once, when the connection is made. If the parser
refuses a request, the answer has our error format. A client can make the server hold at most one
head of `HEAD_BYTES_MAX` bytes, and one reply for `UNREAD_S` seconds.
"""

import asyncio
import socket
from collections.abc import Callable

from aiohttp import web

from runtime.http.requests import Caller
from runtime.loop import fair_loop
from runtime.sockets.byte_budget import ByteClaim
from runtime.sockets.listening import Arrival
from runtime.sockets.tls import SeveralUrisError, uri_of_peer
from runtime.sockets.transport import cut, socket_transport

UNREAD_S = 30.0
"""A client that doesn't read a small reply within so many seconds loses its connection."""
SLOWEST_BYTES_PER_S = 64 * 1024
"""For a large reply the client has this many seconds more: its size divided by this rate."""
HEAD_BYTES_MAX = 64 * 1024
"""The most bytes of a request line with all its headers. A single header may have 8 KiB."""
READ_BYTES = 16 * 1024
"""How many bytes of a body aiohttp buffers before it pauses reading."""
SEND_BYTES = 128 * 1024
"""The size of the socket's send buffer (the kernel doubles it). It bounds what one pass of the loop
copies when many clients are ready to read at once."""
LINGER_S = 2.0
"""How long the server reads the rest of a refused body. If it closed at once, the reset could
destroy the refusal before the client reads it."""


HELD = web.ResponseKey("held", ByteClaim)
"""Key of the claim on a memory budget that a response holds until it is sent."""
Credentials = tuple[str | None, str | None, int | None, str]
"""The URI in the client's certificate, bearer token, user id on a unix socket, address."""


class HttpConnection(web.RequestHandler):
    """aiohttp's protocol for one connection.

    Calls `on_ended` once, at the end of the connection.
    """

    __slots__ = (
        "_head_bytes",
        "_on_ended",
        "_on_malformed",
        "_socket_transport",
        "arrival",
        "caller",
        "certificate_problem",
        "certificate_uri",
        "credentials",
    )

    def __init__(
        self,
        manager: web.Server,
        arrival: Arrival,
        head_s: float,
        on_ended: Callable[["HttpConnection"], None],
        on_malformed: Callable[[str], web.Response],
    ) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=head_s,
            access_log=None,  # type: ignore[arg-type]  # None is how it is turned off
            auto_decompress=False,
            lingering_time=LINGER_S,
            read_bufsize=READ_BYTES,
        )
        self._head_bytes = 0
        self._socket_transport: object = None
        self.arrival = arrival
        self.certificate_uri: str | None = None
        self.certificate_problem: str | None = None
        """Why the client's certificate identifies nobody; None: it does, or there is none."""
        self.caller: Caller | None = None
        """The caller of the request under way, or of the last one; None if it was refused."""
        self.credentials: Credentials | None = None
        """The credentials of the last caller that was not refused."""
        self._on_ended = on_ended
        self._on_malformed = on_malformed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        try:
            self.certificate_uri = uri_of_peer(transport.get_extra_info("ssl_object"))
        except SeveralUrisError as error:
            self.certificate_problem = str(error)
        assert isinstance(transport, asyncio.Transport)
        self._socket_transport = socket_transport(transport)
        self.arrival.taken_over(transport.abort)
        if self.arrival.unix_uid is None:
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_S * 1000))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        if self._request_count != before or not self._is_reading_a_head():
            self._head_bytes = 0
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX and self.transport is not None:
            # aiohttp's parser alone would accept 128 headers of 8 KiB: a MiB for each connection.
            self.transport.abort()

    def _is_reading_a_head(self) -> bool:
        """Tell whether the next bytes belong to a head, and not to the body of a request."""
        if self._waiter is not None:
            return True
        return self._current_request is not None and self._current_request.content.is_eof()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write the reply; end the connection if the client doesn't read it in time."""
        transport = self.transport
        try:
            async with asyncio.timeout(UNREAD_S + _size(resp) / SLOWEST_BYTES_PER_S):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            if transport is not None:
                transport.abort()
            return resp, True
        finally:
            self.arrival.idle()
            if HELD in resp:
                resp[HELD].close()

    def discard(self) -> None:
        """Break the reference cycles of a connection that was never made (see `Discardable`)."""
        self._parser = None
        self._request_handler = None
        self._manager = None

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        cut(self._socket_transport)
        self._on_ended(self)

    def hasten(self) -> None:
        """Serve this connection before those of strangers, from now on."""
        if self.transport is not None:
            fair_loop.hasten(self.transport.get_extra_info("socket"))

    def abort(self) -> None:
        """Close at once, even with a request under way."""
        if self.transport is not None:
            self.transport.abort()

    def end_after_request(self) -> None:
        """Close at once if no request is under way, else after its reply."""
        if self._waiter is not None:
            self.force_close()
        else:
            self.close()

    def hang_up(self) -> None:
        """Close after the next reply, without reading the rest of the request's body."""
        self._lingering_time = 0.0

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that the parser could not read, then close the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of a reply is out already")
        lines = (message or "the request cannot be read").strip().splitlines()
        response = self._on_malformed(lines[0][:200])
        response.force_close()
        return response


def _size(response: web.StreamResponse) -> int:
    body = response.body if isinstance(response, web.Response) else None
    return len(body) if isinstance(body, bytes) else 0
