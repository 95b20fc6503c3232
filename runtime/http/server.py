"""The HTTP server: turns each HTTP request into one call of a handler that knows no HTTP.

Rule: the server itself answers every mistake of a client, in the format that `on_error` gives. So
the handler never sees a body in another encoding, a body that is too large or too slow, an
ambiguous target, a Host or Origin of another site on loopback, or a caller that is not
authenticated. The server identifies the caller from the request's head alone. It reads a body only
from an allowed caller, and all bodies together share one memory budget.

`connection` and `parsing` read the requests with httptools, and `exchange` takes each through its
steps. This module listens, limits the connections, and replaces TLS contexts while the server runs
(ADR 0044).

Codes passed to `on_error`: INVALID_REQUEST, MALFORMED_BODY, METHOD_NOT_ALLOWED, BODY_TOO_LARGE,
BODY_TIMED_OUT, UNSUPPORTED_MEDIA_TYPE, UNAUTHENTICATED, CLUSTER_AUTHORIZATION_FAILED, THROTTLED,
REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Collection, Generator
from http import HTTPStatus
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from runtime.http.callers import Authenticate, Callers
from runtime.http.connection import HttpConnection
from runtime.http.exchange import Exchange, Service
from runtime.http.exposure import check_listener, is_foreign_host, is_foreign_origin, is_loopback
from runtime.http.handling import Handling
from runtime.http.limits import NEWCOMER_BYTES, HttpLimits
from runtime.http.parsing import Incoming, RequestHead
from runtime.http.refusal import RefusedError, bad_request
from runtime.http.requests import Handler, OnError
from runtime.http.streaming import GATHERED_MAX, Turns
from runtime.http.writing import ResponseHeads
from runtime.loop.heap import HeapTrimmer
from runtime.sockets.admission import Admission, Slots
from runtime.sockets.binding import bind_tcp, bind_unix
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.descriptors import divide, soft_limit
from runtime.sockets.listening import Arrival, Listener
from runtime.sockets.refusals import HANDSHAKE, Refusals
from runtime.sockets.tls import trusts_others

TLS_HANDSHAKE_S = 5.0
STOP_LOOK_S = 0.005
"""How often `stop` looks whether the requests under way have ended."""
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
        self._log = log
        self._tls = tls
        self._insecure_network = insecure_network
        self._unix_path = unix_socket
        self._checks_host = is_loopback(host)
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
        self.counters: Counter[str] = Counter()
        """For metrics: requests, status_<status>, refused_<code>, abandoned, streamed,
        broken_off, answered_twice, connections_refused."""
        paths = frozenset(hastened)
        self._handling = Handling(
            handler, hastened=paths, on_error=on_error, counters=self.counters, log=log
        )
        self._service = Service(
            self._check_site,
            self._callers,
            paths,
            self._handling,
            self.limits,
            self.budget,
            self.gathered,
            Turns(),
            ResponseHeads(),
            on_error,
            self.counters,
            log,
        )
        self.connections: set[HttpConnection] = set()

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
        for connection in list(self.connections):
            connection.end_after_request()
        try:
            async with asyncio.timeout(grace_s):
                while any(c.under_way is not None for c in self.connections):  # noqa: ASYNC110
                    await asyncio.sleep(STOP_LOOK_S)
        except TimeoutError:
            for connection in list(self.connections):
                if connection.under_way is not None:
                    connection.abort()

    @property
    def port(self) -> int:
        """The number of the TCP port; the system chose it if 0 was given."""
        return self._tcp_listeners[0].port

    def judge_again(self) -> int:
        """Close the connections of callers that would be refused now; return how many."""
        return self._callers.judge_again(self.connections, certificates=False)

    def judging(self) -> Generator[None, None, int]:
        """Do the same in steps."""
        return self._callers.judging(self.connections)

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
            self._callers.judge_again(self.connections, certificates=True)

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
        return HttpConnection(arrival, self.limits.head_s, self)

    # -- connections -------------------------------------------------------------------------

    def made(self, connection: HttpConnection) -> None:
        self.connections.add(connection)

    def begin(self, connection: HttpConnection, incoming: Incoming) -> None:
        exchange = connection.under_way = Exchange(self._service, connection, incoming)
        exchange.begin()

    def ended(self, connection: HttpConnection) -> None:
        self.connections.discard(connection)
        connection.arrival.left()

    def _check_site(self, head: RequestHead, connection: HttpConnection) -> None:
        """Refuse requests that a browser sends for another site. Raises RefusedError."""
        host = head.headers.get("host")
        if host is None:
            raise bad_request("exactly one Host header is needed")
        if connection.arrival.unix_uid is not None:
            return
        origin = head.headers.get("origin")
        if host == connection.own_host and origin is None:
            return
        if self._checks_host and is_foreign_host(host, self._allowed_hosts):
            raise _forbidden(f"the Host {host[:100]!r} is not this server")
        if origin is not None and is_foreign_origin(origin, host):
            raise _forbidden(f"a page of {origin[:100]!r} may not use this server")
        connection.own_host = host


def _forbidden(message: str) -> RefusedError:
    return RefusedError(HTTPStatus.FORBIDDEN, "CLUSTER_AUTHORIZATION_FAILED", message)
