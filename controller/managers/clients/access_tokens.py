"""Makes, rotates and revokes access tokens: the bearer tokens of people and services (ADR 0089).

Rules:

- Who makes a token draws it and sends its SHA-256. No controller sees the token before its use.
- A hash is known once. A second token with it is refused, so nobody can give a token of somebody
  else another principal.
- Every token expires. A rotation makes the new token and ends the old one, in one batch.
"""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Final

import msgspec

from controller.managers.clients.tokens import PRINCIPAL_MAX
from controller.result import ControllerResult
from metadata.credentials import id_of, judged_at
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    AccessTokenDescription,
    ChangeAccessTokenReply,
    CreateAccessTokenRequest,
    RevokeTokenRequest,
    RotateAccessTokenRequest,
)
from metadata.plain_text import check_length, check_plain
from metadata.records import (
    AccessTokenRecord,
    Record,
    RemoveAccessTokenRecord,
    RemoveJoinTokenRecord,
)
from metadata.records.credentials import NEVER

DAY_MS: Final = 24 * 3600 * 1000
LIFETIME_MS: Final = 90 * DAY_MS
LIFETIME_MAX_MS: Final = 3650 * DAY_MS
OVERLAP_MAX_MS: Final = 30 * DAY_MS
NAME_MAX: Final = 100
SWEPT_MAX: Final = 500
"""The most tokens that one batch removes."""
_PRINCIPAL: Final = re.compile(r"User:.+|Broker:\d{1,10}", re.DOTALL)
_ANONYMOUS: Final = "User:ANONYMOUS"


class AccessTokenManager:
    """Decides about access tokens."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        """`wall_ms`: the time at which tokens are made and end."""
        self._wall_ms = wall_ms

    def create(
        self, image: MetadataImage, request: CreateAccessTokenRequest, made_by: str
    ) -> ControllerResult:
        """Make a token. Raises LogbergError."""
        check_principal(request.principal)
        check_plain("name", request.name)
        check_length("name", request.name, NAME_MAX)
        now = judged_at(image, self._wall_ms())
        record = AccessTokenRecord(
            new_token_id(image, request.sha256),
            request.principal,
            request.name,
            request.sha256,
            made_by,
            now,
            now + lifetime_of(request.lifetime_ms, LIFETIME_MS, LIFETIME_MAX_MS),
            NEVER,
            "",
        )
        return _result((record,), record, dry_run=request.dry_run)

    def rotate(
        self, image: MetadataImage, token_id: str, request: RotateAccessTokenRequest, made_by: str
    ) -> ControllerResult:
        """Make a token in place of another one, which ends. Raises LogbergError."""
        old = _known(image, token_id)
        now = judged_at(image, self._wall_ms())
        if old.revoked_ms != NEVER:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"access token {token_id} was revoked and can't be rotated: make a new one",
            )
        if not 0 <= request.overlap_ms <= OVERLAP_MAX_MS:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"overlapMs: give 0 to {OVERLAP_MAX_MS}",
                {"field": "overlapMs"},
            )
        record = AccessTokenRecord(
            new_token_id(image, request.sha256),
            old.principal,
            old.name,
            request.sha256,
            made_by,
            now,
            now
            + lifetime_of(request.lifetime_ms, old.expires_ms - old.created_ms, LIFETIME_MAX_MS),
            NEVER,
            old.token_id,
        )
        ended = msgspec.structs.replace(
            old, expires_ms=min(old.expires_ms, now + request.overlap_ms)
        )
        return _result((record, ended), record, dry_run=request.dry_run)

    def revoke(
        self, image: MetadataImage, token_id: str, request: RevokeTokenRequest
    ) -> ControllerResult:
        """End a token at once. Raises LogbergError."""
        token = _known(image, token_id)
        if token.revoked_ms != NEVER:
            return _result((), token, dry_run=request.dry_run)
        now = judged_at(image, self._wall_ms())
        revoked = msgspec.structs.replace(token, revoked_ms=now)
        return _result((revoked,), revoked, dry_run=request.dry_run)

    def sweep(self, image: MetadataImage) -> ControllerResult:
        """Forget tokens that ended some time ago, of both kinds, the earliest first."""
        now = judged_at(image, self._wall_ms())
        due = takewhile(lambda ending: ending[0] < now, image.credentials.endings)
        records: list[Record] = []
        for _, (_, joins, token_id) in zip(range(SWEPT_MAX), due, strict=False):
            if joins:
                records.append(RemoveJoinTokenRecord(token_id))
            else:
                records.append(RemoveAccessTokenRecord(token_id))
        return ControllerResult(records, reason="these tokens ended more than a week ago")


def describe_access_token(token: AccessTokenRecord) -> AccessTokenDescription:
    """Describe a token. Its hash is left out: the id is the beginning of it."""
    return AccessTokenDescription(
        token_id=token.token_id,
        principal=token.principal,
        name=token.name,
        made_by=token.made_by,
        created_ms=token.created_ms,
        expires_ms=token.expires_ms,
        revoked_ms=token.revoked_ms,
        replaces=token.replaces,
    )


def check_principal(principal: str) -> None:
    """Raise LogbergError for a principal that can have no token."""
    check_plain("principal", principal)
    if not _PRINCIPAL.fullmatch(principal) or principal == _ANONYMOUS:
        raise LogbergError(
            ErrorCode.INVALID_PRINCIPAL_TYPE,
            f"principal: {principal[:50]!r} can have no token; give User:NAME or Broker:NUMBER",
            {"field": "principal"},
        )
    check_length("principal", principal, PRINCIPAL_MAX)


def new_token_id(image: MetadataImage, sha256: bytes) -> str:
    """Return the id of a token of either kind. Raises LogbergError if it is known already."""
    token_id = id_of(sha256)
    credentials = image.credentials
    if token_id in credentials.access_tokens or token_id in credentials.join_tokens:
        raise LogbergError(
            ErrorCode.DUPLICATE_RESOURCE,
            f"a token with the id {token_id} is known already: draw another one",
            {"field": "sha256"},
        )
    return token_id


def lifetime_of(asked_ms: int, default_ms: int, most_ms: int) -> int:
    """Return how long a token lives. Raises LogbergError."""
    if asked_ms == -1:
        return min(default_ms, most_ms)
    if not 1 <= asked_ms <= most_ms:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"lifetimeMs: give 1 to {most_ms}, or -1 for the default",
            {"field": "lifetimeMs"},
        )
    return asked_ms


def _known(image: MetadataImage, token_id: str) -> AccessTokenRecord:
    token = image.credentials.access_tokens.get(token_id)
    if token is None:
        raise LogbergError(
            ErrorCode.RESOURCE_NOT_FOUND, f"there is no access token {token_id[:50]!r}"
        )
    return token


def _result(
    records: tuple[Record, ...], token: AccessTokenRecord, *, dry_run: bool
) -> ControllerResult:
    reply = ChangeAccessTokenReply(describe_access_token(token), dry_run=dry_run)
    return ControllerResult(records, reply)
