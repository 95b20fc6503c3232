"""Whose a bearer token is: the controllers say it, because an agent knows no tokens.

Rule: an answer counts for `KNOWN_S`, so a token that is revoked shows nothing after that time. The
agent keeps the token's hash and never the token.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from broker_agent.forwarding import AUTHORIZATION, Forwarding
from broker_agent.people import BY_TOKEN
from metadata.errors import LogbergError
from metadata.messages.callers import CALLER, is_known, principal_in
from metadata.messages.wire import decode_error
from runtime.clock import Clock
from runtime.http.requests import ANONYMOUS, MSGPACK, Caller, Reply, Request

KNOWN_S: Final = 5.0
_KNOWN_MAX: Final = 1_000
OnCaller = Callable[[Caller | LogbergError], None]


class TokenCallers:
    """Asks the controllers who one agent's callers are."""

    def __init__(self, forwarding: Forwarding, clock: Clock) -> None:
        self._forwarding = forwarding
        self._clock = clock
        self._known: dict[bytes, tuple[float, str]] = {}
        """By the header's hash: until when an answer counts, and the principal."""

    def caller_of(self, request: Request, then: OnCaller) -> None:
        """Call `then` with the caller, or with why nobody could say who it is.

        The owner of a bearer token has the method `token`. A person who has a pseudonym has it as
        principal, because the controllers answer that.
        """
        address, shown = request.caller.address, request.headers.get(AUTHORIZATION)
        if shown is None:
            then(request.caller)
            return

        def said(principal: str | LogbergError) -> None:
            if isinstance(principal, str):
                then(Caller(principal, BY_TOKEN, address))
            else:
                then(principal)

        key = sha256(shown.encode()).digest()
        until, principal = self._known.get(key, (0.0, ""))
        if self._clock.monotonic() < until:
            said(principal)
            return

        def on_reply(reply: Reply) -> None:
            said(self._read(key, reply))

        headers = {"accept": MSGPACK, AUTHORIZATION: shown}
        asked = Request("GET", CALLER, headers=headers, caller=Caller(address=address))
        self._forwarding.forward(asked, on_reply, lambda error, _id: said(error))

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
