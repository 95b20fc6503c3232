"""The entry of the log that changes the voters: the whole new set, and the owner's payloads.

Rule: an entry says the set in full, never "add 4", so it can be understood alone. A set has at most
one directory for each node id. It is encoded in the order of node ids, so equal sets have equal
bytes, and nothing else is read (ADR 0081).
"""

from collections.abc import Iterable
from typing import Any

from quorum.api import Voter
from quorum.wire.codec import BadBytesError, dumps, loads
from quorum.wire.commands import voters_in

VOTERS_MAX = 9
"""A set with more members would make every change wait for too many disks."""
_SHAPE = (int, bytes, str, int)
_ID_MAX = 2**31
_PORT_MAX = 2**16


def encode_voters(voters: Iterable[Voter]) -> bytes:
    """Return a set's encoding."""
    ordered = sorted(voters, key=lambda voter: voter.node_id)
    return dumps(tuple((v.node_id, v.directory_id, v.host, v.port) for v in ordered))


def decode_voters(data: bytes) -> tuple[Voter, ...]:
    """Read a set. Raises BadBytesError."""
    members = loads(data)
    if type(members) is not tuple or not 0 < len(members) <= VOTERS_MAX:
        raise BadBytesError(f"not a set of 1 to {VOTERS_MAX} voters")
    for member in members:
        if not _is_member(member):
            raise BadBytesError("a voter of a wrong shape")
    voters = tuple(Voter(*member) for member in members)
    if len({voter.node_id for voter in voters}) < len(voters) or encode_voters(voters) != data:
        raise BadBytesError("a set of voters that is not as we write it")
    return voters


def _is_member(member: Any) -> bool:
    if type(member) is not tuple or tuple(map(type, member)) != _SHAPE:
        return False
    node_id, directory_id, _, port = member
    return 0 <= node_id < _ID_MAX and len(directory_id) == 16 and 0 <= port < _PORT_MAX


def voters_of(command: bytes) -> tuple[Voter, ...] | None:
    """Return the voters that an entry's command names; None when it is another command.

    Raises BadBytesError.
    """
    encoded = voters_in(command)
    return None if encoded is None else decode_voters(encoded)
