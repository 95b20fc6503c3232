"""Listening sockets: accept within limits, wait for first bytes, then start a protocol.

Rule: a connection is counted from the moment it is accepted. It costs only a descriptor until its
first bytes have arrived (`first_bytes`) and `admission` gives it a slot. asyncio's own servers
don't count connections, make a TLS session for every client, and keep one TLS context for ever.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from structlog.typing import FilteringBoundLogger

from runtime.loop import fair_loop
from runtime.sockets.admission import Admission, ConnectionPlace, Rank
from runtime.sockets.first_bytes import FirstBytes

ACCEPTS_AT_ONCE = 64
PAUSE_S = 0.2
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
OnRefused = Callable[[str, str], None]
"""(address, why): a connection ended before it had a protocol, and for a reason worth telling."""


@runtime_checkable
class Discardable(Protocol):
    """A protocol that refers to itself by way of others."""

    def discard(self) -> None:
        """Let go of them: it was never connected, and the collector looks at young objects only."""


class Arrival:
    """One accepted connection: where it came from, and its place."""

    __slots__ = ("_admission", "_place", "address", "unix_uid")

    def __init__(self, admission: Admission, place: ConnectionPlace, unix_uid: int | None) -> None:
        self._admission = admission
        self._place = place
        self.address = place.address
        """Without the port; empty on a unix socket."""
        self.unix_uid = unix_uid
        """The user id of the other side, as the kernel says, on a unix socket."""

    def taken_over(self, end: Callable[[], None]) -> None:
        """From now on `end` closes the connection when another one needs its place."""
        self._place.end = end

    def busy(self) -> None:
        """Its caller is known and has a request under way."""
        self._admission.move(self._place, Rank.BUSY)

    def idle(self) -> None:
        """Its request is over. Who is not known yet stays so."""
        if self._place.rank is Rank.BUSY:
            self._admission.move(self._place, Rank.IDLE)

    def left(self) -> None:
        """It is closed, or counts no more."""
        self._admission.leave(self._place)


class Listener:
    """Accepts connections on one socket and gives each a protocol."""

    def __init__(
        self,
        sock: socket.socket,
        make_protocol: Callable[[Arrival], asyncio.BaseProtocol],
        *,
        admission: Callable[[str], Admission],
        tls: ssl.SSLContext | None,
        first_bytes_s: float,
        handshake_s: float,
        on_refused: OnRefused,
        log: FilteringBoundLogger,
        turned_away: bytes = b"",
        preferred: bool = False,
    ) -> None:
        """`admission`: who counts the connections of an address.

        `turned_away` is sent, without TLS, to a connection that finds no place. A `preferred`
        listener accepts before the loop serves anybody else.
        """
        self._sock = sock
        self._make_protocol = make_protocol
        self._admission = admission
        self._first_bytes_s = first_bytes_s
        self.handshake_s = handshake_s
        self._on_refused = on_refused
        self._log = log
        self._turned_away = turned_away
        self._loop = asyncio.get_running_loop()
        self._early: set[_Early] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        self.tls = tls
        """For connections whose ClientHello arrives from now on."""
        self._preferred = preferred
        self._listen()

    @property
    def port(self) -> int:
        """The port it listens on; 0 on a unix socket."""
        name = self._sock.getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    def close(self) -> None:
        """Accept no more; what has its protocol goes on, what has none yet ends."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._sock)
        if self._pause is not None:
            self._pause.cancel()
        self._sock.close()
        for early in list(self._early):
            early.close()

    def _listen(self) -> None:
        if self._preferred:
            fair_loop.prefer(self._sock)
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                sock, name = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._wait_for_resources(error)
                return
            self._take(sock, str(name[0]) if isinstance(name, tuple) else "")

    def _take(self, sock: socket.socket, address: str) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        place = ConnectionPlace(address, sock.close)
        admission = self._admission(address)
        if not admission.enter(place):
            self._turn_away(sock)
            return
        self._early.add(_Early(self, sock, admission, place))

    def _turn_away(self, sock: socket.socket) -> None:
        if self._turned_away and self.tls is None:
            with contextlib.suppress(OSError):
                sock.send(self._turned_away)
        sock.close()

    def _wait_for_resources(self, error: OSError) -> None:
        """End one connection for the next, and pause: the socket stays readable and would spin."""
        self._log.error("accept_failed", error=str(error))
        self._admission("").make_room()
        self._loop.remove_reader(self._sock)
        self._pause = self._loop.call_later(PAUSE_S, self._listen)

    # -- for the connections that have no protocol yet -----------------------------------------

    def refused(self, address: str, why: str) -> None:
        """Tell of a connection that ended early."""
        if why and not self._closed:
            self._on_refused(address, why)

    def forget(self, early: "_Early") -> None:
        """It has its protocol, or it has ended."""
        self._early.discard(early)

    def first_bytes(self, early: "_Early", sock: socket.socket) -> FirstBytes:
        """Watch for its first bytes."""
        return FirstBytes(
            sock,
            tls=self.tls is not None,
            deadline_s=self._first_bytes_s,
            on_ready=early.on_ready,
            on_gone=early.on_gone,
        )

    async def connect(self, sock: socket.socket, arrival: Arrival) -> None:
        """Shake hands where TLS is on, and connect the protocol. Raises OSError."""
        protocol = self._make_protocol(arrival)
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                sock,
                ssl=self.tls,
                ssl_handshake_timeout=self.handshake_s if self.tls is not None else None,
            )
        except BaseException as error:
            if isinstance(protocol, Discardable):
                protocol.discard()
            # asyncio's frames in it hold the future that holds the error.
            error.__traceback__ = error.__context__ = None
            raise


