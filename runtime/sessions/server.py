"""A TCP server, with TLS or without, that gives each connection a session of bytes.

Rule: what holds for every listener is that of `runtime.sockets`: connections are counted from the
moment they are accepted, in total and by address, strangers may hold little memory, and TLS is
needed beyond this machine. Certificates can be replaced while the server runs, as the HTTP server's
(ADR 0044).
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Generator
from typing import Final, NamedTuple, cast

from structlog.typing import FilteringBoundLogger

from runtime.http.exposure import check_listener
from runtime.sessions.interface import ByteLink, ByteSession, PeerOnWire
from runtime.sockets.admission import Admission, Slots
from runtime.sockets.binding import bind_tcp
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.judging import STEP
from runtime.sockets.listening import Arrival, Listener
from runtime.sockets.refusals import HANDSHAKE, Refusals
from runtime.sockets.tls import SeveralUrisError, certificate_of_peer, trusts_others
from runtime.sockets.transport import cut, socket_transport

TLS_HANDSHAKE_S: Final = 5.0
UNREAD_S: Final = 60.0
"""A client that acknowledges none of our bytes for so long has gone."""
STRANGER_BYTES: Final = 128 * 1024
"""The memory of a TLS session and of a stranger's first requests."""

MakeSession = Callable[[ByteLink, PeerOnWire], ByteSession]


class ConnectionLimits(NamedTuple):
    """Numbers of connections, and times in seconds."""

    connections: int = 4_000
    connections_per_address: int = 2_000
    strangers: int = 64
    """Connections that have sent bytes and whose caller is not known yet."""
    stranger_grace_s: float = 2.0
    """While others wait, a stranger whose caller is not known after this time is closed."""
    first_bytes_s: float = 10.0


class SessionServer:
    """Serves sessions on one TCP address. To be made on a running loop."""

    def __init__(
        self,
        make_session: MakeSession,
        host: str,
        port: int,
        *,
        door: str,
        tls: ssl.SSLContext | None,
        insecure_network: bool,
        budget: ByteBudget,
        refusals: Refusals,
        log: FilteringBoundLogger,
        limits: ConnectionLimits | None = None,
    ) -> None:
        """`door` names the listener in log lines and metrics, such as "kafka"."""
        self._make_session = make_session
        self._host, self._port = host, port
        self._door = door
        self._tls = tls
        self._insecure_network = insecure_network
        self._refusals = refusals
        self._log = log
        self._limits = limits if limits is not None else ConnectionLimits()
        loop = asyncio.get_running_loop()
        self.admission = Admission(
            self._limits.connections,
            self._limits.connections_per_address,
            slots=Slots(
                self._limits.strangers, STRANGER_BYTES, budget, self._limits.stranger_grace_s
            ),
            now=loop.time,
            call_later=loop.call_later,
        )
        self.counters: Counter[str] = Counter()
        """For metrics: connections, connections_refused."""
        self._listeners: list[Listener] = []
        self._connections: set[SessionConnection] = set()

    def start(self) -> None:
        """Listen. Raises InsecureListenerError, and OSError that says what to do."""
        check_listener(
            self._host, tls=self._tls is not None, insecure_network=self._insecure_network
        )
        self._listeners = [self._listener(sock) for sock in bind_tcp(self._host, self._port)]

    def stop(self) -> None:
        """Accept no more connections and end all."""
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.abort()

    @property
    def port(self) -> int:
        """The number of the port; the system chose it if 0 was given."""
        return self._listeners[0].port

    @property
    def connections(self) -> int:
        """How many connections have a session."""
        return len(self._connections)

    def judge_again(self) -> int:
        """Close the connections of callers that would be refused now; return how many."""
        return self._judge_again(certificates=False)

    def judging(self) -> Generator[None, None, int]:
        """Do the same in steps."""
        ended = 0
        for number, connection in enumerate(list(self._connections), start=1):
            session = connection.session
            if session is not None:
                ended += session.judge_again(certificates=False)
            if number % STEP == 0:
                yield
        return ended

    def reload_tls(self, context: ssl.SSLContext) -> None:
        """Use another context for connections that begin from now on.

        Open connections stay, unless the new context trusts other authorities. Then those that
        showed a certificate end, so that the client's next handshake is verified anew.
        """
        assert self._tls is not None, "a listener without TLS does not take it up while it runs"
        trust_changed = trusts_others(self._tls, context)
        self._tls = context
        for listener in self._listeners:
            listener.tls = context
        if trust_changed:
            self._judge_again(certificates=True)

    def _judge_again(self, *, certificates: bool) -> int:
        sessions = [one.session for one in self._connections if one.session is not None]
        return sum(session.judge_again(certificates=certificates) for session in sessions)

    def _listener(self, sock: socket.socket) -> Listener:
        return Listener(
            sock,
            self._make_connection,
            admission=lambda _: self.admission,
            tls=self._tls,
            first_bytes_s=self._limits.first_bytes_s,
            handshake_s=TLS_HANDSHAKE_S,
            on_refused=self._refused_early,
            log=self._log,
        )

    def _refused_early(self, address: str, why: str) -> None:
        self.counters["connections_refused"] += 1
        self._refusals.refused(HANDSHAKE, address=address, error=why, door=self._door)

    def _make_connection(self, arrival: Arrival) -> "SessionConnection":
        return SessionConnection(arrival, self, self._make_session)

    def made(self, connection: "SessionConnection") -> None:
        self.counters["connections"] += 1
        self._connections.add(connection)

    def ended(self, connection: "SessionConnection") -> None:
        self._connections.discard(connection)


class SessionConnection(asyncio.Protocol):
    """asyncio's protocol for one connection; to its session it is a ByteLink."""

    def __init__(self, arrival: Arrival, server: SessionServer, make: MakeSession) -> None:
        self._arrival = arrival
        self._server = server
        self._make = make
        self._transport: asyncio.Transport | None = None
        self._socket_transport: object = None
        self._reads = True
        self._is_known = False
        self.session: ByteSession | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket_transport = socket_transport(transport)
        self._arrival.taken_over(self._transport.abort)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_S * 1000))
        self._server.made(self)
        self.session = self._make(self, self._peer(transport))

    def _peer(self, transport: asyncio.BaseTransport) -> PeerOnWire:
        tls = transport.get_extra_info("ssl_object")
        certificate, problem = None, None
        try:
            certificate = certificate_of_peer(tls)
        except SeveralUrisError as error:
            problem = str(error)
        return PeerOnWire(self._arrival.address, tls is not None, certificate, problem)

    def data_received(self, data: bytes) -> None:
        if self.session is not None:
            self.session.received(data)

    def pause_writing(self) -> None:
        if self.session is not None:
            self.session.blocked(True)

    def resume_writing(self) -> None:
        if self.session is not None:
            self.session.blocked(False)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._transport = None
        cut(self._socket_transport)
        self._socket_transport = None
        session, self.session = self.session, None
        if session is not None:
            session.lost()
        self._arrival.left()
        self._server.ended(self)

    # -- what the session asks for ---------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def read_on(self, wanted: bool) -> None:
        if self._transport is None or wanted is self._reads or self._transport.is_closing():
            return
        self._reads = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def known(self) -> None:
        if not self._is_known:
            self._is_known = True
            self._arrival.busy()
            self._arrival.idle()

    def busy(self, is_busy: bool) -> None:
        if not self._is_known:
            return
        if is_busy:
            self._arrival.busy()
        else:
            self._arrival.idle()
