"""Asks ZooKeeper for the shortest and the longest session that it grants.

Rule: a server changes a ttl that is out of its limits and says nothing but what it granted. So two
sessions are begun, with a ttl that is too short and one that is too long, and ended at once.
"""

import asyncio
import ssl as tls
import struct
from typing import Final, NamedTuple

from coordination.backend import BackendSettings
from coordination.errors import Unavailable
from coordination.until import Until

_PASSWORD: Final = struct.pack(">i16x", 16)
_CLOSE: Final = struct.pack(">iii", 8, 1, -11)
_DEFAULT_PORT: Final = 2181


class SessionLimits(NamedTuple):
    """In seconds."""

    least_s: float
    most_s: float


async def session_limits(
    settings: BackendSettings, ssl: tls.SSLContext | None, until: Until
) -> SessionLimits:
    """Ask the servers in turn. Raises Unavailable when none answers in time."""
    reasons = []
    left = len(settings.endpoints)
    for endpoint in settings.endpoints:
        host, port = _host_and_port(endpoint)
        try:
            async with asyncio.timeout(until.left_s / left):
                least = await _granted_ms(host, port, ssl, 1)
                most = await _granted_ms(host, port, ssl, 2**31 - 1)
        except (OSError, TimeoutError, EOFError, struct.error) as error:
            reasons.append(f"{endpoint}: {error!r}")
            left -= 1
            continue
        return SessionLimits(least / 1000, most / 1000)
    raise Unavailable(f"no server of ZooKeeper answered: {'; '.join(reasons)}")


async def _granted_ms(host: str, port: int, ssl: tls.SSLContext | None, asked_ms: int) -> int:
    reader, writer = await asyncio.open_connection(host, port, ssl=ssl)
    try:
        # Protocol version, last zxid, ttl, session, password, read-only.
        request = struct.pack(">iqiq", 0, 0, asked_ms, 0) + _PASSWORD + b"\0"
        writer.write(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        reply = await reader.readexactly(size)
        _, granted, _ = struct.unpack_from(">iiq", reply)
        writer.write(_CLOSE)
        await reader.read()
        return int(granted)
    finally:
        writer.transport.abort()


def _host_and_port(endpoint: str) -> tuple[str, int]:
    host, colon, port = endpoint.rpartition(":")
    if not colon or not port.isdigit():
        return endpoint.strip("[]"), _DEFAULT_PORT
    return host.strip("[]"), int(port)
