"""Authentication: maps certificates, tokens and unix users to principals.

Rule: the connection or the token determines the principal, never the content of a request. A caller
with a wrong credential is refused. A caller without one is User:ANONYMOUS. It may read health, and
anything else only if `require_authentication` is off.

    certificate  quorum://<cluster>/<id>  → Controller:<id>
                 broker://<cluster>/<id>  → Broker:<id>
                 user://<cluster>/<name>  → User:<name>
    token        by its SHA-256, as configured
    unix socket  the operating system's user → User:<login>
"""

import hmac
import pwd
from hashlib import sha256
from urllib.parse import urlsplit

from logberg.processes.controller_settings import Token
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import error_reply
from metadata.messages.wire import JSON, encode
from metadata.plain_text import control_character
from runtime.http.requests import ANONYMOUS, UNIX_SOCKET, Caller, Reply

_ROLES = {"quorum": "Controller", "broker": "Broker", "user": "User"}
OPEN_PATHS = frozenset({"/health/live", "/health/ready"})
"""The paths that a controller answers to anybody, even if authentication is required."""
RETRY_AFTER_S = 1
"""With THROTTLED: when to send the request again."""


class Principals:
    """Judges the credentials that callers show."""

    def __init__(self, cluster_id: str, tokens: tuple[Token, ...] = ()) -> None:
        self._cluster_id = cluster_id
        self.set_tokens(tokens)

    def set_tokens(self, tokens: tuple[Token, ...]) -> None:
        """Know these tokens from now on, and no others."""
        self._tokens = [(bytes.fromhex(token.sha256), token.principal) for token in tokens]

    def authenticate(
        self, uri: str | None, token: str | None, uid: int | None, address: str
    ) -> Caller | Reply:
        """Return who calls, or the reply that refuses it."""
        if token is not None:
            return self._by_token(token, address)
        if uri is not None:
            return self._by_certificate(uri, address)
        if uid is not None:
            return Caller(f"User:{_login(uid)}", UNIX_SOCKET, address)
        return Caller(ANONYMOUS.principal, ANONYMOUS.method, address)

    def _by_token(self, token: str, address: str) -> Caller | Reply:
        digest = sha256(token.encode()).digest()
        # Compare all of them, so that the time taken reveals nothing about the known tokens.
        found = [who for known, who in self._tokens if hmac.compare_digest(known, digest)]
        if not found:
            return refuse("the bearer token is not known here: check --token-file")
        return Caller(found[0], "token", address)

    def _by_certificate(self, uri: str, address: str) -> Caller | Reply:
        parts = urlsplit(uri)
        role, name = _ROLES.get(parts.scheme), parts.path.removeprefix("/")
        if role is None or not name or parts.netloc != self._cluster_id or control_character(uri):
            return refuse(
                f"the certificate names {uri[:200]!r}, but this is cluster {self._cluster_id}: "
                "use a certificate that was issued for this cluster"
            )
        return Caller(f"{role}:{name}", "certificate", address)


def refuse(message: str) -> Reply:
    """The reply to a caller that is not let in."""
    return error_answer(ErrorCode.UNAUTHENTICATED.status, "UNAUTHENTICATED", message)


def error_answer(status: int, code: str, message: str) -> Reply:
    """An error that is found before a request reaches its handler, in the usual shape."""
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
    throttled = known is ErrorCode.THROTTLED
    error = error_reply(
        LogbergError(known, message), retry_after_ms=RETRY_AFTER_S * 1000 if throttled else None
    )
    body = encode(error, JSON)
    headers = {"content-type": JSON}
    if throttled:
        headers["retry-after"] = str(RETRY_AFTER_S)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return Reply(status, body, headers)


def _login(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
