"""Requests and replies, independent of the transport that carries them.

Rule: a handler knows no HTTP. It gets a `Request` and calls `reply` once, at once or later. HTTP is
one transport (`server`, `client`); the simulated network is another (`runtime.simulated.requests`).

A reply of unlimited size is built while it is sent. `Reply.parts` yields it piece by piece. The
transport takes the next piece between other work, and only after the client has read the pieces
before. A transport that gives up closes `parts`, so that the data behind it can be freed.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import msgspec

from runtime.tracing import RequestTrace

UNIX_SOCKET = "unix-socket"
"""The method of a caller who is identified by the other end of a unix socket."""
MSGPACK = "application/msgpack"
JSON = "application/json"


class Caller(msgspec.Struct, frozen=True):
    """The caller, as the transport authenticated it. A handler never takes it from a body."""

    principal: str = "User:ANONYMOUS"
    method: str = "none"
    """How it was authenticated: none, certificate, token, unix-socket."""
    address: str = ""
    """The IP address, without the port; empty on a unix socket. For a request that a broker
    forwards it is the client's, by the broker's word."""
    acted_as: str = ""
    """What an unauthenticated caller said that it is, such as `Broker:7`; set by Kafka's listener,
    and only where authentication is off."""
    only_path: str = ""
    """The only path that the credential opens; empty: it opens all."""
    carried_by: str = ""
    """Who the connection's certificate names, if the caller showed a token beside it: the broker
    that forwards the token. Empty without both."""


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
    trace: RequestTrace | None = None
    """Gets the steps of the request, if it is traced."""


class Reply(msgspec.Struct, frozen=True):
    """One answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    parts: Generator[bytes, None, None] | None = None
    """Yields what follows `body`. Each step takes a few milliseconds at most, and may yield no
    bytes."""


def whole(reply: Reply) -> Reply:
    """Return the reply with all its parts in `body`, for a transport that sends it whole."""
    if reply.parts is None:
        return reply
    body = b"".join((reply.body, *reply.parts))
    return msgspec.structs.replace(reply, body=body, parts=None)


class Unreachable(msgspec.Struct, frozen=True):
    """No reply came. It is unknown whether the request took effect, unless `refused`."""

    reason: str
    refused: bool = False
    """True if the connection was never made. Then the request had no effect."""
    untrusted: bool = False
    """True if one side refused the other's certificate: the same files will not help later."""
    hung_up: bool = False
    """True if the server ended the connection without an answer. A TLS 1.3 server that refuses our
    certificate does that too."""


OnReply = Callable[[Reply | Unreachable], None]
Handler = Callable[[Request, Callable[[Reply], None]], None]
OnError = Callable[[int, str, str], Reply]
"""Arguments: HTTP status, code, sentence. Returns the reply with this error."""


class PendingRequest(Protocol):
    """A request that was sent."""

    def abandon(self) -> None:
        """Stop waiting: `on_reply` is not called any more."""


class Requester(Protocol):
    """Sends requests to servers that are known by their URL."""

    def request(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> PendingRequest:
        """Send to `target` (`https://host:port`); call `on_reply` exactly once, on the loop.

        After `deadline_s` seconds without a reply, `on_reply` gets `Unreachable`.
        """
