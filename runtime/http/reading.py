"""Checks the head of a request and makes a `runtime.http.requests.Request` of it, or refuses it.

Rule: every accepted request has exactly one meaning. A target that two programs could understand
differently is refused by `targets`, an ambiguous framing by `parsing`.
"""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from runtime.http import targets
from runtime.http.content_digest import CONTENT_DIGEST, is_content
from runtime.http.parsing import Incoming, RequestHead
from runtime.http.refusal import RefusedError, bad_request
from runtime.http.requests import Caller, Request


def check_form(head: RequestHead) -> None:
    """Check method and headers, before the body. Raises RefusedError."""
    # The handler knows which methods a path takes. A tunnel is no request for a path.
    if head.method == "CONNECT":
        raise RefusedError(
            HTTPStatus.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "no tunnels are made here"
        )
    if "content-encoding" in head.headers:
        raise RefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            "bodies are taken as they are: send it without Content-Encoding",
        )


def path_and_query(target: str) -> tuple[str, Mapping[str, str]]:
    """Return the decoded path and the parameters of a request's target. Raises RefusedError."""
    try:
        return targets.path_and_query(target)
    except targets.TargetError as error:
        raise bad_request(str(error)) from None


def bearer_token(head: RequestHead) -> str | None:
    """Return the bearer token; None without one."""
    if head.authorization is None:
        return None
    scheme, _, token = head.authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def with_token(request: Request, token: str) -> Request:
    """Return the request with its bearer token, which another server is to check."""
    headers = {**request.headers, "authorization": f"Bearer {token}"}
    return msgspec.structs.replace(request, headers=headers)


def has_body(incoming: Incoming) -> bool:
    """Tell whether the request has a body, arrived or not."""
    return not incoming.complete or incoming.size > 0


def as_request(
    head: RequestHead, path: str, query: Mapping[str, str], body: bytes, caller: Caller
) -> Request:
    """Return the request for the handler. Raises RefusedError."""
    if not is_content(body, head.headers.get(CONTENT_DIGEST)):
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "MALFORMED_BODY",
            "the body is not what its Content-Digest says it is: send it again",
        )
    return Request(
        method=head.method, path=path, body=body, query=query, headers=head.headers, caller=caller
    )
