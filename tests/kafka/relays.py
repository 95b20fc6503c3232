"""Relays between processes on loopback, which can be cut: a network that carries nothing.

Rule: a cut relay keeps its connections open and carries no byte, as a network that loses packets.
When it is healed, it carries what waited. New connections are taken, and wait too.
"""

import socket
import threading
from contextlib import suppress

_CHUNK = 64 * 1024


class Relay:
    """One relay: what comes to its port goes to `target`."""

    def __init__(self, port: int, target: str) -> None:
        host, _, to = target.rpartition(":")
        self._target = (host, int(to))
        self._carries = threading.Event()
        self._carries.set()
        self._ended = False
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Carry nothing from now on."""
        self._carries.clear()

    def heal(self) -> None:
        """Carry again."""
        self._carries.set()

    def close(self) -> None:
        """End the relay and its connections."""
        self._ended = True
        self._carries.set()
        for each in (self._listener, *list(self._sockets)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        """Connect to the target for one connection, and carry both ways."""
        self._carries.wait()
        try:
            far = socket.create_connection(self._target, 5.0)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        self._sockets |= {near, far}
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._carries.wait()
                sink.sendall(data)
        # Whoever sees the end of one direction ends both.
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
            self._sockets.discard(each)
