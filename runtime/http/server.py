"""The HTTP server: turns each HTTP request into one call of a handler that knows no HTTP.

Rule: the server itself answers every mistake of a client, in the format that `on_error` gives. So
the handler never sees a body in another encoding, a body that is too large or too slow, an
ambiguous target, a Host or Origin of another site on loopback, or a caller that is not
authenticated. The server identifies the caller from the request's head alone. It reads a body only
from an allowed caller, and all bodies together share one memory budget.

aiohttp parses the requests. Its routing is not used: one function serves all requests, in about
40 us each. This module adds deadlines for bodies, limits on connections, and TLS contexts that can
be replaced while the server runs.

Codes passed to `on_error`: INVALID_REQUEST, MALFORMED_BODY, METHOD_NOT_ALLOWED, BODY_TOO_LARGE,
BODY_TIMED_OUT, UNSUPPORTED_MEDIA_TYPE, UNAUTHENTICATED, CLUSTER_AUTHORIZATION_FAILED, THROTTLED,
REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Collection
from http import HTTPStatus
from pathlib import Path

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from structlog.typing import FilteringBoundLogger

from runtime.http.callers import Authenticate, Callers
from runtime.http.connection import HELD, HttpConnection
from runtime.http.content_digest import CONTENT_DIGEST, content_digest
from runtime.http.exposure import check_listener, is_foreign_host, is_foreign_origin, is_loopback
from runtime.http.handling import Handling
from runtime.http.limits import NEWCOMER_BYTES, HttpLimits
from runtime.http.reading import (
    TARGET,
    RefusedError,
    as_request,
    bad_request,
    check_form,
    with_token,
)
from runtime.http.requests import Handler, OnError, Reply
from runtime.http.streaming import GATHERED_MAX, Turns, gather, send
from runtime.loop.heap import HeapTrimmer
from runtime.sockets.admission import Admission, Slots
from runtime.sockets.binding import bind_tcp, bind_unix
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.descriptors import divide, soft_limit
from runtime.sockets.listening import Arrival, Listener
from runtime.sockets.refusals import HANDSHAKE, Refusals
from runtime.sockets.tls import trusts_others

TLS_HANDSHAKE_S = 5.0
NO_PLACE = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class HttpServer:
    """Serves one handler on a TCP address, and on a unix socket if one is given.

    To be made on a running loop.
    """

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        *,
        authenticate: Authenticate,
        on_error: OnError,
        log: FilteringBoundLogger,
        tls: ssl.SSLContext | None = None,
        insecure_network: bool = False,
        unix_socket: Path | None = None,
        allowed_hosts: Collection[str] = (),
        limits: HttpLimits | None = None,
        hastened: Collection[str] = (),
        anonymous_paths: Collection[str] | None = None,
        passes_tokens: bool = False,
        refusals: Refusals | None = None,
    ) -> None:
        """`hastened`: paths with priority.

        Once a caller of one of them is accepted, the loop serves that connection before others.
        `anonymous_paths`: the only paths that a caller without credentials may request, without a
        body; None: every path. `passes_tokens`: the server doesn't check bearer tokens.
        It leaves them in the request's headers, and the handler has another server check them.
        `refusals` may be shared with other listeners of the process.
        """
        self._host, self._port = host, port
        self._on_error = on_error
        self._log = log
        self._tls = tls
        self._insecure_network = insecure_network
        self._unix_path = unix_socket
        self._checks_host = is_loopback(host)
        self._hastened = frozenset(hastened)
        self._allowed_hosts = {name.lower() for name in allowed_hosts}
        self.limits = limits if limits is not None else HttpLimits()
        self._tcp_listeners: list[Listener] = []
        self._unix_listeners: list[Listener] = []
        loop = asyncio.get_running_loop()
        self.refusals = refusals if refusals is not None else Refusals(log, loop.call_later)
        self._callers = Callers(
            authenticate, anonymous_paths, self.refusals, passes_tokens=passes_tokens
        )
        heap = HeapTrimmer(loop.call_later)
        self.budget = ByteBudget(self.limits.budget_bytes, heap.freed)
        self.admission = self._make_admission(loop)
        self.gathered = ByteBudget(GATHERED_MAX, heap.freed)
        self._turns = Turns()
        self.counters: Counter[str] = Counter()
        """For metrics: requests, status_<status>, refused_<code>, abandoned, streamed,
        broken_off, answered_twice, connections_refused."""
        self._handling = Handling(
            handler,
            hastened=self._hastened,
            reply_s=self.limits.reply_s,
            on_error=on_error,
            counters=self.counters,
            log=log,
        )
        self.manager = web.Server(
            self._serve, request_factory=_make_request, handler_cancellation=True
        )

    def _make_admission(self, loop: asyncio.AbstractEventLoop) -> Admission:
        limits = self.limits
        descriptors = divide(soft_limit()).http
        return Admission(
            min(limits.connections, descriptors),
            min(limits.connections_per_address, max(1, descriptors * 3 // 4)),
            slots=Slots(limits.newcomers, NEWCOMER_BYTES, self.budget, limits.newcomer_grace_s),
            now=loop.time,
            call_later=loop.call_later,
        )

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> None:
        """Listen. Raises InsecureListenerError, and OSError that says what to do."""
        check_listener(
            self._host, tls=self._tls is not None, insecure_network=self._insecure_network
        )
        sockets = bind_tcp(self._host, self._port)
        try:
            unix = None if self._unix_path is None else bind_unix(self._unix_path)
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        self._tcp_listeners = [self._listener(sock, self._tls) for sock in sockets]
        self._unix_listeners = [] if unix is None else [self._listener(unix, None)]

    async def stop(self, grace_s: float = 1.0) -> None:
        """Accept no more connections and close all.

        Requests under way have `grace_s` seconds to end.
        """
        for listener in self._tcp_listeners + self._unix_listeners:
            listener.close()
        if self._unix_listeners and self._unix_path is not None:
            self._unix_path.unlink(missing_ok=True)
        self.manager.pre_shutdown()
        await self.manager.shutdown(grace_s)

    @property
    def port(self) -> int:
        """The number of the TCP port; the system chose it if 0 was given."""
        return self._tcp_listeners[0].port

    def judge_again(self) -> int:
        """Close the connections of callers that would be refused now; return how many."""
        return self._callers.judge_again(self._http_connections(), certificates=False)

    def reload_tls(self, context: ssl.SSLContext) -> None:
        """Use another context for connections that begin from now on.

        Open connections stay, unless the new context trusts other authorities. Then connections
        that showed a certificate end, so that the client's next handshake is verified anew.
        """
        assert self._tls is not None, "a listener without TLS does not take it up while it runs"
        trust_changed = trusts_others(self._tls, context)
        self._tls = context
        for listener in self._tcp_listeners:
            listener.tls = context
        if trust_changed:
            self._callers.judge_again(self._http_connections(), certificates=True)

    def _http_connections(self) -> list[HttpConnection]:
        return [c for c in self.manager.connections if isinstance(c, HttpConnection)]

    def _listener(self, sock: socket.socket, tls: ssl.SSLContext | None) -> Listener:
        return Listener(
            sock,
            self._make_connection,
            admission=lambda _: self.admission,
            tls=tls,
            first_bytes_s=self.limits.head_s,
            handshake_s=TLS_HANDSHAKE_S,
            on_refused=self._refused_early,
            log=self._log,
            turned_away=NO_PLACE,
        )

    def _refused_early(self, address: str, why: str) -> None:
        self.counters["connections_refused"] += 1
        self.refusals.refused(HANDSHAKE, address=address, error=why, door="http")

    def _make_connection(self, arrival: Arrival) -> HttpConnection:
        return HttpConnection(
            self.manager, arrival, self.limits.head_s, self._connection_ended, self._malformed
        )

    def _connection_ended(self, connection: HttpConnection) -> None:
        connection.arrival.left()

    # -- one request -------------------------------------------------------------------------

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        self.counters["requests"] += 1
        connection = http.protocol
        assert isinstance(connection, HttpConnection)
        try:
            reply = await self._reply(http, connection)
        except RefusedError as refused:
            if refused.code in _NOT_READ_ON:
                connection.hang_up()
            reply = self._error(refused)
        if reply.status in _FOR_WHO_ASKED:
            self._callers.tell(http, connection, reply)
        response = await self._answered(http, reply)
        if reply.status == HTTPStatus.UNAUTHORIZED and not http.content.is_eof():
            response.force_close()
        return response

    async def _reply(self, http: web.BaseRequest, connection: HttpConnection) -> Reply:
        """Check the request, read its body and call the handler. Raises RefusedError."""
        check_form(http)
        self._check_site(http, connection.arrival)
        caller = self._callers.caller_of(http, connection)
        if isinstance(caller, Reply):
            return caller
        if http.path in self._hastened:
            connection.hasten()
        limits = self.limits
        request = await as_request(http, caller, limits.body_bytes, limits.body_s, self.budget)
        passed = self._callers.passed_token(http)
        return await self._handling.reply_to(
            request if passed is None else with_token(request, passed)
        )

    async def _answered(self, http: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        """Return the response for a reply. A long reply has been sent when this returns."""
        if reply.parts is None:
            return self._response(reply)
        claim = self.gathered.claim(http.path)
        sent = True
        try:
            reply = await gather(reply, self._turns, claim)
            if reply.parts is not None:
                return await self._sent(http, reply)
            response = self._response(reply)
            response[HELD] = claim
            sent = False
            return response
        finally:
            if sent:
                claim.close()

    async def _sent(self, http: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        """Send a long reply while it is being built."""
        self.counters[f"status_{reply.status}"] += 1
        self.counters["streamed"] += 1
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        _name_server(response)
        response.enable_chunked_encoding()
        try:
            await send(http, response, reply, self._turns, self.limits.reply_s)
        except Exception as error:
            # The status has been sent. Closing the connection is the only way left to tell the
            # client that the rest is missing.
            self.counters["broken_off"] += 1
            self._log.warning("http_reply_broken_off", path=http.path, error=repr(error))
            if http.transport is not None:
                http.transport.abort()
            raise ConnectionResetError("the reply was broken off") from error
        return response

    def _check_site(self, http: web.BaseRequest, arrival: Arrival) -> None:
        """Refuse requests that a browser sends for another site. Raises RefusedError."""
        hosts = http.headers.getall(hdrs.HOST, ())
        if len(hosts) > 1 or not hosts:
            raise bad_request("exactly one Host header is needed")
        if arrival.unix_uid is not None:
            return
        host, origin = hosts[0], http.headers.get(hdrs.ORIGIN)
        if self._checks_host and is_foreign_host(host, self._allowed_hosts):
            raise _forbidden(f"the Host {host[:100]!r} is not this server")
        if origin is not None and is_foreign_origin(origin, host):
            raise _forbidden(f"a page of {origin[:100]!r} may not use this server")

    # -- replies -----------------------------------------------------------------------------

    def _malformed(self, sentence: str) -> web.Response:
        """Answer a request that aiohttp's parser refused."""
        return self._refusal(bad_request(sentence))

    def _refusal(self, refused: RefusedError) -> web.Response:
        return self._response(self._error(refused))

    def _error(self, refused: RefusedError) -> Reply:
        self.counters[f"refused_{refused.code}"] += 1
        return self._on_error(refused.status, refused.code, refused.message)

    def _response(self, reply: Reply) -> web.Response:
        self.counters[f"status_{reply.status}"] += 1
        response = web.Response(body=reply.body, status=reply.status, headers=reply.headers)
        _name_server(response)
        if reply.body:
            response.headers[CONTENT_DIGEST] = content_digest(reply.body)
        return response


_FOR_WHO_ASKED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
"""Refusals because of who the caller is: these are counted and logged."""
_NOT_READ_ON = {"BODY_TIMED_OUT", "THROTTLED"}
"""After these refusals the server doesn't read the rest of the body."""


def _name_server(response: web.StreamResponse) -> None:
    response.headers[hdrs.SERVER] = "logberg"
    response.headers["X-Content-Type-Options"] = "nosniff"


def _forbidden(message: str) -> RefusedError:
    return RefusedError(HTTPStatus.FORBIDDEN, "CLUSTER_AUTHORIZATION_FAILED", message)


def _make_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    request = web.BaseRequest(message, payload, protocol, writer, task, loop)
    request[TARGET] = message.path
    return request
