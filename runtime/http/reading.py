"""Checks the head of a request and makes a `runtime.http.requests.Request` of it, or refuses it.

Rule: every accepted request has exactly one meaning. A request that two programs could understand
differently (an absolute target, a repeated parameter, an encoded slash) is refused here; one with
an ambiguous framing is refused by `parsing`.
"""

from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

import msgspec

from runtime.http.content_digest import CONTENT_DIGEST, is_content
from runtime.http.parsing import Incoming, RequestHead
from runtime.http.refusal import RefusedError, bad_request
from runtime.http.requests import Caller, Request

PARAMETERS_MAX = 64


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


def path_and_query(target: str) -> tuple[str, dict[str, str]]:
    """Return the decoded path and the parameters of a request's target. Raises RefusedError."""
    raw_path, _, raw_query = target.partition("?")
    path = raw_path
    if "%" in raw_path:
        if "%2f" in raw_path.lower():
            raise bad_request("an encoded slash in the path")
        try:
            path = unquote(raw_path, errors="strict")
        except UnicodeDecodeError:
            raise bad_request("the path is not UTF-8") from None
    if not path.startswith("/"):
        raise bad_request("the request's target must be a path")
    if not (raw_path.isascii() and path.isprintable()) or "\\" in path or "#" in target:
        raise bad_request("a forbidden character in the path")
    if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
        raise bad_request("the path goes by . or ..")
    return path, _parameters(raw_query) if raw_query else {}


def _parameters(raw_query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            raw_query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except ValueError:
        raise bad_request("the parameters after ? cannot be read") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise bad_request("a parameter is given twice")
    return parameters


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
    head: RequestHead, path: str, query: dict[str, str], body: bytes, caller: Caller
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
