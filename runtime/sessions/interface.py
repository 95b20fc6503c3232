"""What a session and the connection below it see of each other.

Rule: a session knows no socket. The server calls it, always on the loop, and never again after
`lost`. So the same session runs on the simulated network.
"""

from typing import NamedTuple, Protocol

from runtime.sockets.credentials import PeerCertificate


class PeerOnWire(NamedTuple):
    """Who is at the other end, as far as the connection itself says it."""

    address: str
    """The IP address, without the port."""
    tls: bool = False
    certificate: PeerCertificate | None = None
    """What the client's verified certificate says; None: it showed none."""
    certificate_problem: str | None = None
    """Why the client's certificate identifies nobody; None: it does, or there is none."""


class ByteLink(Protocol):
    """One connection, as its session sees it. After the end every call does nothing."""

    def write(self, data: bytes) -> None:
        """Send bytes, after those that were written before."""

    def close(self) -> None:
        """Send what was written, then end the connection."""

    def abort(self) -> None:
        """End the connection at once."""

    def read_on(self, wanted: bool) -> None:
        """Read what the other side sends, or leave it unread until this is called again."""

    def known(self) -> None:
        """The caller is authenticated from now on: the connection is no stranger's."""

    def busy(self, is_busy: bool) -> None:
        """A request is under way: the connection is not closed to make room for others."""


class ByteSession(Protocol):
    """The protocol on one connection."""

    def received(self, data: bytes) -> None:
        """Take bytes from the other side."""

    def blocked(self, is_blocked: bool) -> None:
        """The other side has not read enough of what was written, or has again."""

    def judge_again(self, *, certificates: bool) -> bool:
        """End the connection if its caller would be refused now; return whether it ends.

        `certificates`: the trusted authorities have changed, so callers with certificates end too.
        """

    def lost(self) -> None:
        """The connection has ended."""
