"""Bearer tokens that an agent's clients log in with: the controllers check them, not the agent.

An agent knows no tokens. A login by PLAIN asks a controller, with the client's token, whose it is.
Afterwards each request of the client carries the token to the controllers, and they decide. So the
agent needs no grant to speak for the client.

Rule: the token leaves the agent only towards a controller, and no text of an object here shows it.
The client's principal is the token's, as the controller says. Nothing depends on the user name of
the login. A controller of an older release doesn't say whose a token is; to the agent the client
is anonymous then.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kafka_listener.asking.asking import AskRoute
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.logins import NOT_KNOWN, OnMessage, user_and_token
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.callers import CALLER, is_known, principal_in
from runtime.http.requests import ANONYMOUS, MSGPACK, Caller, OnReply, Reply, Request, Unreachable
from runtime.sockets.credentials import ShownToken

_TOKEN_MAX: Final = 4_096


class TokenCaller(Caller, frozen=True):
    """A caller whose token goes to the controllers with each request. Its text shows no token."""

    token: str = ""

    def __repr__(self) -> str:
        return f"TokenCaller({self.principal!r}, ***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("principal", self.principal)]


class PassedPlainExchange:
    """PLAIN (RFC 4616) where a controller checks the token."""

    def __init__(
        self, ask: AskRoute, address: str, says: Callable[[ShownToken], bool | None]
    ) -> None:
        """`says` returns what the agent's image says of a token: whether it counts.

        None: the image doesn't know it, since it is one of the controllers' settings.
        """
        self._ask = ask
        self._address = address
        self._says = says
        self._token = ShownToken("")
        self._known: bool | None = None
        """What the image said of the token at the login."""
        self.caller: Caller | None = None
        self.user = ""

    def step(self, message: bytes, then: OnMessage) -> None:
        """Have the token checked. Raises LoginRefusedError for what can't be a token."""
        user, token = user_and_token(message)
        self.user = user
        if not user or not _is_token(token):
            raise LoginRefusedError(NOT_KNOWN)
        caller = TokenCaller(ANONYMOUS.principal, "token", self._address, token=token)
        self._token = ShownToken(token)

        def on_reply(reply: Reply | Unreachable) -> None:
            if isinstance(reply, Reply) and is_known(reply.status):
                principal = _principal_in(reply) or ANONYMOUS.principal
                self.caller = msgspec.structs.replace(caller, principal=principal)
                self._known = self._says(self._token)
                then(b"")
            elif isinstance(reply, Reply) and reply.status == ErrorCode.UNAUTHENTICATED.status:
                then(LoginRefusedError(NOT_KNOWN))
            else:
                then(LoginRefusedError("no controller could check the token; try again"))

        self._ask(Request("GET", CALLER, headers={"accept": MSGPACK}, caller=caller), on_reply)

    def still_known(self) -> bool:
        """Tell whether the image has anything against the token.

        The controllers check it anew at each request. So this matters for a client that asks
        nothing, or only what the agent answers itself.
        """
        says = self._says(self._token)
        if says is None:
            # The log forgets a token some time after its end.
            return self._known is not True
        return says


def passing_tokens(ask: AskRoute) -> AskRoute:
    """Return `ask` for callers with a token, which it takes from a header, as from a client."""

    def passed(request: Request, on_reply: OnReply) -> None:
        caller = request.caller
        if isinstance(caller, TokenCaller):
            headers = {**request.headers, "authorization": f"Bearer {caller.token}"}
            plain = Caller(address=caller.address)
            request = msgspec.structs.replace(request, headers=headers, caller=plain)
        ask(request, on_reply)

    return passed


def _principal_in(reply: Reply) -> str:
    try:
        return principal_in(reply.status, reply.body, reply.headers.get("content-type", MSGPACK))
    except LogbergError:
        return ""


def _is_token(text: str) -> bool:
    """Tell whether a text may stand in a header as a token, so that it can't add another line."""
    return 0 < len(text) <= _TOKEN_MAX and text.isascii() and text.isprintable() and " " not in text
