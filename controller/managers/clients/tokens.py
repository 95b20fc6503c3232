"""Creates, renews, expires and removes delegation tokens (KIP-48, 900).

Rules of Kafka's DelegationTokenControlManager. A token's HMAC is made of its id and the cluster
key, so no record, no remembered answer and no read holds it. Who changes a token proves with the
HMAC that it holds the token, and must be its owner or one of its renewers.

A token ends at its expiry, which can be moved, but never beyond its greatest age.
"""

import hmac
from collections.abc import Callable
from itertools import takewhile
from typing import Final

import msgspec

from controller.result import ControllerResult
from metadata.acl_rules import AclPolicy, Action, authorize
from metadata.credentials import judged_at
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.tokens import expiry_of
from metadata.messages import (
    ChangeTokenReply,
    CreateTokenReply,
    CreateTokenRequest,
    ExpireTokenRequest,
    RenewTokenRequest,
    TokenDescription,
)
from metadata.plain_text import check_length, check_plain
from metadata.records import (
    AclOperation,
    AclResourceType,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from metadata.sealed_places import token_hmac
from metadata.sealing import ClusterKey
from metadata.uuids import uuid4_from, uuid_text
from runtime.randomness import Random

ANONYMOUS: Final = "User:ANONYMOUS"
OF_THIS_HMAC: Final = "-"
"""In place of a token's id: the token that the HMAC belongs to, as Kafka's requests name it. No id
begins with a dash. Each living token is looked at, some microseconds each."""
PRINCIPAL_MAX: Final = 255
"""Characters."""
SWEPT_MAX: Final = 500
"""The most tokens that one batch removes because they have expired."""


class TokenLimits(msgspec.Struct, frozen=True):
    """What the controllers' settings say; in ms."""

    max_lifetime_ms: int
    """The greatest age of a token (Kafka's delegation.token.max.lifetime.ms)."""
    period_ms: int
    """How long it lives without a renewal (delegation.token.expiry.time.ms)."""


class TokenRequester(msgspec.Struct, frozen=True):
    """Who asks."""

    principal: str
    host: str


class TokenManager:
    """Decides about delegation tokens."""

    def __init__(
        self,
        random: Random,
        key: ClusterKey | None,
        limits: TokenLimits,
        policy: AclPolicy,
        wall_ms: Callable[[], int],
    ) -> None:
        """`random` draws ids. `policy`: who may make tokens for others, beside the entries."""
        self._random = random
        self._key = key
        self._limits = limits
        self._policy = policy
        self._wall_ms = wall_ms

    def create(
        self, image: MetadataImage, request: CreateTokenRequest, requester: TokenRequester
    ) -> ControllerResult:
        """Make a token. The reply has no HMAC yet; see `with_hmac`. Raises LogbergError."""
        self._enabled()
        owner = request.owner or requester.principal
        _check_may_ask(requester)
        for field, principal in (("owner", owner), *(("renewers", r) for r in request.renewers)):
            _check_user(field, principal)
        if owner != requester.principal:
            self._check_may_create_for(image, owner, requester)
        now = self._now_ms(image)
        lifetime = self._limits.max_lifetime_ms
        if request.max_lifetime_ms > 0:
            lifetime = min(lifetime, request.max_lifetime_ms)
        record = DelegationTokenRecord(
            owner,
            requester.principal,
            tuple(dict.fromkeys(request.renewers)),
            now,
            now + lifetime,
            min(now + lifetime, now + self._limits.period_ms),
            self._new_id(image),
        )
        reply = CreateTokenReply(describe_token(record), dry_run=request.dry_run)
        return ControllerResult((record,), reply)

    def renew(
        self,
        image: MetadataImage,
        token_id: str,
        request: RenewTokenRequest,
        requester: TokenRequester,
    ) -> ControllerResult:
        """Move a token's expiry. Raises LogbergError."""
        token = self._held(image, token_id, request.hmac)
        now = self._now_ms(image)
        _check_lives(token, now)
        _check_may_change(token, requester)
        period = self._limits.period_ms
        if request.renew_period_ms > 0:
            period = min(period, request.renew_period_ms)
        return _moved(token, now + period, dry_run=request.dry_run)

    def expire(
        self,
        image: MetadataImage,
        token_id: str,
        request: ExpireTokenRequest,
        requester: TokenRequester,
    ) -> ControllerResult:
        """End a token, at once or later. Raises LogbergError."""
        token = self._held(image, token_id, request.hmac)
        now = self._now_ms(image)
        _check_may_change(token, requester)
        if request.expiry_time_period_ms < 0:
            return ControllerResult(
                (RemoveDelegationTokenRecord(token.token_id),),
                ChangeTokenReply(token.token_id, now, dry_run=request.dry_run),
            )
        _check_lives(token, now)
        return _moved(token, now + request.expiry_time_period_ms, dry_run=request.dry_run)

    def sweep(self, image: MetadataImage) -> ControllerResult:
        """Remove tokens that have expired, the earliest first, at most `SWEPT_MAX`."""
        now = self._now_ms(image)
        expired = takewhile(lambda expiry: expiry[0] < now, image.tokens.expiries)
        records = [
            RemoveDelegationTokenRecord(token_id)
            for _, (_, token_id) in zip(range(SWEPT_MAX), expired, strict=False)
        ]
        return ControllerResult(records, reason="these tokens have expired")

    def with_hmac(self, reply: CreateTokenReply) -> CreateTokenReply:
        """Add the secret to the answer of a creation. The log remembers the answer without it."""
        if reply.dry_run or self._key is None:
            return reply
        return msgspec.structs.replace(reply, hmac=token_hmac(self._key, reply.token.token_id))

    def secret_meaning(self, meaning: bytes) -> bytes:
        """Return what stands for a request that holds a secret where the log keeps its digest."""
        return self._enabled().mac("requests", meaning)

    def _enabled(self) -> ClusterKey:
        if self._key is None:
            raise LogbergError(
                ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
                "this controller has no cluster key, so there are no delegation tokens: put the "
                "same cluster.key into every controller's folder (logberg cluster-key)",
            )
        return self._key

    def _held(self, image: MetadataImage, token_id: str, given: bytes) -> DelegationTokenRecord:
        """Return the token, if the HMAC is its own. Raises LogbergError."""
        key = self._enabled()
        wanted = image.tokens.order if token_id == OF_THIS_HMAC else (token_id,)
        for each in wanted:
            token = image.tokens.tokens.get(each)
            if token is not None and hmac.compare_digest(token_hmac(key, each), given):
                return token
        if token_id == OF_THIS_HMAC:
            raise LogbergError(
                ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no token with this HMAC"
            )
        raise LogbergError(
            ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
            f"there is no token {token_id[:50]!r} with this HMAC",
        )

    def _check_may_create_for(
        self, image: MetadataImage, owner: str, requester: TokenRequester
    ) -> None:
        """An entry must allow CREATE_TOKENS on the USER that is to own the token (KIP-373)."""
        action = Action(
            requester.principal,
            requester.host,
            AclOperation.CREATE_TOKENS,
            AclResourceType.USER,
            owner,
        )
        if not authorize(image.acls, action, self._policy).allowed:
            raise LogbergError(
                ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
                f"{requester.principal} may not make tokens for {owner}: no access control entry "
                f"allows it CREATE_TOKENS on USER {owner}",
                {"field": "owner"},
            )

    def _new_id(self, image: MetadataImage) -> str:
        """Draw an id. As in Kafka, none begins with a dash, which commands take for an option."""
        while True:
            token_id = uuid_text(uuid4_from(self._random.getrandbits(122)))
            if not token_id.startswith("-") and token_id not in image.tokens.tokens:
                return token_id

    def _now_ms(self, image: MetadataImage) -> int:
        return judged_at(image, self._wall_ms())


def describe_token(token: DelegationTokenRecord) -> TokenDescription:
    """Describe a token."""
    return TokenDescription(
        token_id=token.token_id,
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
    )


def _check_may_ask(requester: TokenRequester) -> None:
    if requester.principal == ANONYMOUS or not requester.principal.startswith("User:"):
        raise LogbergError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            f"{requester.principal} can't get a token: ask as a user that authenticated itself",
        )


