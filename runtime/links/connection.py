"""One connection between two peers, from its first byte to its end.

Rule: the node with the *higher id* decides whether the connection becomes the link, whichever node
dialled. Two nodes that dial each other at the same moment make two connections. Since only one node
decides, both keep the same one (`tcp` has the rule for the choice).

The messages of a connection, `>` from the node that dialled, `<` to it:

    the higher id dialled:  HELLO >   < HELLO   OPEN >
    the lower id dialled:   HELLO >   < HELLO   READY >   < OPEN

A node that closes a link in order sends a goodbye first. A connection that ends without a goodbye
was broken: the end of the stream alone looks the same whether a process is killed or closes.
"""

import asyncio
import errno
import socket
import ssl
from enum import Enum
from typing import Protocol, cast

from runtime.clock import Clock, Timer
from runtime.links.frames import (
    GOODBYE,
    BadFrameError,
    Hello,
    LinkFrameReader,
    Note,
    framed,
    framed_hello,
    framed_note,
    framed_refusal,
    parse_hello,
    parse_note,
)
from runtime.links.interface import FRAME_BYTES_MAX, LinkEnd
from runtime.loop import fair_loop
from runtime.sockets.credentials import PeerCertificate
from runtime.sockets.listening import Arrival
from runtime.sockets.tls import SeveralUrisError, certificate_of_peer
from runtime.sockets.transport import cut, socket_transport

GREETING_DEADLINE_S = 2.0


class ConnectionState(Enum):
    """How far a connection has come."""

    NEW = "new"
    GREETING = "greeting"
    AGREED = "agreed"
    """Both greetings are accepted. The higher id has not opened the link yet."""
    OPEN = "open"
    ENDED = "ended"


class Owner(Protocol):
    """The links that a connection belongs to."""

    self_id: int
    instance: bytes
    clock: Clock

    def made(self, connection: "LinkConnection") -> None:
        """The TCP connection is made, and the TLS handshake, if any, has succeeded."""

    def hello_for(self, connection: "LinkConnection") -> Hello:
        """Return our HELLO for this connection."""

    def judged(self, connection: "LinkConnection", greeting: bytes) -> int | str:
        """Return the node id that the greeting proves, or why it is refused."""

    def may_open(self, connection: "LinkConnection") -> bool:
        """Decide whether this becomes the link with its peer; called if our id is the higher."""

    def opened(self, connection: "LinkConnection") -> None:
        """The connection is the link with its peer from now on."""

    def arrived(self, connection: "LinkConnection", frame: bytes) -> None:
        """A frame arrived on the open link."""

    def ended(self, connection: "LinkConnection", end: LinkEnd, why: str) -> None:
        """The connection ended. Called once; `state_before` is its state before the end."""

    def defect(self, error: BaseException) -> None:
        """Our own code raised an exception while it handled a frame."""


