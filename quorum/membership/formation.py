"""The first start: how the configured controllers become the first set of voters.

Rule: a node forms the quorum once every configured controller has answered "empty". It then writes
the *formation* (cluster id, and every node id with its directory id) to its journal, before it
votes. An empty node adopts a peer's formation if that names the node's own directory. Otherwise it
is an observer.

A directory that is not among the voters never stands, and its acknowledgements do not count. So a
wiped disk can't break what its node promised before. Nodes with different formations never talk to
each other. The formation never changes: `voter_history` says who votes since.

A recovery writes a formation, too (`quorum.recovery`). That one also names its *generation*: a
number, and an id that the recovery drew. So it differs from every formation of an earlier
generation, also where it names the same nodes.

Empty means that no formation is known. A damaged journal is not empty, whatever is left of it.

A node tells its peers the formation only once it is durable in its own journal. Otherwise it could
forget it in a loss of power, while the others know it and count as not empty. From then on it tells
it again to every linked peer that has not shown that it has written it (`quorum.peers.links`).
"""

from typing import Any

from quorum.api import FIRST_GENERATION, GENERATION_ID_BYTES, ClusterGeneration
from quorum.config import QuorumConfig
from quorum.journal import RaftJournal
from quorum.wire.codec import BadBytesError, dumps, loads

_GENERATION_MAX = 2**31
Pinned = dict[int, bytes]
"""Directory id by node id."""


def encode_formation(
    cluster_id: str, pinned: Pinned, generation: ClusterGeneration = FIRST_GENERATION
) -> bytes:
    """Return a formation's encoding; equal formations have equal bytes."""
    members = tuple(sorted(pinned.items()))
    if generation == FIRST_GENERATION:
        return dumps((cluster_id, members))
    return dumps((cluster_id, members, tuple(generation)))


def decode_formation(data: bytes, cluster_id: str) -> Pinned:
    """Read a formation. Raises BadBytesError if it is malformed or of another cluster."""
    try:
        whose, members, generation = _fields_of(data)
        # Don't convert: `bytes(n)` makes n zeros, and a peer chooses n.
        pinned = dict(members)
        if {(type(n), type(d)) for n, d in pinned.items()} - {(int, bytes)}:
            raise BadBytesError("a formation that does not map node ids to directory ids")
    except (TypeError, ValueError) as error:
        raise BadBytesError(f"not a formation: {error}") from error
    if encode_formation(cluster_id, pinned, generation) != data:
        raise BadBytesError(f"a formation of cluster {whose!r}, or not as we write it")
    return pinned


def generation_of(formation: bytes) -> ClusterGeneration | None:
    """Return the generation that a formation names; None if these bytes name none."""
    try:
        return _fields_of(formation)[2]
    except (BadBytesError, TypeError, ValueError):
        return None


def _fields_of(data: bytes) -> tuple[Any, Any, ClusterGeneration]:
    """Return cluster id, members and generation. Only the generation is checked.

    Raises BadBytesError, TypeError, ValueError.
    """
    whose, members, *rest = loads(data)
    if not rest:
        return whose, members, FIRST_GENERATION
    ((number, drawn),) = rest
    if (type(number), type(drawn)) != (int, bytes) or len(drawn) != GENERATION_ID_BYTES:
        raise BadBytesError("a formation whose generation is no number with an id")
    if not 1 < number < _GENERATION_MAX:
        raise BadBytesError(f"a formation of generation {number}")
    return whose, members, ClusterGeneration(number, drawn)


class Formation:
    """The first voters, as far as this node knows them."""

    def __init__(self, config: QuorumConfig, journal: RaftJournal) -> None:
        self._config = config
        self._journal = journal
        self._answers: dict[int, bytes] = {}
        self._written_to = 0
        """The position behind the frame by which this process wrote it; 0: it did not."""
        self.encoded = journal.formation or b""
        """The formation that we wrote, or as an observer learned; empty while none is known."""
        self.pinned: Pinned = {}
        if self.encoded:
            self.pinned = decode_formation(self.encoded, config.cluster_id)

    @property
    def known(self) -> bool:
        """Whether the voters are known."""
        return bool(self.pinned)

    @property
    def generation(self) -> ClusterGeneration:
        """The generation of the voters that are known; the first while none are."""
        return generation_of(self.encoded) or FIRST_GENERATION

    @property
    def is_empty(self) -> bool:
        """Whether we greet as an empty node, while the cluster forms."""
        return not self.encoded and not self._journal.damage

    @property
    def announced(self) -> bytes:
        """The formation in our journal, once it is durable there; empty before."""
        is_durable = self._journal.durable_position >= self._written_to
        return (self._journal.formation or b"") if is_durable else b""

    @property
    def is_learned(self) -> bool:
        """Whether we know it from a peer and have not written it."""
        return bool(self.encoded) and self._journal.formation is None

    def write(self) -> None:
        """Write it to our journal: this node votes, so it must know it at its next start."""
        self._journal.set_formation(self.encoded)
        self._written_to = self._journal.position_of_vote

    def differs(self, other: bytes) -> bool:
        """Tell whether a peer's formation contradicts ours."""
        return bool(other and self.encoded and other != self.encoded)

    def peer_is_empty(self, node_id: int, directory_id: bytes) -> None:
        """Note that a controller, linked now, has no formation. Only those configured count."""
        if node_id in {peer.node_id for peer in self._config.peers}:
            self._answers[node_id] = directory_id

    def peer_is_gone(self, node_id: int) -> None:
        """Forget its answer: it may not hold any more."""
        self._answers.pop(node_id, None)

    def learn(self, encoded: bytes) -> bool:
        """Adopt a peer's formation if we know none; True when the voters are known now.

        Raises BadBytesError.
        """
        if self.known or not encoded:
            return False
        pinned = decode_formation(encoded, self._config.cluster_id)
        self._pin(encoded, pinned)
        return True

    def form(self) -> bool:
        """Form the quorum if every configured controller is empty; True when that happened now."""
        if self.known or not self.is_empty:
            return False
        mine = {self._config.node_id: self._journal.directory_id}
        configured = {peer.node_id for peer in self._config.peers}
        answers, first = {**self._answers, **mine}, self._config.forming
        # All must be empty, also those that will only observe: a node whose folder was wiped must
        # not form a quorum beside the one that there is.
        if set(answers) != configured or self._config.node_id not in first:
            return False
        pinned = {node_id: answers[node_id] for node_id in first}
        self._pin(encode_formation(self._config.cluster_id, pinned), pinned)
        return True

    def _pin(self, encoded: bytes, pinned: Pinned) -> None:
        self.encoded, self.pinned = encoded, pinned
        self._answers.clear()
        if pinned.get(self._config.node_id) == self._journal.directory_id:
            self.write()