class _Early:
    """An accepted connection before it has a protocol."""

    __slots__ = (
        "_admission",
        "_has_begun",
        "_listener",
        "_place",
        "_sock",
        "_task",
        "_timer",
        "_watch",
    )

    def __init__(
        self, listener: Listener, sock: socket.socket, admission: Admission, place: ConnectionPlace
    ) -> None:
        self._listener = listener
        self._sock = sock
        self._admission = admission
        self._place = place
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._watch = listener.first_bytes(self, sock)
        place.end = self._displaced

    def close(self) -> None:
        """End it; its place is given back."""
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:
            self._watch.close()
            self._sock.close()
            self._over()

    def on_gone(self, why: str) -> None:
        """It left, or was no client of ours."""
        self._over()
        self._listener.refused(self._place.address, why)

    def on_ready(self) -> None:
        """Its first bytes are there: go on as soon as it may cost memory."""
        self._timer = asyncio.get_running_loop().call_later(
            self._listener.handshake_s, self._displaced
        )
        self._admission.when_room(self._place, self._begin)

    def _displaced(self) -> None:
        had_sent = self._timer is not None
        self.close()
        if had_sent:
            self._listener.refused(self._place.address, "it did not finish its handshake in time")

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        self._has_begun = True
        arrival = Arrival(self._admission, self._place, _peer_uid(self._sock))
        try:
            await self._listener.connect(self._sock, arrival)
        except (OSError, asyncio.CancelledError) as error:
            # The handshake failed: the protocol was never connected, so nobody else counts out.
            # asyncio has closed the socket.
            self._over()
            if isinstance(error, asyncio.CancelledError):
                raise
            self._listener.refused(self._place.address, str(error) or repr(error))
        else:
            self._task = None
            self._listener.forget(self)

    def _over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._task = None
        self._admission.leave(self._place)
        self._listener.forget(self)


def _peer_uid(sock: socket.socket) -> int | None:
    if sock.family != socket.AF_UNIX:
        return None
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    return int(uid)


_CREDENTIALS = struct.Struct("iII")
"""Process, user and group id."""
