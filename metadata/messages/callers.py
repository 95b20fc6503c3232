"""Whose credentials a request had, from a controller's answer to `GET /v1/status`.

Rule: an agent knows no tokens, so it asks a controller with the token. The answer names the caller,
also when the caller may not see the status.
"""

from typing import Final

from metadata.errors import ErrorCode
from metadata.messages.message import ReplyMessage
from metadata.messages.wire import decode, decode_error

STATUS: Final = "/v1/status"
"""Every controller answers it in every state, but only to callers that it knows."""


class CallerOfStatus(ReplyMessage, frozen=True):
    """What of `StatusReply` is about the caller."""

    caller: str = ""


def is_known(status: int) -> bool:
    """Return whether a controller knows the caller: it may be refused the status itself."""
    return status in (200, ErrorCode.CLUSTER_AUTHORIZATION_FAILED.status)


def caller_in(status: int, body: bytes, content_type: str) -> str:
    """Return the principal of a known caller; empty: the controller is too old to say it.

    Raises LogbergError.
    """
    if status == 200:
        return decode(CallerOfStatus, body, content_type).caller
    return str(decode_error(status, body, content_type).details.get("principal", ""))
