"""The interface of links between peers: byte frames to nodes that are known by a number.

Rule: a link promises only this: a frame arrives whole or not at all, and the frames that arrive
between one `on_link_up` and the next `on_link_down` arrive in the order they were sent. Links break
and open again; the sender decides what to send again.

The greeting is opaque here. Each side sends one when a link opens, and accepts or rejects the
other's.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

FRAME_BYTES_MAX = 16 * 1024 * 1024


class LinkEnd(Enum):
    """How a link ended, or failed to open."""

    CLOSED = "closed"
    """Orderly, by either side."""
    RESET = "reset"
    """The connection broke: the peer's process may have died."""
    REFUSED = "refused"
    """A dial was refused: nothing listens there, so the peer's process is not running."""
    UNREACHABLE = "unreachable"
    """A dial got no answer in time: nothing is known about the peer."""
    REJECTED = "rejected"
    """One side did not accept the other's greeting, certificate or frame."""


class Peer(NamedTuple):
    """Where a peer is reached."""

    node_id: int
    host: str
    port: int


class LinkHandler(Protocol):
    """Whom the links talk to; every call is made on the loop."""

    def greeting(self) -> bytes:
        """Return what to send first on a new link; at most 4 KiB."""

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        """Judge the other side's greeting.

        `node_id` is whom we dialled (None on an accepted link), `certified` the name in the
        peer's certificate where TLS is on. Returns the peer's node id to accept, or a sentence
        that says why not; the link is then closed and the sentence logged and counted.
        """

    def on_link_up(self, node_id: int) -> None:
        """A link in both directions is open."""

    def on_frame(self, node_id: int, frame: bytes) -> None:
        """A frame has arrived on an open link."""

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        """An open link ended, or (`REFUSED`, `UNREACHABLE`) a redial failed."""


class PeerLinks(Protocol):
    """All links of one node."""

    def start(self, handler: LinkHandler) -> None:
        """Begin to listen and to dial. Raises OSError when the port is in use."""

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        """Keep links to exactly these (ourselves left out); redials with back-off."""

    def send(self, node_id: int, frame: bytes) -> bool:
        """Queue a frame; at least one byte, at most `FRAME_BYTES_MAX`.

        False, and the frame is dropped, when no link is open or its queue is full (a peer that
        does not read must not fill our memory).
        """

    def stop(self) -> None:
        """Close everything."""


OnRejected = Callable[[str], None]
