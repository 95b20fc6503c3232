"""Requests and replies, independent of the transport that carries them.

Rule: the controller's rules never see HTTP. A handler gets a `Request` and calls `reply` once, now
or later. aiohttp is one transport (`server`, `client`), the simulator is another.

An answer of unlimited size is built while it is sent. `Reply.parts` yields it piece by piece. The
transport asks for the next piece between other work, and only when the caller has taken the pieces
before. A transport that gives up closes `parts`, so that the data behind it can be freed.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import msgspec

MSGPACK = "application/msgpack"
JSON = "application/json"


class Caller(msgspec.Struct, frozen=True):
    """Who calls, as the carrier established it; a core never takes it from a body."""

    principal: str = "User:ANONYMOUS"
    method: str = "none"
    """How it was authenticated: none, certificate, token, unix-socket."""
    address: str = ""
    """Where from, without the port."""


ANONYMOUS = Caller()


class Request(msgspec.Struct, frozen=True):
    """One request."""

    method: str
    path: str
    """Without the query."""
    body: bytes = b""
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    """Keys in lower case."""
    caller: Caller = ANONYMOUS


class Reply(msgspec.Struct, frozen=True):
    """One answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    parts: Generator[bytes, None, None] | None = None
    """What comes behind `body`; each step takes at most some milliseconds, and may give nothing."""


def whole(reply: Reply) -> Reply:
    """Return the answer with all its parts in `body`: for carriers that send it in one piece."""
    if reply.parts is None:
        return reply
    body = b"".join((reply.body, *reply.parts))
    return msgspec.structs.replace(reply, body=body, parts=None)


class Unreachable(msgspec.Struct, frozen=True):
    """No answer: nobody knows whether the request took effect, unless `refused`."""

    reason: str
    refused: bool = False
    """True when the connection was never made, so the request had no effect."""


OnReply = Callable[[Reply | Unreachable], None]
Handler = Callable[[Request, Callable[[Reply], None]], None]
OnError = Callable[[int, str, str], Reply]
"""Arguments: HTTP status, code, sentence. Returns the reply with this error."""


class PendingRequest(Protocol):
    """A request that was sent."""

    def abandon(self) -> None:
        """Stop waiting; `on_reply` is not called any more."""


class Requester(Protocol):
    """Sends requests to servers that are known by their URL."""

    def request(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> PendingRequest:
        """Send to `target` (`https://host:port`); exactly one call of `on_reply`, on the loop.

        After `deadline_s` seconds without an answer it is `Unreachable`.
        """
