"""The command of one Raft entry: the core's own shape around the owner's payloads.

Rule: the first byte says what kind of command it is, with the core's numbers. Only a regular
command has payloads. It is a call of one of the core's two replicated methods: the first one takes
the payloads, the second one takes a set of voters and the payloads.
"""

from collections.abc import Sequence

from quorum.wire.codec import BadBytesError, dumps, loads

NO_OP = b"\1"
"""The command that a new leader appends; nothing is delivered of it."""
_REGULAR = b"\0"
_APPLY, _CHANGE_VOTERS = 0, 1
"""The numbers that the core gives to its replicated methods, by name (`quorum.raft.core`)."""
_VOTERS_COMMAND = b"\0\x92\1"
"""How the second method's command begins: two fields, of which the first is its number."""


def encode_command(payloads: Sequence[bytes]) -> bytes:
    """Return the command of an entry with these payloads."""
    return _REGULAR + dumps((_APPLY, (list(payloads),)))


def encode_voters_command(voters: bytes, payloads: Sequence[bytes]) -> bytes:
    """Return the command of an entry that changes the voters and has these payloads."""
    return _REGULAR + dumps((_CHANGE_VOTERS, (voters, list(payloads))))


def voters_in(command: bytes) -> bytes | None:
    """Return the encoded voters that a command names; None if it is another command.

    Raises BadBytesError.
    """
    if not command.startswith(_VOTERS_COMMAND):
        return None
    fields = loads(command[1:])[1]
    if type(fields) is not tuple or len(fields) != 2 or type(fields[0]) is not bytes:
        raise BadBytesError("an entry with voters of a wrong shape")
    voters: bytes = fields[0]
    return voters


def payloads_in(command: bytes) -> tuple[bytes, ...]:
    """Return the payloads of an entry; none of a command of another kind.

    Raises BadBytesError.
    """
    if command[:1] != _REGULAR:
        return ()
    try:
        _, (*_, payloads) = loads(command[1:])
    except (TypeError, ValueError) as error:
        raise BadBytesError(f"not a command of an entry: {error}") from error
    if type(payloads) is not tuple or {type(each) for each in payloads} - {bytes}:
        raise BadBytesError("an entry whose payloads are not bytes")
    found: tuple[bytes, ...] = payloads
    return found
