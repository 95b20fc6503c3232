"""One line of a table: what a client is asked to do, and how that should end."""

from typing import Final, NamedTuple

TRIES: Final = 20
"""How often a call is repeated, half a second apart, until it prints what it should."""


class ClientCall(NamedTuple):
    """A call of a library, as Python, or the arguments of a command."""

    text: str
    fails: bool = False
    """It is meant to be refused, so that the page shows the sentence of the refusal, too."""
    until: str = ""
    """What it prints once the agents know what was changed; until then it is repeated."""


class Printed(NamedTuple):
    """What a call printed, without what changes between runs, and whether it was refused."""

    text: str
    refused: bool


class UnexpectedEndError(Exception):
    """A call failed that should work, or worked though it should be refused."""


def check(call: ClientCall, printed: Printed) -> None:
    """Raise UnexpectedEndError unless a call ended as its table says."""
    if printed.refused != call.fails or call.until not in printed.text:
        raise UnexpectedEndError(f"{call.text}\n{printed.text}")
