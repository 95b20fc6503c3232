"""The first message on a link: which cluster, node, disk and formation the sender has.

Rule: everything that distinguishes two clusters, nodes or disks is compared here, before the link
opens. A refusal is a sentence for an operator.
"""

from collections.abc import Collection
from typing import NamedTuple

from quorum.config import QuorumConfig
from quorum.journal import RaftJournal
from quorum.membership.formation import Formation, generation_of
from quorum.wire.codec import BadBytesError, dumps, loads

WIRE_FORMAT = 1
"""Of the greeting, and of every link when it begins (`quorum.peers.format_negotiation`)."""
_SHAPE = (int, str, int, bytes, bool, bytes)


class Greeting(NamedTuple):
    """What a node tells its peer about itself."""

    wire_format: int
    cluster_id: str
    node_id: int
    directory_id: bytes
    empty: bool
    """The node has no formation and may take part in a new one."""
    formation: bytes
    """The formation in its journal, once it is durable there; empty when there is none."""


def encode_greeting(config: QuorumConfig, journal: RaftJournal, formation: Formation) -> bytes:
    """Return our greeting."""
    return dumps(
        Greeting(
            WIRE_FORMAT,
            config.cluster_id,
            config.node_id,
            journal.directory_id,
            formation.is_empty,
            formation.announced,
        )
    )


def decode_greeting(data: bytes) -> Greeting:
    """Read a greeting. Raises BadBytesError."""
    fields = loads(data)
    if type(fields) is tuple and fields and type(fields[0]) is int and fields[0] > WIRE_FORMAT:
        # A later format may have more fields. In format 1 a greeting has exactly these.
        fields = fields[: len(_SHAPE)]
    if type(fields) is not tuple or tuple(map(type, fields)) != _SHAPE or len(fields[3]) != 16:
        raise BadBytesError("not a greeting of a Logberg controller")
    return Greeting(*fields)


def certificate_name(cluster_id: str, node_id: int) -> str:
    """Return the name (a URI SAN) that a controller's certificate must bear."""
    return f"quorum://{cluster_id}/{node_id}"


def judge_greeting(
    config: QuorumConfig,
    journal: RaftJournal,
    formation: Formation,
    dialled: int | None,
    data: bytes,
    certified: str | None,
    also_known: Collection[int] = (),
) -> Greeting | str:
    """Return the greeting if it is accepted, else the sentence that says why not.

    A node that is not configured is accepted if its certificate names it, or if a set of voters has
    it: `also_known`. It observes until it is added to the voters (ADR 0081).
    """
    try:
        greeting = decode_greeting(data)
    except BadBytesError as error:
        return f"the greeting is not one of a Logberg controller: {error}"
    who = f"node {greeting.node_id}"
    if greeting.wire_format != WIRE_FORMAT:
        return (
            f"{who} speaks wire format {greeting.wire_format} and no older one, and our links "
            f"begin with {WIRE_FORMAT}: its release is too far from ours. Run a release in between "
            "on all controllers first"
        )
    if greeting.cluster_id != config.cluster_id:
        return f"{who} belongs to cluster {greeting.cluster_id}, this node to {config.cluster_id}"
    if dialled is not None and greeting.node_id != dialled:
        return f"node {dialled} was dialled, {who} answered: check the configured addresses"
    if greeting.node_id == config.node_id:
        return f"another process runs under our node id {config.node_id}"
    configured = greeting.node_id in {peer.node_id for peer in config.peers}
    if not (configured or greeting.node_id in also_known) and certified is None:
        return (
            f"{who} is not among the configured controllers, and no certificate says who it is: "
            "name it in this node's configuration, or use TLS"
        )
    if certified is not None and certified != certificate_name(config.cluster_id, greeting.node_id):
        return f"{who} shows a certificate for {repr(certified) if certified else 'nobody'}"
    if greeting.directory_id == journal.directory_id:
        return f"{who} runs on a copy of our folder: give it an empty one"
    if formation.differs(greeting.formation):
        return _difference(who, formation, greeting.formation)
    return greeting


def _difference(who: str, formation: Formation, theirs: bytes) -> str:
    """Say why two nodes whose formations differ don't work together."""
    ours, other = formation.generation, generation_of(theirs)
    if other is None or other == ours:
        return f"{who} was formed with other voters: one of the two folders is of another quorum"
    if other.number < ours.number:
        return (
            f"{who} is of generation {other.number} of the cluster, and this node of generation "
            f"{ours.number}, which a recovery began. A folder of an earlier generation may not "
            f"come back: move the folder of {who} away and start it with an empty one"
        )
    if other.number > ours.number:
        return (
            f"the cluster was recovered: {who} is of its generation {other.number}, and this "
            f"folder of generation {ours.number}. A folder of an earlier generation may not come "
            "back: stop this node, move its folder away and start it with an empty one"
        )
    return (
        f"{who} and this node are of two different generations {ours.number} of the cluster: it "
        "was recovered twice, from two folders. Decide which one goes on, and stop every node of "
        "the other"
    )
