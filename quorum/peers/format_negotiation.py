"""Chooses the wire format of each link, by a question that release 0.1 understands.

Release 0.1 greets with format 1, refuses a greeting of any other shape, and logs frames of unknown
kinds. So every link begins with format 1. A node that speaks more asks its peer for the list of a
folder whose name holds the formats that the node speaks: `wire-formats/1-2`. A newer peer notes
them and answers with its own. Release 0.1 answers that it shares no such folder, as it does for
every folder that it doesn't share, and the link stays at format 1.

Rule: a choice ends with its link, because the peer may come back as another build. If the answer is
lost, the link stays at format 1.

Format 2 is format 1 with two freedoms: a frame may have more fields behind those that its reader
knows, and a frame may be of a kind that its reader doesn't know. The reader ignores both. Format 3
has two more kinds of frames (`quorum.peers.contacts`).
"""

from collections.abc import Sequence

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.peers.files import FileExchange
from quorum.wire.formats import OLDEST_FORMAT, TOLERANT_FORMAT

_FOLDER = "wire-formats/"
_ANSWER_BYTES_MAX = 4096
_OLDEST, _NEWEST = "oldest", "newest"
Range = tuple[int, int]


class FormatNegotiation:
    """Asks peers for their formats, and answers peers that ask."""

    def __init__(self, context: NodeContext, files: FileExchange) -> None:
        self._context = context
        self._files = files

    @property
    def _newest(self) -> int:
        return self._context.config.newest_format

    def on_link_up(self, replica: PeerReplica) -> None:
        """Begin with format 1, and ask the peer for its formats, before anything else."""
        replica.wire_format = OLDEST_FORMAT
        replica.links += 1
        if self._newest < TOLERANT_FORMAT:
            return
        link = replica.links

        def answered(listing: Sequence[tuple[str, int]] | None) -> None:
            if listing is not None and replica.linked and replica.links == link:
                said = dict(listing)
                if _OLDEST in said and _NEWEST in said:
                    self._agree(replica, (said[_OLDEST], said[_NEWEST]))

        folder = f"{_FOLDER}{OLDEST_FORMAT}-{self._newest}"
        self._files.ask_list(replica.node_id, folder, answered, _ANSWER_BYTES_MAX)

    def answer(self, replica: PeerReplica, folder: str) -> list[tuple[str, int]] | None:
        """Return our range if a folder's name asks for it, else None."""
        if self._newest < TOLERANT_FORMAT or not folder.startswith(_FOLDER):
            return None
        said = _range(folder.removeprefix(_FOLDER))
        if said is None:
            return None
        self._agree(replica, said)
        return [(_NEWEST, self._newest), (_OLDEST, OLDEST_FORMAT)]

    def _agree(self, replica: PeerReplica, said: Range) -> None:
        common = min(said[1], self._newest)
        if common >= max(said[0], OLDEST_FORMAT):
            replica.wire_format = common


def _range(text: str) -> Range | None:
    low, dash, high = text.partition("-")
    numbers = [part for part in (low, high) if part.isascii() and part.isdigit() and len(part) < 6]
    return (int(low), int(high)) if dash and len(numbers) == 2 else None
