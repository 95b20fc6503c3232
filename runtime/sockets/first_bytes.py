"""Waits for a connection's first bytes before anything is built for it.

Rule: a connection that has sent nothing costs a descriptor and a few hundred bytes. The server
makes a TLS session only after a whole ClientHello has arrived. Until then the bytes stay in the
kernel (MSG_PEEK), and SO_RCVLOWAT keeps the kernel from waking the loop for each of them. A
connection whose first bytes are no ClientHello gets no session. A client that sends plain HTTP is
told that the port uses TLS.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

RECORD_HEADER = 5
HANDSHAKE_RECORD = 0x16
RECORD_BYTES_MAX = 16384 + 256
_PLAIN_HTTP = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ")
SPEAKS_TLS = b"this port speaks TLS: use https://\n"
NOT_PLAIN = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(SPEAKS_TLS), SPEAKS_TLS)
)


class FirstBytes:
    """Watches one accepted socket; calls `on_ready` once, or `on_gone` once with a reason.

    The socket is closed before `on_gone` is called. The reason is empty if the other side sent no
    byte: that is not worth a log line.
    """

    __slots__ = ("_loop", "_on_gone", "_on_ready", "_seen", "_sock", "_timer", "_tls")

    def __init__(
        self,
        sock: socket.socket,
        *,
        tls: bool,
        deadline_s: float,
        on_ready: Callable[[], None],
        on_gone: Callable[[str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._tls = tls
        self._seen = -1
        self._on_ready, self._on_gone = on_ready, on_gone
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(deadline_s, self._too_late)
        self._loop.add_reader(sock, self._look)

    def close(self) -> None:
        """Stop watching and close the socket; neither callback is called."""
        if self._stop():
            self._sock.close()

    def _stop(self) -> bool:
        if self._timer is None:
            return False
        self._timer.cancel()
        self._timer = None
        self._loop.remove_reader(self._sock)
        # The callbacks refer to our owner, which refers to us. Break that cycle.
        self._on_ready, self._on_gone = _nobody_waits, _nobody_hears
        return True

    def _gone(self, why: str) -> None:
        on_gone = self._on_gone
        self.close()
        on_gone(why)

    def _too_late(self) -> None:
        if self._seen < 0:
            # A busy loop may not have looked yet at bytes that came in time.
            self._look()
        if self._timer is not None:
            self._gone("it sent no whole ClientHello in time" if self._seen > 0 else "")

    def _look(self) -> None:
        try:
            head = self._sock.recv(RECORD_HEADER + 3, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._gone(str(error))
            return
        if not head:
            self._gone("")
        elif not self._tls:
            self._ready()
        elif head[0] != HANDSHAKE_RECORD:
            self._refuse_plain(head)
        elif len(head) < RECORD_HEADER:
            self._wait_for(RECORD_HEADER, len(head))
        else:
            self._look_for_record(head)

    def _look_for_record(self, head: bytes) -> None:
        needed = RECORD_HEADER + int.from_bytes(head[3:5], "big")
        if head[1] != 3 or needed > RECORD_BYTES_MAX:
            self._gone("it sent no ClientHello")
            return
        there = len(self._sock.recv(needed, socket.MSG_PEEK))
        if there < needed:
            self._wait_for(needed, there)
        else:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._ready()

    def _wait_for(self, needed: int, there: int) -> None:
        if there == self._seen:
            # The kernel woke us without a new byte: the other side has closed.
            self._gone("it left within its ClientHello")
            return
        self._seen = there
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed)

    def _ready(self) -> None:
        on_ready = self._on_ready
        self._stop()
        on_ready()

    def _refuse_plain(self, head: bytes) -> None:
        if head.startswith(tuple(verb[: len(head)] for verb in _PLAIN_HTTP)):
            with contextlib.suppress(OSError):
                # With unread bytes, closing sends a reset, which could destroy the answer before
                # the client reads it.
                self._sock.recv(65536)
                self._sock.send(NOT_PLAIN)
                self._sock.shutdown(socket.SHUT_WR)
            self._gone("it speaks plain HTTP to a port that speaks TLS")
        else:
            self._gone("it sent no ClientHello")


def _nobody_waits() -> None:
    """Replaces `on_ready` once watching has ended."""


def _nobody_hears(why: str) -> None:
    """Replaces `on_gone` once watching has ended."""
