"""Whose credentials a request had, from a controller's answer to `GET /v1/caller`.

Rule: an agent knows no tokens, so it asks a controller with the token. Every controller answers it
in every state, to whoever has shown credentials, and no right is needed.
"""

from typing import Final

from metadata.errors import ErrorCode
from metadata.messages.message import ReplyMessage
from metadata.messages.wire import decode

CALLER: Final = "/v1/caller"


class CallerReply(ReplyMessage, frozen=True):
    """Who asks, as the controller has authenticated it."""

    principal: str
    """For whom the request is: a broker may ask for its users, as far as the settings grant it."""
    method: str
    """How the caller was authenticated: none, certificate, token, unix-socket."""
    address: str = ""
    """The caller's IP address; empty on a unix socket."""
    super_user: bool = False
    """Whether the controller's settings let the caller do everything."""
    name: str | None = None
    """The name behind the principal, without `User:`, if that is a pseudonym. None: it is none,
    or the controller can't open the name, or the caller asks for somebody else."""


def is_known(status: int) -> bool:
    """Return whether a controller knows the caller. A release of before has no such path."""
    return status in (200, ErrorCode.NOT_FOUND.status)


def principal_in(status: int, body: bytes, content_type: str) -> str:
    """Return the principal of a known caller; empty: the controller is too old to say it.

    Raises LogbergError.
    """
    return decode(CallerReply, body, content_type).principal if status == 200 else ""
