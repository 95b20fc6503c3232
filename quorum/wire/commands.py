"""The command of one Raft entry: the core's own shape around the owner's payloads.

Rule: the first byte says what kind of command it is, with the core's numbers. Only a regular
command has payloads. It is a call of the core's one replicated method, with the payloads as its
argument.
"""

from collections.abc import Sequence

from quorum.wire.codec import BadBytesError, dumps, loads

NO_OP = b"\1"
"""The command that a new leader appends; nothing is delivered of it."""
_REGULAR = b"\0"


def encode_command(payloads: Sequence[bytes]) -> bytes:
    """Return the command of an entry with these payloads."""
    return _REGULAR + dumps((0, (list(payloads),)))


def payloads_in(command: bytes) -> tuple[bytes, ...]:
    """Return the payloads of an entry; none of a command of another kind.

    Raises BadBytesError.
    """
    if command[:1] != _REGULAR:
        return ()
    try:
        _, (payloads,) = loads(command[1:])
    except (TypeError, ValueError) as error:
        raise BadBytesError(f"not a command of an entry: {error}") from error
    if type(payloads) is not tuple or {type(each) for each in payloads} - {bytes}:
        raise BadBytesError("an entry whose payloads are not bytes")
    found: tuple[bytes, ...] = payloads
    return found
