"""Dials a TCP address, and says why a dial failed.

Rule: REFUSED means that the other machine answered and nothing listens on the port, so the process
is not running. Any other failure says nothing about the process. asyncio's `create_connection` is
not used, because it joins the errors of several addresses into one text.
"""

import asyncio
import socket

from runtime.links.interface import LinkEnd


class DialFailedError(Exception):
    """A dial failed; `end` is REFUSED, RESET or UNREACHABLE."""

    def __init__(self, end: LinkEnd, why: str) -> None:
        super().__init__(why)
        self.end = end


async def dial(host: str, port: int, deadline_s: float) -> socket.socket:
    """Return a connected, non-blocking socket. Raises DialFailedError.

    The addresses of a name are tried one after another. The end is REFUSED only if all refuse.
    """
    try:
        async with asyncio.timeout(deadline_s):
            ends: list[DialFailedError] = []
            for family, address in await _addresses(host, port):
                try:
                    return await _connected(family, address)
                except DialFailedError as failure:
                    ends.append(failure)
    except TimeoutError:
        raise DialFailedError(LinkEnd.UNREACHABLE, "no answer in time") from None
    raise next((failure for failure in ends if failure.end is not LinkEnd.REFUSED), ends[0])


async def _addresses(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    kind = socket.SOCK_STREAM
    try:
        try:
            found = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=kind)
    except (OSError, ValueError) as error:
        # ValueError: it can be no name at all, such as one with an empty label.
        raise DialFailedError(
            LinkEnd.UNREACHABLE, f"cannot find the address of {host!r}: {error}"
        ) from None
    return [(family, address) for family, _, _, _, address in found]


async def _connected(family: int, address: tuple[object, ...]) -> socket.socket:
    try:
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise DialFailedError(LinkEnd.UNREACHABLE, str(error)) from None
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except OSError as error:
        sock.close()
        raise DialFailedError(_end_of(error), str(error)) from None
    except BaseException:
        sock.close()
        raise
    if sock.getsockname() == sock.getpeername():
        # A dial to a free port in the ephemeral range can connect to itself.
        sock.close()
        raise DialFailedError(LinkEnd.REFUSED, "nothing listens there")
    return sock


def _end_of(error: OSError) -> LinkEnd:
    if isinstance(error, ConnectionRefusedError):
        return LinkEnd.REFUSED
    if isinstance(error, ConnectionResetError):
        return LinkEnd.RESET
    return LinkEnd.UNREACHABLE
