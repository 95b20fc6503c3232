"""One HTTP connection: aiohttp's parser with our ways at its start, its errors and its end.

Rule: who is on the other side is established once, when the connection is made, not for each
request; what the parser refuses is answered in our form, not as a page of text.
"""

import asyncio
import socket
from collections.abc import Callable

from aiohttp import web

from runtime import fair_loop
from runtime.listening import Arrival
from runtime.tls import uri_of_peer

UNREAD_MS = 30_000
"""A client that does not read its reply for so long loses its connection."""
LINGER_S = 2.0
"""How long the rest of a refused body is read, so that the refusal can be."""


class HttpConnection(web.RequestHandler):
    """aiohttp's protocol for one connection; `on_ended` is called once, at its end."""

    __slots__ = ("_on_ended", "_on_malformed", "arrival", "certificate_uri")

    def __init__(
        self,
        manager: web.Server,
        arrival: Arrival,
        head_s: float,
        on_ended: Callable[[Arrival], None],
        on_malformed: Callable[[str], web.Response],
    ) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=head_s,
            access_log=None,  # type: ignore[arg-type]  # None is how it is turned off
            auto_decompress=False,
            lingering_time=LINGER_S,
        )
        self.arrival = arrival
        self.certificate_uri: str | None = None
        self._on_ended = on_ended
        self._on_malformed = on_malformed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.certificate_uri = uri_of_peer(transport.get_extra_info("ssl_object"))
        if self.arrival.unix_uid is None:
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._on_ended(self.arrival)

    def hasten(self) -> None:
        """Take up what comes on this connection before what strangers send."""
        if self.transport is not None:
            fair_loop.hasten(self.transport.get_extra_info("socket"))

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
