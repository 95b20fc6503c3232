"""Answers the routes of delegation tokens."""

from collections.abc import Callable, Generator

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_that
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.clients.tokens import TokenRequester, describe_token
from controller.result import ControllerResult
from metadata.image import MetadataImage
from metadata.messages import (
    ChangeTokenReply,
    CreateTokenReply,
    ExpireTokenRequest,
    ListTokensReply,
    RenewTokenRequest,
)
from metadata.messages.parts import LongMessage
from metadata.messages.wire import canonical


def create_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/tokens`. Raises LogbergError."""
    message, tokens = asked.message, leader.clients.tokens
    requester = _requester(leader, asked)
    return RequestedChange(
        operation="CreateDelegationToken",
        # Another caller with the same request id must not get the token's HMAC.
        meaning=lambda: _meaning(requester, message),
        reply_type=CreateTokenReply,
        decide=lambda image: tokens.create(image, message, requester),
        dry_run=message.dry_run,
        complete=tokens.with_hmac,
    )


def renew_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/tokens/{id}/renew`. Raises LogbergError."""
    token_id, message = asked.arguments["id"], asked.message
    requester, renew = _requester(leader, asked), leader.clients.tokens.renew
    return _change(
        leader,
        "RenewDelegationToken",
        requester,
        message,
        lambda image: renew(image, token_id, message, requester),
    )


def expire_token(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/tokens/{id}/expire`. Raises LogbergError."""
    token_id, message = asked.arguments["id"], asked.message
    requester, expire = _requester(leader, asked), leader.clients.tokens.expire
    return _change(
        leader,
        "ExpireDelegationToken",
        requester,
        message,
        lambda image: expire(image, token_id, message, requester),
    )


def _change(
    leader: LeaderParts,
    operation: str,
    requester: TokenRequester,
    message: RenewTokenRequest | ExpireTokenRequest,
    decide: Callable[[MetadataImage], ControllerResult],
) -> RequestedChange:
    """Return the change of a request that holds an HMAC."""
    tokens = leader.clients.tokens
    return RequestedChange(
        operation=operation,
        meaning=lambda: tokens.secret_meaning(_meaning(requester, message)),
        reply_type=ChangeTokenReply,
        decide=decide,
        dry_run=message.dry_run,
    )


def list_tokens(
    view: View, asked: Asked, context: ReadContext
) -> Generator[None, None, LongMessage]:
    """`GET /v1/tokens`. Raises LogbergError at once."""
    known, owner = view.image.tokens, asked.request.query.get("owner")
    page = page_that(
        view,
        asked,
        context,
        "tokens",
        known.order,
        lambda token_id: owner in (None, known.tokens[token_id].owner),
    )

    def steps() -> Generator[None, None, LongMessage]:
        ids, continuation = yield from page
        head = ListTokensReply(
            offset=readable_offset(view.image),
            epoch=view.image.epoch,
            tokens=(),
            age_ms=view.age_ms,
            continuation=continuation,
        )
        found = (describe_token(known.tokens[token_id]) for token_id in ids)
        return LongMessage(head, "tokens", found, len(ids))

    return steps()


def _requester(leader: LeaderParts, asked: Asked) -> TokenRequester:
    return TokenRequester(leader.changes.asks_for(asked.request), asked.request.caller.address)


def _meaning(requester: TokenRequester, message: msgspec.Struct) -> bytes:
    return requester.principal.encode() + b"\0" + canonical(message)
