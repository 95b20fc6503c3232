"""Reads an HTTP request into a `runtime.http.requests.Request`, or refuses it.

Rule: every accepted request has exactly one meaning. A request that two programs could understand
differently (an absolute target, a repeated parameter, an encoded slash) is refused. The server
keeps no byte of a body beyond the size limit, and waits for none beyond the deadline. aiohttp's
parser refuses two lengths and other ambiguities of the message's framing.
"""

import asyncio
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import hdrs
from aiohttp.streams import StreamReader
from aiohttp.web import BaseRequest, RequestKey, RequestPayloadError

from runtime.http.content_digest import CONTENT_DIGEST, is_content
from runtime.http.requests import ANONYMOUS, Caller, Request
from runtime.sockets.byte_budget import ByteBudget, ByteClaim

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
"""Not passed to the handler, so that it cannot log them."""
PARAMETERS_MAX = 64
TARGET = RequestKey("target", str)
"""Key of the request's target as the client sent it. aiohttp's own properties are normalised."""


class RefusedError(Exception):
    """The server refuses a request; the handler never sees it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def bad_request(message: str) -> RefusedError:
    """Return the refusal for a request that is not understood."""
    return RefusedError(HTTPStatus.BAD_REQUEST, "INVALID_REQUEST", message)


def check_form(http: BaseRequest) -> None:
    """Check method and headers, before the body. Raises RefusedError."""
    # The handler knows which methods a path takes. A tunnel is no request for a path.
    if http.method == hdrs.METH_CONNECT:
        raise RefusedError(
            HTTPStatus.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "no tunnels are made here"
        )
    if hdrs.CONTENT_ENCODING in http.headers:
        raise RefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            "bodies are taken as they are: send it without Content-Encoding",
        )
    for name, value in http.headers.items():
        if not value.isascii() and not _is_text(value):
            raise bad_request(f"the header {name[:100]} is not UTF-8")


def _is_text(value: str) -> bool:
    """Tell whether a header's bytes were UTF-8. aiohttp keeps others as surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def plain_headers(http: BaseRequest) -> dict[str, str]:
    """Return the headers by lower-case name, without `SECRET_HEADERS`."""
    headers: dict[str, str] = {}
    for name, value in http.headers.items():
        key = name.lower()
        if key in SECRET_HEADERS:
            continue
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def bearer_token(http: BaseRequest) -> str | None:
    """Return the bearer token, None without one. Raises RefusedError."""
    values = http.headers.getall(hdrs.AUTHORIZATION, ())
    if not values:
        return None
    if len(values) > 1:
        raise bad_request("two Authorization headers")
    scheme, _, token = values[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def with_token(request: Request, token: str) -> Request:
    """Return the request with its bearer token, which another server is to check."""
    headers = {**request.headers, "authorization": f"Bearer {token}"}
    return msgspec.structs.replace(request, headers=headers)


def has_body(http: BaseRequest) -> bool:
    """Tell whether the request has a body, arrived or not."""
    return not http.content.is_eof() or http.content.total_bytes > 0


async def read_body(
    http: BaseRequest, bytes_max: int, deadline_s: float, budget: ByteBudget, caller: Caller
) -> bytes:
    """Return the body. While it arrives, its bytes count against the budget.

    Raises RefusedError if it is too large, too late or broken, or with THROTTLED.
    """
    content = http.content
    if content.is_eof():
        # The usual case: a small body arrived with its head.
        body = content.read_nowait()
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        return body
    length = http.content_length
    if length is not None and length > bytes_max:
        raise _too_large(bytes_max)
    claim = budget.claim(
        caller.principal if caller.principal != ANONYMOUS.principal else caller.address,
        lambda: content.set_exception(_throttled()),
    )
    try:
        async with asyncio.timeout(deadline_s):
            await _continue(http)
            return await _read_up_to(content, bytes_max, claim)
    except TimeoutError:
        raise RefusedError(
            HTTPStatus.REQUEST_TIMEOUT,
            "BODY_TIMED_OUT",
            f"the body did not arrive within {deadline_s:g} s of its head",
        ) from None
    except RequestPayloadError:
        raise bad_request("the body is broken") from None
    finally:
        claim.close()


async def _continue(http: BaseRequest) -> None:
    """Answer a client that waits for permission to send its body (curl does, from 1 MiB on)."""
    expects = http.headers.get(hdrs.EXPECT)
    if expects is None:
        return
    if expects.lower() != "100-continue":
        raise RefusedError(
            HTTPStatus.EXPECTATION_FAILED, "INVALID_REQUEST", f"Expect: {expects[:40]}"
        )
    await http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    http.writer.output_size = 0


async def _read_up_to(content: StreamReader, bytes_max: int, claim: ByteClaim) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := await content.readany():
            size += len(piece)
            if size > bytes_max:
                raise _too_large(bytes_max)
            if not claim.grow(len(piece)):
                raise _throttled()
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        # The traceback of an exception refers to this frame, and may stay until the garbage
        # collector runs. Free the bytes now.
        pieces.clear()


def _too_large(bytes_max: int) -> RefusedError:
    return RefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "BODY_TOO_LARGE",
        f"a body may have {bytes_max} bytes at most: send less at once",
    )


def _throttled() -> RefusedError:
    return RefusedError(
        HTTPStatus.TOO_MANY_REQUESTS,
        "THROTTLED",
        "bodies of other requests take up all the memory that is set aside for them; this one "
        "was not read: send it again in a second",
    )


async def as_request(
    http: BaseRequest, caller: Caller, bytes_max: int, deadline_s: float, budget: ByteBudget
) -> Request:
    """Return the request for the handler. Call `check_form` before. Raises RefusedError."""
    path, query = path_and_query(http[TARGET])
    body = await read_body(http, bytes_max, deadline_s, budget, caller)
    if not is_content(body, http.headers.get(CONTENT_DIGEST)):
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "MALFORMED_BODY",
            "the body is not what its Content-Digest says it is: send it again",
        )
    return Request(
        method=http.method,
        path=path,
        body=body,
        query=query,
        headers=plain_headers(http),
        caller=caller,
    )