def _check_user(field: str, principal: str) -> None:
    check_plain(field, principal)
    kind, colon, name = principal.partition(":")
    if kind != "User" or not colon or not name:
        raise LogbergError(
            ErrorCode.INVALID_PRINCIPAL_TYPE,
            f"{field}: {principal[:50]!r} is no user; give User:NAME",
            {"field": field},
        )
    check_length(field, principal, PRINCIPAL_MAX)


def _check_lives(token: DelegationTokenRecord, now: int) -> None:
    if expiry_of(token)[0] < now:
        raise LogbergError(
            ErrorCode.DELEGATION_TOKEN_EXPIRED, f"token {token.token_id} has expired"
        )


def _check_may_change(token: DelegationTokenRecord, requester: TokenRequester) -> None:
    if requester.principal not in (token.owner, *token.renewers):
        raise LogbergError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
            f"{requester.principal} is neither the owner of token {token.token_id} nor a renewer",
        )


def _moved(token: DelegationTokenRecord, expiry: int, *, dry_run: bool) -> ControllerResult:
    """Return the record with another expiry; none if that is its expiry already."""
    expiry = min(token.max_timestamp, expiry)
    reply = ChangeTokenReply(token.token_id, expiry, dry_run=dry_run)
    if expiry == token.expiration_timestamp:
        return ControllerResult((), reply)
    return ControllerResult((msgspec.structs.replace(token, expiration_timestamp=expiry),), reply)
