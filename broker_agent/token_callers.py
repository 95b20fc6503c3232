"""Whose a bearer token is: the controllers say it, because an agent knows no tokens.

Rule: an answer counts for `KNOWN_S`, so a token that is revoked shows nothing after that time. The
agent keeps the token's hash and never the token.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from broker_agent.forwarding import AUTHORIZATION, Forwarding
from metadata.errors import LogbergError
from metadata.messages.callers import CALLER, is_known, principal_in
from metadata.messages.wire import decode_error
from runtime.clock import Clock
from runtime.http.requests import ANONYMOUS, MSGPACK, Reply, Request

KNOWN_S: Final = 5.0
_KNOWN_MAX: Final = 1_000
OnPrincipal = Callable[[str | LogbergError], None]


class TokenCallers:
    """Asks the controllers for the principals of one agent's callers."""

    def __init__(self, forwarding: Forwarding, clock: Clock) -> None:
        self._forwarding = forwarding
        self._clock = clock
        self._known: dict[bytes, tuple[float, str]] = {}
        """By the header's hash: until when an answer counts, and the principal."""

    def principal_of(self, request: Request, then: OnPrincipal) -> None:
        """Call `then` with the caller's principal, or with why nobody could say it."""
        shown = request.headers.get(AUTHORIZATION)
        if shown is None:
            then(request.caller.principal)
            return
        key = sha256(shown.encode()).digest()
        until, principal = self._known.get(key, (0.0, ""))
        if self._clock.monotonic() < until:
            then(principal)
            return

        def on_reply(reply: Reply) -> None:
            then(self._read(key, reply))

        asked = Request("GET", CALLER, headers={"accept": MSGPACK, AUTHORIZATION: shown})
        self._forwarding.forward(asked, on_reply, lambda error, _id: then(error))

    def _read(self, key: bytes, reply: Reply) -> str | LogbergError:
        content_type = reply.headers.get("content-type", MSGPACK)
        try:
            if is_known(reply.status):
                principal = principal_in(reply.status, reply.body, content_type)
                principal = principal or ANONYMOUS.principal
                self._remember(key, principal)
                return principal
            error = decode_error(reply.status, reply.body, content_type)
        except LogbergError as problem:
            return problem
        return LogbergError(error.known_code(), error.message)

    def _remember(self, key: bytes, principal: str) -> None:
        now = self._clock.monotonic()
        if len(self._known) >= _KNOWN_MAX:
            self._known = {kept: row for kept, row in self._known.items() if row[0] > now}
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
        self._known[key] = (now + KNOWN_S, principal)
