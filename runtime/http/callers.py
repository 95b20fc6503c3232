"""Authenticates the caller of each HTTP request, and counts and logs refusals.

Rule: nothing is cached. The credentials of a request are checked when its head has arrived, against
the tokens and rules of that moment. When those change (`judge_again`), the server closes at once
every connection whose last caller would now be refused, even with a request under way. A refusal is
counted and logged with caller, address, route and reason, never with the credential itself.
"""

from collections.abc import Callable, Collection, Generator, Iterable
from hashlib import sha256
from http import HTTPStatus

import msgspec

from runtime.http.connection import HttpConnection
from runtime.http.parsing import Incoming, RequestHead
from runtime.http.reading import bearer_token, has_body
from runtime.http.refusal import RefusedError
from runtime.http.requests import ANONYMOUS, MSGPACK, Caller, Reply
from runtime.sockets.attempts import Attempt
from runtime.sockets.credentials import PeerCertificate, ShownToken
from runtime.sockets.judging import STEP
from runtime.sockets.refusals import REQUEST, Refusals

Authenticate = Callable[
    [PeerCertificate | None, ShownToken | None, int | None, str], Caller | Reply
]
"""Arguments: the client's certificate, bearer token, user id on a unix socket, address. What the
client didn't show is None; on a unix socket the address is empty. Returns the caller, or the reply
that refuses it."""
FINGERPRINT_DIGITS = 12


class Callers:
    """Identifies the callers of one server."""

    def __init__(
        self,
        authenticate: Authenticate,
        anonymous_paths: Collection[str] | None,
        refusals: Refusals,
        *,
        passes_tokens: bool = False,
    ) -> None:
        """`passes_tokens`: another server checks the bearer tokens, see `passed_token`."""
        self._authenticate = authenticate
        self._anonymous_paths = None if anonymous_paths is None else frozenset(anonymous_paths)
        self._refusals = refusals
        self._passes_tokens = passes_tokens

    def passed_token(self, head: RequestHead) -> str | None:
        """Return the bearer token that another server is to check; None: there is none."""
        return bearer_token(head) if self._passes_tokens else None

    def caller_of(
        self, head: RequestHead, incoming: Incoming, connection: HttpConnection
    ) -> Caller | Reply:
        """Return the caller, or the reply that refuses it. Raises RefusedError."""
        connection.caller = None
        if connection.certificate_problem is not None:
            raise _unauthenticated(connection.certificate_problem)
        arrival = connection.arrival
        passed = self.passed_token(head)
        credentials = (
            connection.certificate,
            _shown_token(head, connection) if passed is None else None,
            arrival.unix_uid,
            arrival.address,
        )
        caller = self._authenticate(*credentials)
        if isinstance(caller, Reply):
            return caller
        if caller.only_path and head.path != caller.only_path:
            raise _unauthenticated(
                f"the bearer token is for {caller.only_path} only: show another one here"
            )
        if self._anonymous_paths is not None and caller.principal == ANONYMOUS.principal:
            is_open = head.path in self._anonymous_paths and not has_body(incoming)
            if not is_open and passed is None:
                raise _unauthenticated(
                    "show a token (Authorization: Bearer …) or a client certificate"
                )
        else:
            arrival.busy()
        connection.caller, connection.credentials = caller, credentials
        return caller

    def tell(
        self,
        head: RequestHead | None,
        connection: HttpConnection,
        reply: Reply,
        *,
        by_server: bool,
    ) -> None:
        """Count and log a request that was refused because of who its caller is.

        `by_server`: the handler never got it, so nobody else tells the trail of it.
        """
        route = "?" if head is None else f"{head.method} {head.path}"
        why, address = _why(reply), connection.arrival.address
        if by_server:
            is_unknown = reply.status == HTTPStatus.UNAUTHORIZED
            code = "UNAUTHENTICATED" if is_unknown else "CLUSTER_AUTHORIZATION_FAILED"
            answer = f"{reply.status} {why}"
            self._refusals.attempted(
                Attempt("", "", "", "", address, code, why, request=route, answer=answer)
            )
        self._refusals.refused(
            REQUEST,
            who=_who(head, connection),
            address=address or "unix socket",
            route=route[:120],
            why=why,
        )

    def judge_again(self, connections: Iterable[HttpConnection], *, certificates: bool) -> int:
        """Close connections whose last caller would be refused now; return how many.

        `certificates`: the trusted authorities have changed. Then every connection that showed a
        certificate also ends, after the request under way. The clients connect again, and their
        certificates are verified anew.
        """
        return sum(self._ends(one, certificates=certificates) for one in list(connections))

    def judging(self, connections: Iterable[HttpConnection]) -> Generator[None, None, int]:
        """Do the same in steps, where the authorities are the same."""
        ended = 0
        for number, connection in enumerate(list(connections), start=1):
            ended += self._ends(connection, certificates=False)
            if number % STEP == 0:
                yield
        return ended

    def _ends(self, connection: HttpConnection, *, certificates: bool) -> bool:
        """End a connection whose caller would be refused now; return whether it ends."""
        shown = connection.credentials
        if shown is None:
            # It has asked for nothing yet, or only what was refused.
            certificate, address = connection.certificate, connection.arrival.address
            refused = certificate is not None and isinstance(
                self._authenticate(certificate, None, None, address), Reply
            )
        else:
            refused = self._authenticate(*shown) != connection.caller
        if refused:
            connection.abort()
        elif certificates and shown is not None and connection.certificate is not None:
            connection.end_after_request()
        else:
            return False
        return True


def _shown_token(head: RequestHead, connection: HttpConnection) -> ShownToken | None:
    """Return the bearer token. On one connection it is nearly always the same, hashed once."""
    text = bearer_token(head)
    if text is None:
        return None
    before = connection.credentials
    if before is not None and before[1] is not None and before[1].text == text:
        return before[1]
    return ShownToken(text)


def _unauthenticated(message: str) -> RefusedError:
    return RefusedError(HTTPStatus.UNAUTHORIZED, "UNAUTHENTICATED", message)


def _who(head: RequestHead | None, connection: HttpConnection) -> str:
    """Name the caller for the log, or the credential that was shown.

    Of a token, only the first digits of its hash are named.
    """
    if connection.caller is not None:
        return connection.caller.principal
    token = None if head is None else bearer_token(head)
    if token is not None:
        return f"token with sha256 {sha256(token.encode()).hexdigest()[:FINGERPRINT_DIGITS]}…"
    if connection.certificate is not None:
        return f"certificate for {connection.certificate.uri}"
    return "nobody"


def _why(reply: Reply) -> str:
    """Return the sentence in the body of an error."""
    is_packed = reply.headers.get("content-type") == MSGPACK
    decode = msgspec.msgpack.decode if is_packed else msgspec.json.decode
    try:
        body = decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"status {reply.status}"
    return str(body.get("message", "")) if isinstance(body, dict) else f"status {reply.status}"
