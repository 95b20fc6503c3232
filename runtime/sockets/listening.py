"""Listening sockets: accept within limits, wait for first bytes, then start a protocol.

Rule: a connection is counted from the moment it is accepted. It costs only a descriptor until its
first bytes have arrived (`first_bytes`) and `admission` gives it a slot. asyncio's own server is
not used: it doesn't count connections, makes a TLS session for every client, and can't replace its
TLS context.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
import struct
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, runtime_checkable

from structlog.typing import FilteringBoundLogger

from runtime.loop import fair_loop
from runtime.sockets.admission import Admission, ConnectionPlace, Rank
from runtime.sockets.first_bytes import FirstBytes

ACCEPTS_AT_ONCE = 64
PAUSE_S = 0.2
_IDLE: Final = Rank.IDLE
_BUSY: Final = Rank.BUSY
"""Python 3.11 finds a member through its class in 0.3 µs, which counts for each request."""
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
OnRefused = Callable[[str, str], None]
"""Arguments: address and reason. A connection ended before it got its protocol."""


@runtime_checkable
class Discardable(Protocol):
    """A protocol that is part of a reference cycle."""

    def discard(self) -> None:
        """Break the cycle, since the protocol was never connected.

        The process's garbage collector scans young objects only, so it could miss the cycle.
        """


class Arrival:
    """One accepted connection: its address, and its place in `admission`."""

    __slots__ = ("_admission", "_place", "address", "unix_uid")

    def __init__(self, admission: Admission, place: ConnectionPlace, unix_uid: int | None) -> None:
        self._admission = admission
        self._place = place
        self.address = place.address
        """The IP address, without the port; empty on a unix socket."""
        self.unix_uid = unix_uid
        """On a unix socket the other side's user id, from the kernel; else None."""

    def taken_over(self, end: Callable[[], None]) -> None:
        """Have `end` called if the connection must give its place to another, from now on."""
        self._place.end = end

    def busy(self) -> None:
        """The caller is authenticated, and a request is under way."""
        self._admission.move(self._place, _BUSY)

    def idle(self) -> None:
        """The request is over. A caller that is not authenticated yet stays so."""
        if self._place.rank is _BUSY:
            self._admission.move(self._place, _IDLE)

    def left(self) -> None:
        """Give the place back: the connection is closed, or need not be counted any more."""
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
        """`admission` returns what counts the connections of an address.

        `turned_away` is sent to a connection that gets no place, unless the listener uses TLS.
        The loop accepts on a `preferred` listener before it serves other sockets.
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
        """The context for handshakes that begin from now on; None: no TLS."""
        self._preferred = preferred
        self._listen()

    @property
    def port(self) -> int:
        """The port it listens on; 0 on a unix socket."""
        name = self._sock.getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    def close(self) -> None:
        """Accept no more. Connections that have their protocol stay open, the others end."""
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
        """Close one connection to make room, and stop accepting for `PAUSE_S`.

        Without the pause the loop would spin, because the socket stays readable.
        """
        self._log.error("accept_failed", error=str(error))
        self._admission("").make_room()
        self._loop.remove_reader(self._sock)
        self._pause = self._loop.call_later(PAUSE_S, self._listen)

    # -- for the connections that have no protocol yet -----------------------------------------

    def refused(self, address: str, why: str) -> None:
        """Report a connection that ended before it got its protocol."""
        if why and not self._closed:
            self._on_refused(address, why)

    def forget(self, early: "_Early") -> None:
        """The connection has its protocol, or it has ended."""
        self._early.discard(early)

    def first_bytes(self, early: "_Early", sock: socket.socket) -> FirstBytes:
        """Watch for the first bytes of a connection."""
        return FirstBytes(
            sock,
            tls=self.tls is not None,
            deadline_s=self._first_bytes_s,
            on_ready=early.on_ready,
            on_gone=early.on_gone,
        )

    async def connect(self, sock: socket.socket, arrival: Arrival) -> None:
        """Make the TLS handshake, if any, and connect the protocol. Raises OSError."""
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
            # Break a cycle: the traceback refers to asyncio's frames, these to a future, and the
            # future to the error.
            error.__traceback__ = error.__context__ = None
            raise


class _Early:
    """An accepted connection that has no protocol yet."""

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
        place.is_unread = partial(_has_unread_bytes, sock)

    def close(self) -> None:
        """Close the connection and give its place back."""
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:
            self._watch.close()
            self._sock.close()
            self._over()

    def on_gone(self, why: str) -> None:
        """The socket is closed, because the other side left or sent no ClientHello."""
        self._over()
        self._listener.refused(self._place.address, why)

    def on_ready(self) -> None:
        """The first bytes have arrived. Continue as soon as the connection gets a slot."""
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
            # The handshake failed, and asyncio has closed the socket. The protocol was never
            # connected, so only this code can give the place back.
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


def _has_unread_bytes(sock: socket.socket) -> bool:
    if sock.fileno() < 0:
        return False
    try:
        return bool(sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False


def _peer_uid(sock: socket.socket) -> int | None:
    if sock.family != socket.AF_UNIX:
        return None
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    return int(uid)


_CREDENTIALS = struct.Struct("iII")
"""Process, user and group id."""
