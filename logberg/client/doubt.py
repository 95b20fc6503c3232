"""What one try of a change may have made, although no answer says so.

Rule: a change is in doubt from the moment when its request is about to be sent, until an answer or
an error rules out that the controller made it.
"""

from collections.abc import Iterable
from typing import Any

import aiohttp

from logberg.client.client_errors import ClientError
from logberg.client.tries import Retry
from metadata.errors import ErrorCode


class Trail:
    """How far one try got."""

    sent = False
    """Whether the request's head was sent, or was about to be."""


def noting_what_is_sent() -> aiohttp.TraceConfig:
    """Return a trace configuration that marks each request's `Trail` as sent."""

    async def headers_sent(_session: Any, context: Any, _sent: Any) -> None:
        context.trace_request_ctx.sent = True

    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(headers_sent)
    return tracing


class Doubt:
    """Whether one try of some changes may have made them."""

    def __init__(self, in_doubt: set[str], request_ids: Iterable[str]) -> None:
        self._in_doubt = in_doubt
        self._new = set(request_ids) - in_doubt
        """Those that no earlier try may have made."""

    def begin(self) -> None:
        """Note that the changes are about to be sent."""
        self._in_doubt |= self._new

    def none_from_this(self) -> None:
        """Note that this try changed nothing. An earlier try may have."""
        self._in_doubt -= self._new

    def none_of(self, request_id: str) -> None:
        """Note that this try did not make this one of the changes."""
        if request_id in self._new:
            self._in_doubt.discard(request_id)


_IN_DOUBT = frozenset(
    code.value
    for code in (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
"""A change that gets one of these answers may have been made."""


def rules_it_out(answered: Retry | ClientError) -> bool:
    """Whether this answer says that the controller changed nothing."""
    refused = answered.error if isinstance(answered, Retry) else answered
    return refused.code not in _IN_DOUBT and not _is_a_proxys(refused)


def _is_a_proxys(error: ClientError) -> bool:
    return error.status >= 500 and error.code == f"HTTP_{error.status}"