class LinkConnection(asyncio.Protocol):
    """A connection. `dialled` is the id of the node that we dialled; None: it was accepted."""

    def __init__(
        self,
        owner: Owner,
        link: bytes | None,
        dialled: int | None,
        address: str,
        arrival: Arrival | None = None,
    ) -> None:
        """`arrival` is given for an accepted connection; it holds the connection's place."""
        self._owner = owner
        self.arrival = arrival
        self._reader = LinkFrameReader()
        self._transport: asyncio.Transport | None = None
        self._socket_transport: object = None
        self._deadline: Timer | None = None
        self.state = ConnectionState.NEW
        self.state_before = ConnectionState.NEW
        self.dialled = dialled
        self.address = address
        self.link = link or bytes(8)
        self.peer: int | None = dialled
        self.hello: Hello | None = None
        """The other side's HELLO, once it is accepted."""
        self.certified: str | None = None
        self.certificate: PeerCertificate | None = None
        """What the other side's certificate says; None: no TLS, or it names nobody."""
        self.opened_at = 0.0

    # -- asyncio's calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket_transport = socket_transport(transport)
        if self.state is ConnectionState.ENDED:
            self._transport.abort()
            return
        self._owner.made(self)
        sock = transport.get_extra_info("socket")
        _watch_route(sock)
        if self.arrival is None:
            fair_loop.prefer(sock)
        else:
            self.arrival.taken_over(self._displaced)
        secured = transport.get_extra_info("ssl_object")
        # None: the connection has no TLS. The empty string: the certificate has no URI, so it
        # identifies nobody.
        try:
            self.certificate = certificate_of_peer(secured)
            uri = "" if self.certificate is None else self.certificate.uri
            self.certified = None if secured is None else uri
        except SeveralUrisError as error:
            self.reject(str(error))
            return
        self.state = ConnectionState.GREETING
        self._deadline = self._owner.clock.call_later(GREETING_DEADLINE_S, self._too_late)
        if self.dialled is not None:
            self._transport.write(framed_hello(self._owner.hello_for(self)))

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._reader.feed(data):
                self._take(payload)
                if self.state is ConnectionState.ENDED:
                    return
        except BadFrameError as error:
            self.reject(str(error))
        except Exception as error:  # noqa: BLE001 - reported, and by default fatal
            self._owner.defect(error)

    def connection_lost(self, exc: Exception | None) -> None:
        end, why = _how_it_ended(exc)
        if self.state is ConnectionState.GREETING and self.dialled is not None and exc is None:
            why = "closed before it greeted us: does it accept our certificate?"
        self._end(end, why)
        cut(self._socket_transport)

    # -- calls of the owner -------------------------------------------------------------------

    def send(self, frame: bytes, bytes_max: int) -> bool:
        """Write a frame; False: more than `bytes_max` would wait to be sent, so it is dropped."""
        transport = self._transport
        assert transport is not None
        if transport.get_write_buffer_size() + len(frame) > bytes_max:
            return False
        transport.write(framed(frame))
        return True

    def close(self, why: str) -> None:
        """Close in order: send what is waiting, then the goodbye."""
        if self._transport is not None and self.state is ConnectionState.OPEN:
            self._transport.write(GOODBYE)
        self._end(LinkEnd.CLOSED, why)

    def reject(self, why: str, *, tell: bool = False) -> None:
        """End at once, because the other side is refused or sent something wrong.

        `tell`: first send it the reason.
        """
        if tell and self._transport is not None:
            self._transport.write(framed_refusal(why))
            self._end(LinkEnd.REJECTED, why)
        else:
            self._end(LinkEnd.REJECTED, why, abort=True)

    def replace(self, end: LinkEnd) -> None:
        """End at once, because another connection becomes the link."""
        self._end(end, "replaced by a newer connection", abort=True)

    # -- messages that arrive -----------------------------------------------------------------

    def _take(self, payload: bytes) -> None:
        if self.state is ConnectionState.OPEN:
            if payload:
                self._owner.arrived(self, payload)
            else:
                self._end(LinkEnd.CLOSED, "the peer said goodbye")
            return
        note, body = parse_note(payload)
        if note is Note.REFUSE:
            self._end(LinkEnd.REJECTED, f"refused by the peer: {body.decode(errors='replace')}")
        elif note is Note.HELLO and self.state is ConnectionState.GREETING:
            self._take_hello(parse_hello(body))
        elif note is Note.READY and self._is_ours_to_open() and self.dialled is None:
            self._open_as_higher()
        elif (
            note is Note.OPEN
            and self.state is ConnectionState.AGREED
            and not self._is_ours_to_open()
        ):
            self._open()
        else:
            raise BadFrameError(f"the note {note.name} out of turn")

    def _take_hello(self, hello: Hello) -> None:
        if self.dialled is None:
            self.link = hello.link
        elif hello.link != self.link:
            raise BadFrameError("a HELLO for another connection")
        if hello.instance == self._owner.instance:
            self.reject("we have dialled ourselves")
            return
        judged = self._owner.judged(self, hello.greeting)
        if isinstance(judged, str):
            self.reject(judged, tell=True)
            return
        self.peer = judged
        self.hello = hello
        self.state = ConnectionState.AGREED
        assert self._transport is not None
        # From now on the loop serves this connection before others. Not earlier: a stranger must
        # not get this priority.
        fair_loop.prefer(self._transport.get_extra_info("socket"))
        if self.dialled is None:
            self._transport.write(framed_hello(self._owner.hello_for(self)))
        elif self._is_ours_to_open():
            self._open_as_higher()
        else:
            self._transport.write(framed_note(Note.READY))

    def _is_ours_to_open(self) -> bool:
        return self.peer is not None and self._owner.self_id > self.peer

    def _open_as_higher(self) -> None:
        if self.state is not ConnectionState.AGREED:
            raise BadFrameError("READY out of turn")
        if not self._owner.may_open(self):
            self.reject(DUPLICATE, tell=True)
            return
        assert self._transport is not None
        self._transport.write(framed_note(Note.OPEN))
        self._open()

    def _open(self) -> None:
        self._reader.cap = FRAME_BYTES_MAX
        self.state = ConnectionState.OPEN
        self.opened_at = self._owner.clock.monotonic()
        self._cancel_deadline()
        self._owner.opened(self)

    # -- the end -----------------------------------------------------------------------------

    def _too_late(self) -> None:
        self._end(LinkEnd.UNREACHABLE, "no greeting in time", abort=True)

    def _displaced(self) -> None:
        self._end(LinkEnd.UNREACHABLE, "it gave way to a newer connection", abort=True)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self, end: LinkEnd, why: str, *, abort: bool = False) -> None:
        if self.state is ConnectionState.ENDED:
            return
        self.state_before, self.state = self.state, ConnectionState.ENDED
        self._cancel_deadline()
        if self._transport is not None:
            if abort:
                self._transport.abort()
            else:
                self._transport.close()
        self._owner.ended(self, end, why)


DUPLICATE = "there is a link between us already"
UNACKNOWLEDGED_MS = 5000
"""If the peer acknowledges no data and no probe for so long, the kernel breaks the connection: the
route to the peer is gone."""


def _watch_route(sock: socket.socket) -> None:
    """Have the kernel break the connection when the other side is unreachable."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)


def _how_it_ended(error: Exception | None) -> tuple[LinkEnd, str]:
    if isinstance(error, ssl.SSLError):
        return LinkEnd.REJECTED, f"TLS: {error}"
    if isinstance(error, ConnectionAbortedError):
        # asyncio raises this for a TLS handshake that took too long.
        return LinkEnd.UNREACHABLE, str(error)
    if isinstance(error, OSError) and error.errno in _NO_ANSWER:
        return LinkEnd.UNREACHABLE, str(error)
    return LinkEnd.RESET, "the connection broke" if error is None else str(error)


_NO_ANSWER = {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN}
