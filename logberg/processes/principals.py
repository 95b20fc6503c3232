"""Authentication: maps certificates, tokens and unix users to principals.

Rule: the connection or the token determines the principal, never the content of a request. A caller
with a wrong credential is refused. A caller without one is User:ANONYMOUS. It may read health, and
anything else only if `require_authentication` is off.

    certificate  quorum://<cluster>/<id>  → Controller:<id>
                 broker://<cluster>/<id>  → Broker:<id>
                 user://<cluster>/<name>  → User:<name>
    token        by its SHA-256: an access token of the log, else one of the settings
    join token   of the log: opens `/v1/join`, and nothing else
    unix socket  the operating system's user → User:<login>

A token beside a certificate determines the principal. The certificate then says who carries it, as
a broker does that forwards the token.

What the log says of a token or a certificate counts before the settings (ADR 0089). So a token of
the settings that the log has revoked is refused everywhere.
"""

import hmac
import pwd
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from logberg.processes.settings.controller_settings import Token
from metadata.credentials import (
    JOIN_PREFIX,
    certificate_refusal,
    judge_access_token,
    judge_join_token,
    malformed,
)
from metadata.errors import ErrorCode, LogbergError
from metadata.image import EMPTY, MetadataImage
from metadata.messages.errors import error_reply
from metadata.messages.wire import JSON, encode
from metadata.plain_text import control_character
from metadata.records import AccessTokenRecord
from runtime.http.requests import ANONYMOUS, UNIX_SOCKET, Caller, Reply
from runtime.sockets.credentials import PeerCertificate, ShownToken

_ROLES = {"quorum": "Controller", "broker": "Broker", "user": "User"}
JOIN_PATH: Final = "/v1/join"
JOIN_TOKEN: Final = "join-token"  # noqa: S105 - how a caller has authenticated
AUTHORITY_PATH: Final = "/v1/authority"
OPEN_PATHS = frozenset({"/health/live", "/health/ready", AUTHORITY_PATH})
"""The paths that a controller answers to anybody, even if authentication is required."""
RETRY_AFTER_S = 1
"""With THROTTLED: when to send the request again."""


class Principals:
    """Judges the credentials that callers show."""

    def __init__(
        self,
        cluster_id: str,
        tokens: tuple[Token, ...] = (),
        image: Callable[[], MetadataImage] = lambda: EMPTY,
        wall_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`image`: the newest one that this node has applied. `wall_ms`: ms since 1970."""
        self._cluster_id = cluster_id
        self._image = image
        self._wall_ms = wall_ms
        self.set_tokens(tokens)

    def set_tokens(self, tokens: tuple[Token, ...]) -> None:
        """Know these tokens of the settings from now on, and no others."""
        self._tokens = [(bytes.fromhex(token.sha256), token.principal) for token in tokens]

    def follow(self, image: Callable[[], MetadataImage]) -> None:
        """Judge by what this returns from now on."""
        self._image = image

    def authenticate(
        self,
        certificate: PeerCertificate | None,
        token: ShownToken | None,
        uid: int | None,
        address: str,
    ) -> Caller | Reply:
        """Return who calls, or the reply that refuses it."""
        if token is not None:
            caller = self._by_token(token, address)
            if certificate is None or isinstance(caller, Reply):
                return caller
            return msgspec.structs.replace(caller, carried_by=self._carrier(certificate))
        if certificate is not None:
            return self._by_certificate(certificate, address)
        if uid is not None:
            return Caller(f"User:{_login(uid)}", UNIX_SOCKET, address)
        return Caller(ANONYMOUS.principal, ANONYMOUS.method, address)

    def certificate_problem(self, certificate: PeerCertificate) -> str:
        """Return why a certificate is refused; empty: it is not."""
        found = self._principal_of(certificate.uri)
        if found is None:
            return ""
        return certificate_refusal(
            self._image(), found, certificate.serial, lambda: certificate.begins_ms
        )

    def _by_token(self, token: ShownToken, address: str) -> Caller | Reply:
        image, digest = self._image(), token.digest
        if token.text.startswith(JOIN_PREFIX):
            return self._by_join_token(image, token, address)
        judged = judge_access_token(image, digest, self._wall_ms())
        if isinstance(judged, AccessTokenRecord):
            return Caller(judged.principal, "token", address)
        if judged is not None:
            return refuse(judged)
        # Compare all of them, so that the time taken reveals nothing about the known tokens.
        found = [who for known, who in self._tokens if hmac.compare_digest(known, digest)]
        if not found:
            return refuse(
                malformed(token.text) or "the bearer token is not known here: check --token-file"
            )
        return Caller(found[0], "token", address)

    def _by_join_token(
        self, image: MetadataImage, token: ShownToken, address: str
    ) -> Caller | Reply:
        judged = judge_join_token(image, token.digest, self._wall_ms())
        if judged is None:
            return refuse(
                malformed(token.text)
                or "the join token is not known here: ask for one (logberg join-token create)"
            )
        if isinstance(judged, str):
            return refuse(judged)
        return Caller(f"JoinToken:{judged.token_id}", JOIN_TOKEN, address, only_path=JOIN_PATH)

    def _carrier(self, certificate: PeerCertificate) -> str:
        """Return whom a certificate names; empty: it counts for nobody here."""
        principal = self._principal_of(certificate.uri)
        if principal is None or self.certificate_problem(certificate):
            return ""
        return principal

    def _by_certificate(self, certificate: PeerCertificate, address: str) -> Caller | Reply:
        principal = self._principal_of(certificate.uri)
        if principal is None:
            return refuse(
                f"the certificate names {certificate.uri[:200]!r}, but this is cluster "
                f"{self._cluster_id}: use a certificate that was issued for this cluster"
            )
        if problem := self.certificate_problem(certificate):
            return refuse(problem)
        return Caller(principal, "certificate", address)

    def _principal_of(self, uri: str) -> str | None:
        parts = urlsplit(uri)
        role, name = _ROLES.get(parts.scheme), parts.path.removeprefix("/")
        if role is None or not name or parts.netloc != self._cluster_id or control_character(uri):
            return None
        return f"{role}:{name}"


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
