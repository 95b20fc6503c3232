"""Listening sockets: bind with clear errors, accept within limits, hand to a protocol.

Rule: a connection is counted from the moment it is accepted, before TLS and before its first
byte, so that silent strangers are bounded in number. asyncio's own servers count nothing and
keep one TLS context for ever; here the limits are ours and the context may be replaced.
"""

import asyncio
import errno
import os
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

BACKLOG = 512
ACCEPTS_AT_ONCE = 64
PAUSE_S = 0.2
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Arrival(NamedTuple):
    """Where an accepted connection came from."""

    address: str
    """Without the port; empty on a unix socket."""
    unix_uid: int | None
    """The user id of the other side, as the kernel says, on a unix socket."""


class Admission:
    """Counts connections, in all and from one address, against limits."""

    def __init__(self, total: int, per_address: int) -> None:
        self._total = total
        self._per_address = per_address
        self._inside: Counter[str] = Counter()
        self.inside = 0
        self.turned_away = 0

    def enter(self, address: str) -> bool:
        """Count one in, or turn it away."""
        if self.inside >= self._total or self._inside[address] >= self._per_address:
            self.turned_away += 1
            return False
        self.inside += 1
        self._inside[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count one out."""
        self.inside -= 1
        self._inside[address] -= 1
        if not self._inside[address]:
            del self._inside[address]


def bind_tcp(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of `host`; port 0 takes a free one, the same on each address.

    Raises OSError with a sentence that says what to do.
    """
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise OSError(
            errno.EADDRNOTAVAIL, f"cannot find the address of the host name {host!r}: {error}"
        ) from None
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            sockets.append(_bound(family, (str(address[0]), port, *address[2:])))
            port = sockets[0].getsockname()[1]
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise OSError(error.errno, _why_not(error, host, port)) from None
    return sockets


def bind_unix(path: Path) -> socket.socket:
    """Listen on a unix socket that only this user may use; one left by a dead process is removed.

    Raises OSError with a sentence that says what to do.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            _remove_if_dead(path)
        sock.setblocking(False)
        before = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise OSError(
            error.errno, f"cannot listen on the unix socket {path}: {error.strerror or error}"
        ) from None
    return sock


def _remove_if_dead(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError(errno.EADDRINUSE, "another process listens on it; stop that process")


def _bound(family: int, address: tuple[str | int, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host or 'this machine'} is in use by another process: "
            "stop that process or choose another port"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: choose one that is"
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}: choose one above 1023"
    return f"cannot listen on {host}:{port}: {error.strerror}"


class Listener:
    """Accepts connections on one socket and gives each a protocol."""

    def __init__(
        self,
        sock: socket.socket,
        make_protocol: Callable[[Arrival], asyncio.BaseProtocol],
        *,
        admission: Admission,
        tls: ssl.SSLContext | None,
        handshake_s: float,
        log: FilteringBoundLogger,
    ) -> None:
        self._sock = sock
        self._make_protocol = make_protocol
        self._admission = admission
        self._handshake_s = handshake_s
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        self.tls = tls
        """For connections accepted from now on."""
        self._loop.add_reader(sock, self._accept)

    @property
    def port(self) -> int:
        """The port it listens on; 0 on a unix socket."""
        name = self._sock.getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    def close(self) -> None:
        """Accept no more; what has its protocol goes on, what is in its handshake ends."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._sock)
        if self._pause is not None:
            self._pause.cancel()
        self._sock.close()
        for task in self._tasks:
            task.cancel()

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
            self._take(sock, name)

    def _take(self, sock: socket.socket, name: object) -> None:
        address = str(name[0]) if isinstance(name, tuple) else ""
        if not self._admission.enter(address):
            sock.close()
            return
        sock.setblocking(False)
        arrival = Arrival(address, _peer_uid(sock))
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._connect(sock, arrival))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, sock: socket.socket, arrival: Arrival) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(arrival),
                sock,
                ssl=self.tls,
                ssl_handshake_timeout=self._handshake_s if self.tls is not None else None,
            )
        except (OSError, asyncio.CancelledError) as error:
            # The handshake failed: the protocol was never connected, so nobody else counts out.
            # asyncio has closed the socket.
            self._admission.leave(arrival.address)
            if isinstance(error, asyncio.CancelledError):
                raise
            self._log.info(
                "tls_handshake_failed", address=arrival.address, error=str(error) or repr(error)
            )

    def _wait_for_resources(self, error: OSError) -> None:
        """Pause: the listening socket stays readable and would spin the loop."""
        self._log.error("accept_failed", error=str(error))
        self._loop.remove_reader(self._sock)
        self._pause = self._loop.call_later(
            PAUSE_S, lambda: self._loop.add_reader(self._sock, self._accept)
        )


def _peer_uid(sock: socket.socket) -> int | None:
    if sock.family != socket.AF_UNIX:
        return None
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    return int(uid)


_CREDENTIALS = struct.Struct("iII")
"""Process, user and group id."""
