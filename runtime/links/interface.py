"""The interface of links between nodes: they carry byte frames; a node is known by its number.

Rule: a link promises only this. A frame arrives whole or not at all. The frames that arrive between
one `on_link_up` and the next `on_link_down` arrive in the order in which they were sent. Links
break and open again; the sender decides what to send again.

When a link opens, each side sends a greeting and accepts or refuses the other's. The links don't
know what a greeting means.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

FRAME_BYTES_MAX = 16 * 1024 * 1024


class LinkEnd(Enum):
    """How a link ended, or failed to open."""

    CLOSED = "closed"
    """One side closed it in order."""
    RESET = "reset"
    """The connection broke. The peer's process may have died."""
    REFUSED = "refused"
    """A dial was refused. Nothing listens there, so the peer's process is not running."""
    UNREACHABLE = "unreachable"
    """No answer came in time. Nothing is known about the peer."""
    REJECTED = "rejected"
    """One side did not accept the other's greeting, certificate or frame."""


class Peer(NamedTuple):
    """The address of a peer."""

    node_id: int
    host: str
    port: int


class LinkHandler(Protocol):
    """The links call this. Every call is made on the loop."""

    def greeting(self) -> bytes:
        """Return the bytes to send first on a new link; at most 4 KiB."""

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        """Judge the other side's greeting.

        `node_id`: the node that we dialled; None if the link was accepted. `certified`: the URI
        in the peer's certificate; None without TLS, empty if it has none. Returns the peer's node
        id to accept it, or a sentence that says why not. Then the link is closed, and the sentence
        is logged and counted.
        """

    def on_link_up(self, node_id: int) -> None:
        """A link with the node is open, in both directions."""

    def on_frame(self, node_id: int, frame: bytes) -> None:
        """A frame has arrived on an open link."""

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        """An open link ended, or a redial failed (`REFUSED`, `UNREACHABLE`)."""


class PeerLinks(Protocol):
    """All links of one node."""

    def start(self, handler: LinkHandler) -> None:
        """Begin to listen and to dial. Raises OSError if the port is in use."""

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        """Keep links with exactly these nodes, except this node itself; redial with back-off."""

    def send(self, node_id: int, frame: bytes) -> bool:
        """Queue a frame of at least one byte and at most `FRAME_BYTES_MAX`.

        False: the frame is dropped, because no link is open or its queue is full. The queue is
        limited so that a peer that doesn't read can't fill our memory.
        """

    def stop(self) -> None:
        """Close all links and stop listening."""


OnRejected = Callable[[str], None]
