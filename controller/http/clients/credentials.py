"""Answers the routes of access tokens, join tokens and revocations."""

from collections.abc import Generator, Sequence

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_of, page_that
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.clients.access_tokens import describe_access_token
from controller.managers.clients.joining import describe_join_token
from controller.managers.clients.revocations import describe_revocation
from metadata.errors import ErrorCode, LogbergError
from metadata.image.credentials import RevocationKey
from metadata.messages import (
    ChangeAccessTokenReply,
    ChangeJoinTokenReply,
    ChangeRevocationReply,
    JoinReply,
    JoinRequest,
    ListAccessTokensReply,
    ListJoinTokensReply,
    ListRevocationsReply,
)
from metadata.messages.parts import LongMessage
from metadata.messages.wire import canonical

_JOINING = "JoinToken:"


def create_access_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/access-tokens`. Raises LogbergError."""
    manager, who = leader.clients.access_tokens, _asker(leader, asked)
    return RequestedChange.of(
        asked.message,
        "CreateAccessToken",
        ChangeAccessTokenReply,
        lambda image: manager.create(image, asked.message, who),
    )


def rotate_access_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/access-tokens/{id}/rotate`. Raises LogbergError."""
    manager, who = leader.clients.access_tokens, _asker(leader, asked)
    token_id = asked.arguments["id"]
    return RequestedChange.of(
        asked.message,
        "RotateAccessToken",
        ChangeAccessTokenReply,
        lambda image: manager.rotate(image, token_id, asked.message, who),
    )


def revoke_access_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/access-tokens/{id}/revoke`. Raises LogbergError."""
    manager, token_id = leader.clients.access_tokens, asked.arguments["id"]
    return RequestedChange.of(
        asked.message,
        "RevokeAccessToken",
        ChangeAccessTokenReply,
        lambda image: manager.revoke(image, token_id, asked.message),
    )


def create_join_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/join-tokens`. Raises LogbergError."""
    manager, who = leader.clients.joining, _asker(leader, asked)
    return RequestedChange.of(
        asked.message,
        "CreateJoinToken",
        ChangeJoinTokenReply,
        lambda image: manager.create(image, asked.message, who),
    )


def revoke_join_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/join-tokens/{id}/revoke`. Raises LogbergError."""
    manager, token_id = leader.clients.joining, asked.arguments["id"]
    return RequestedChange.of(
        asked.message,
        "RevokeJoinToken",
        ChangeJoinTokenReply,
        lambda image: manager.revoke(image, token_id, asked.message),
    )


def join(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/join`. Raises LogbergError."""
    message: JoinRequest = asked.message
    manager, caller = leader.clients.joining, asked.request.caller
    if not caller.only_path or not caller.principal.startswith(_JOINING):
        raise LogbergError(
            ErrorCode.UNAUTHENTICATED,
            "a node joins with its join token: show it (Authorization: Bearer …)",
        )
    token_id = caller.principal.removeprefix(_JOINING)
    return RequestedChange(
        operation="Join",
        meaning=lambda: caller.principal.encode() + b"\0" + canonical(message),
        reply_type=JoinReply,
        decide=lambda image: manager.join(image, token_id, message),
        dry_run=False,
    )


def revoke_certificates(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/revocations`. Raises LogbergError."""
    manager, who = leader.clients.revocations, _asker(leader, asked)
    return RequestedChange.of(
        asked.message,
        "RevokeCertificates",
        ChangeRevocationReply,
        lambda image: manager.revoke(image, asked.message, who),
    )


def reinstate_certificates(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`DELETE /v1/revocations`. Raises LogbergError."""
    manager = leader.clients.revocations
    return RequestedChange.of(
        asked.message,
        "ReinstateCertificates",
        ChangeRevocationReply,
        lambda image: manager.reinstate(image, asked.message),
    )


def list_access_tokens(
    view: View, asked: Asked, context: ReadContext
) -> Generator[None, None, LongMessage]:
    """`GET /v1/access-tokens`. Raises LogbergError at once."""
    known = view.image.credentials
    principal = asked.request.query.get("principal")
    page = page_that(
        view,
        asked,
        context,
        "access_tokens",
        known.token_order,
        lambda token_id: principal in (None, known.access_tokens[token_id].principal),
    )

    def steps() -> Generator[None, None, LongMessage]:
        ids, more = yield from page
        head = ListAccessTokensReply(
            offset=readable_offset(view.image),
            epoch=view.image.epoch,
            tokens=(),
            age_ms=view.age_ms,
            continuation=more,
        )
        return _listed(head, "tokens", [describe_access_token(known.access_tokens[k]) for k in ids])

    return steps()


def list_join_tokens(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/join-tokens`. Raises LogbergError."""
    known = view.image.credentials
    ids, more = page_of(view, asked, context, "join_tokens", known.join_order, str)
    head = ListJoinTokensReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        tokens=(),
        age_ms=view.age_ms,
        continuation=more,
    )
    return _listed(head, "tokens", [describe_join_token(known.join_tokens[each]) for each in ids])


def list_revocations(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/revocations`. Raises LogbergError."""
    known = view.image.credentials
    order = known.revocation_order
    keys, more = page_of(view, asked, context, "revocations", order, RevocationKey)
    head = ListRevocationsReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        revocations=(),
        age_ms=view.age_ms,
        continuation=more,
    )
    return _listed(head, "revocations", [describe_revocation(known.revocations[k]) for k in keys])


def _listed(head: msgspec.Struct, name: str, found: Sequence[msgspec.Struct]) -> LongMessage:
    return LongMessage(head, name, iter(found), len(found))


def _asker(leader: LeaderParts, asked: Asked) -> str:
    return leader.changes.asks_for(asked.request)
