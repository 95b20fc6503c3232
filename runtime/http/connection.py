"""One HTTP connection: aiohttp's parser with our own start, errors and end.

Rule: the certificate and the address of the other side are read once, when the connection is made.
If the parser refuses a request, the answer has our error format. A client can make the server hold
at most one head of `HEAD_BYTES_MAX` bytes, and one reply for `UNREAD_S` seconds.
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
"""A client that does not take a small reply within so long loses its connection."""
SLOWEST_BYTES_PER_S = 64 * 1024
"""And a large one at this pace."""
HEAD_BYTES_MAX = 64 * 1024
"""Of a request line with all headers; one header may have 8 KiB."""
READ_BYTES = 16 * 1024
"""How far a body is read ahead of whoever takes it."""
SEND_BYTES = 128 * 1024
"""What the kernel takes at once (it doubles it): a crowd of readers that are ready together must
not have megabytes copied for them in one pass of the loop."""
LINGER_S = 2.0
"""How long the rest of a refused body is read, so that the refusal can be."""


HELD = web.ResponseKey("held", ByteClaim)
"""Key of what the response holds of a budget until it is sent."""
Credentials = tuple[str | None, str | None, int | None, str]
"""URI in the client's certificate, bearer token, user id on a unix socket, address."""


class HttpConnection(web.RequestHandler):
    """aiohttp's protocol for one connection; `on_ended` is called once, at its end."""

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
        """Why the certificate that was shown is nobody's."""
        self.caller: Caller | None = None
        """Whose request is under way, or was the last; None when it was refused."""
        self.credentials: Credentials | None = None
        """What its last caller showed and was known by."""
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
            # aiohttp's parser takes 128 headers of 8 KiB each, a MiB for each connection.
            self.transport.abort()

    def _is_reading_a_head(self) -> bool:
        """Whether what arrives is no body: of the request under way, or of one refused before."""
        if self._waiter is not None:
            return True
        return self._current_request is not None and self._current_request.content.is_eof()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write the reply, to a client that reads it."""
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
        """Let go of what refers to us, when we were never connected; afterwards nothing does."""
        self._parser = None
        self._request_handler = None
        self._manager = None

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        cut(self._socket_transport)
        self._on_ended(self)

    def hasten(self) -> None:
        """Take up what comes on this connection before what strangers send."""
        if self.transport is not None:
            fair_loop.hasten(self.transport.get_extra_info("socket"))

    def abort(self) -> None:
        """End at once, whatever is under way."""
        if self.transport is not None:
            self.transport.abort()

    def end_after_request(self) -> None:
        """End at once when no request is under way, else after its reply."""
        if self._waiter is not None:
            self.force_close()
        else:
            self.close()

    def hang_up(self) -> None:
        """Close after the next reply without waiting for the rest of its request's body."""
        self._lingering_time = 0.0

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what the parser could not read; the connection ends with it."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of a reply is out already")
        lines = (message or "the request cannot be read").strip().splitlines()
        response = self._on_malformed(lines[0][:200])
        response.force_close()
        return response


def _size(response: web.StreamResponse) -> int:
    body = response.body if isinstance(response, web.Response) else None
    return len(body) if isinstance(body, bytes) else 0
