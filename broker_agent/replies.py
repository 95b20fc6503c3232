"""Encodes what the agent answers to HTTP requests, in the format that the caller accepts."""

from collections.abc import Mapping
from types import MappingProxyType

from metadata.errors import LogbergError
from metadata.messages.errors import error_reply
from metadata.messages.wire import JSON, encode, reply_type
from runtime.http.requests import Reply, Request

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def answer(
    request: Request, value: object, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
) -> Reply:
    """Return the reply that holds a message."""
    media = reply_type(request.headers.get("accept", ""), JSON)
    return Reply(status, encode(value, media), {"content-type": media, **headers})


def refused(request: Request, error: LogbergError, request_id: str | None = None) -> Reply:
    """Return the reply that says why a request is refused."""
    return answer(request, error_reply(error, request_id=request_id), error.code.status)
