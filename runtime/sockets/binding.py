"""Binding listening sockets, with errors that say what to do.

Rule: only this user may use a unix socket. If a process that has ended left its socket behind, the
socket is removed.
"""

import errno
import os
import socket
from pathlib import Path

BACKLOG = 4096
"""When a leader is lost, all brokers connect to the next one at once. The kernel drops what is
beyond the backlog, and a client tries again only after a second. The system may have a lower
limit."""


def bind_tcp(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of `host`; port 0 takes a free port, the same on each address.

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
    """Listen on a unix socket, and first remove one that a process left behind when it ended.

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
