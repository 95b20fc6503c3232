"""The peers of one node: makes the parts that work on the links, and passes each frame to one."""

from quorum.guard.context import NodeContext
from quorum.guard.guard import Guard
from quorum.peers.contacts import Contacts
from quorum.peers.digests import Digests
from quorum.peers.dispatch import Dispatch
from quorum.peers.files import FileExchange
from quorum.peers.format_negotiation import FormatNegotiation
from quorum.peers.links import Membership
from quorum.wire.frame_types import FormationFrame


class Peers:
    """The parts of one node that work on its links."""

    def __init__(self, context: NodeContext, guard: Guard) -> None:
        self.files = FileExchange(context)
        formats = FormatNegotiation(context, self.files)
        self.files.formats_for = formats.answer
        self.digests = Digests(context, guard.freshness)
        self.contacts = Contacts(context)
        self.links = Membership(context, guard, formats)
        self._dispatch = Dispatch(context, guard, self.files, self.digests)

    def take(self, node_id: int, data: bytes) -> bool:
        """Read a frame and handle it; False when it is refused.

        Raises BrokenPromiseError, OSError.
        """
        read = self._dispatch.read(node_id, data)
        if read is None:
            return False
        replica, frame = read
        if isinstance(frame, FormationFrame):
            self.links.on_formation(replica, frame.formation)
        else:
            self._dispatch.take(replica, frame)
        return True
