"""Join tokens: one node, one certificate, once (ADR 0089).

Rules:

- The log uses a token up in the same batch that holds the certificate. Whoever shows the token
  again is refused, unless the request is by the same key. That is the node whose answer got lost,
  and it gets the same certificate.
- The token says whom the certificate is for and which hosts it names. The node only brings its key.
- Only a leader with the key of the cluster's authority makes tokens and certificates. So no token
  is used up for nothing.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from controller.managers.clients.access_tokens import lifetime_of, new_token_id
from controller.result import ControllerResult
from metadata.certifying import (
    BACKDATED_MS,
    SERIAL_BITS,
    CertificateWanted,
    NodeAuthority,
    as_pem,
    facts_of,
    joining_key,
)
from metadata.credentials import joined_principal, judged_at
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    ChangeJoinTokenReply,
    CreateJoinTokenRequest,
    JoinReply,
    JoinRequest,
    JoinTokenDescription,
    RevokeTokenRequest,
)
from metadata.records import JoinRole, JoinTokenRecord, Record, RevokedBy
from metadata.records.credentials import NEVER
from runtime.randomness import Random

LIFETIME_MS: Final = 10 * 60 * 1000
LIFETIME_MAX_MS: Final = 7 * 24 * 3600 * 1000
CERTIFICATE_MS: Final = 90 * 24 * 3600 * 1000
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_HOST: Final = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
_SCHEMES: Final = {JoinRole.BROKER: "broker", JoinRole.CONTROLLER: "quorum"}
_ROLES: Final = {"broker": JoinRole.BROKER, "controller": JoinRole.CONTROLLER}
_NAMES: Final = {code: name for name, code in _ROLES.items()}


class JoinManager:
    """Decides about join tokens."""

    def __init__(
        self,
        cluster_id: str,
        random: Random,
        authority: NodeAuthority | None,
        wall_ms: Callable[[], int],
    ) -> None:
        """`random` draws serial numbers. `authority` None: this controller makes none of it."""
        self._cluster_id = cluster_id
        self._random = random
        self._authority = authority
        self._wall_ms = wall_ms

    def create(
        self, image: MetadataImage, request: CreateJoinTokenRequest, made_by: str
    ) -> ControllerResult:
        """Make a join token. Raises LogbergError."""
        self._enabled()
        for host in request.hosts:
            if not _HOST.fullmatch(host):
                raise LogbergError(
                    ErrorCode.INVALID_REQUEST,
                    f"hosts: {host[:100]!r} is no name and no address of a host",
                    {"field": "hosts"},
                )
        token_id = new_token_id(image, request.sha256)
        now = judged_at(image, self._wall_ms())
        record = JoinTokenRecord(
            token_id,
            request.sha256,
            int(_ROLES[request.role]),
            request.node_id,
            request.hosts or LOOPBACK,
            made_by,
            now,
            now + lifetime_of(request.lifetime_ms, LIFETIME_MS, LIFETIME_MAX_MS),
            NEVER,
            NEVER,
            b"",
            b"",
        )
        return _result((record,), record, dry_run=request.dry_run)

    def revoke(
        self, image: MetadataImage, token_id: str, request: RevokeTokenRequest
    ) -> ControllerResult:
        """End a join token at once. Raises LogbergError."""
        token = _known(image, token_id)
        if token.revoked_ms != NEVER:
            return _result((), token, dry_run=request.dry_run)
        now = judged_at(image, self._wall_ms())
        revoked = msgspec.structs.replace(token, revoked_ms=now)
        return _result((revoked,), revoked, dry_run=request.dry_run)

    def join(self, image: MetadataImage, token_id: str, request: JoinRequest) -> ControllerResult:
        """Use a token up and make its certificate. Raises LogbergError.

        `token_id`: of the token with which the caller has authenticated.
        """
        authority = self._enabled()
        token, now = _known(image, token_id), judged_at(image, self._wall_ms())
        key = joining_key(request.csr)
        if token.used_ms != NEVER and token.key_sha256 == key.sha256:
            return ControllerResult((), self._reply(token, authority))
        why = _why_over(token, now)
        if why:
            raise LogbergError(
                ErrorCode.UNAUTHENTICATED, f"join token {token_id} {why}: ask for a new one"
            )
        uri = f"{_SCHEMES[JoinRole(token.role)]}://{self._cluster_id}/{token.node_id}"
        certificate = authority.sign(
            key.key,
            CertificateWanted(
                f"{_NAMES[JoinRole(token.role)]}-{token.node_id}",
                uri,
                token.hosts,
                self._random.getrandbits(SERIAL_BITS) | 1,
                self._begins(image, token, now),
                min(now + CERTIFICATE_MS, authority.expires_ms),
            ),
        )
        used = msgspec.structs.replace(
            token, used_ms=now, key_sha256=key.sha256, certificate=certificate
        )
        return ControllerResult((used,), self._reply(used, authority))

    def _begins(self, image: MetadataImage, token: JoinTokenRecord, now: int) -> int:
        """Return from when the certificate is valid: not so early that a revocation meets it."""
        begins = now - BACKDATED_MS
        revoked = image.credentials.revocations.get(
            (joined_principal(token), int(RevokedBy.PRINCIPAL))
        )
        if revoked is not None:
            # Certificates count in whole seconds.
            begins = max(begins, -(-revoked.before_ms // 1000) * 1000)
        return begins

    def _reply(self, token: JoinTokenRecord, authority: NodeAuthority) -> JoinReply:
        serial, expires_ms = facts_of(token.certificate)
        return JoinReply(
            certificate=as_pem(token.certificate),
            authority=authority.pem,
            principal=joined_principal(token),
            serial=serial,
            expires_ms=expires_ms,
        )

    def _enabled(self) -> NodeAuthority:
        if self._authority is None:
            raise LogbergError(
                ErrorCode.SECURITY_DISABLED,
                "this controller, which leads, has no key of the cluster's authority, so no node "
                "can join by a token: name it in every controller's file ([join]), or make the "
                "node's certificate with `logberg certs create`",
            )
        return self._authority


def describe_join_token(token: JoinTokenRecord) -> JoinTokenDescription:
    """Describe a join token."""
    return JoinTokenDescription(
        token_id=token.token_id,
        role=_NAMES.get(JoinRole(token.role), str(token.role)),
        node_id=token.node_id,
        hosts=token.hosts,
        made_by=token.made_by,
        created_ms=token.created_ms,
        expires_ms=token.expires_ms,
        revoked_ms=token.revoked_ms,
        used_ms=token.used_ms,
    )


def _why_over(token: JoinTokenRecord, now: int) -> str:
    if token.revoked_ms != NEVER:
        return "was revoked"
    if token.used_ms != NEVER:
        return "was used already, by another key"
    return "has expired" if now >= token.expires_ms else ""


def _known(image: MetadataImage, token_id: str) -> JoinTokenRecord:
    token = image.credentials.join_tokens.get(token_id)
    if token is None:
        raise LogbergError(
            ErrorCode.RESOURCE_NOT_FOUND, f"there is no join token {token_id[:50]!r}"
        )
    return token


def _result(
    records: tuple[Record, ...], token: JoinTokenRecord, *, dry_run: bool
) -> ControllerResult:
    return ControllerResult(
        records, ChangeJoinTokenReply(describe_join_token(token), dry_run=dry_run)
    )
