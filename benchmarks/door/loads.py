"""Loads of unauthenticated connections to a controller's ports, and readings of its memory.

Rule: every load is bounded in connections, bytes and time. It keeps its connections open until it
is closed. `benchmarks/door/__main__.py` uses the loads at full size, and
`tests/process/test_loads_at_the_door.py` at a smaller one.
"""

import socket
import ssl
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

MIB = 1024 * 1024


class Load:
    """Connections of strangers to one port, held open; use it in `with`."""

    def __init__(self, port: int, ca: Path) -> None:
        self.port = port
        self.opened = 0
        self._context = ssl.create_default_context(cafile=ca)
        self._held = ExitStack()

    def __enter__(self) -> "Load":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._held.close()

    def idle(self, count: int) -> None:
        """Open connections that send nothing."""
        for _ in range(count):
            with suppress(OSError):
                self._connect()

    def half_hellos(self, count: int) -> None:
        """Open connections that send a ClientHello and never answer."""
        for _ in range(count):
            with suppress(OSError):
                outgoing = ssl.MemoryBIO()
                client = self._context.wrap_bio(
                    ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1"
                )
                with suppress(ssl.SSLWantReadError):
                    client.do_handshake()
                self._connect().sendall(outgoing.read())

    def half_bodies(self, count: int, size: int, token: str | None = None) -> None:
        """Send a request's head and a part of its body, `size` bytes, on each connection."""
        credential = "" if token is None else f"authorization: Bearer {token}\r\n"
        head = (
            f"POST /v1/topics HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"{credential}content-length: {size + 100_000}\r\n\r\n"
        ).encode()
        for _ in range(count):
            with suppress(OSError):
                plain = self._connect()
                secured = self._context.wrap_socket(plain, server_hostname="127.0.0.1")
                self._held.callback(secured.close)
                secured.settimeout(5)
                secured.sendall(head + bytes(size))

    def _connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        self._held.callback(sock.close)
        self.opened += 1
        return sock
