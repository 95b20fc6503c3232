"""Answers the routes of users and their SCRAM credentials."""

from itertools import islice, takewhile
from typing import Final

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_limit
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.changes import RequestedChange
from controller.leader.parts import LeaderParts
from controller.managers.clients.scram import mechanism_name
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.scram import CredentialKey
from metadata.messages import (
    AlterScramReply,
    DescribeUserReply,
    ListUsersReply,
    ScramCredential,
    UserDescription,
)
from metadata.messages.parts import LongMessage
from metadata.messages.wire import canonical

CREDENTIALS_LISTED_MAX: Final = 1_000
"""The most credentials of one page."""


def alter_scram(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/users/scram`."""
    message = asked.message
    return RequestedChange(
        operation="AlterUserScramCredentials",
        meaning=lambda: leader.clients.scram.meaning(canonical, message),
        reply_type=AlterScramReply,
        decide=lambda image: leader.clients.scram.alter(image, message),
        dry_run=message.dry_run,
    )


def list_users(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/users`. Raises LogbergError."""
    query, scram = asked.request.query, view.image.scram
    limit = page_limit(query, CREDENTIALS_LISTED_MAX)
    last = context.pages.last(query, "users", str)
    keys = iter(scram.order) if last is None else scram.order.after(_key_of(last))
    page = list(islice(keys, limit))
    users: dict[str, list[ScramCredential]] = {}
    for key in page:
        users.setdefault(key[0], []).append(_shown(view.image, key))
    found = [UserDescription(name, tuple(some)) for name, some in users.items()]
    more = msgspec.json.encode(page[-1]).decode() if len(page) == limit else None
    head = ListUsersReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        users=(),
        age_ms=view.age_ms,
        continuation=None if more is None else context.pages.token(view.image, "users", more),
    )
    return LongMessage(head, "users", iter(found), len(found))


def describe_user(view: View, asked: Asked, _context: ReadContext) -> DescribeUserReply:
    """`GET /v1/users/{name}`. Raises LogbergError."""
    name, image = asked.arguments["name"], view.image
    keys = takewhile(lambda key: key[0] == name, image.scram.order.after((name, -1)))
    credentials = tuple(_shown(image, key) for key in keys)
    if not credentials:
        raise LogbergError(
            ErrorCode.RESOURCE_NOT_FOUND, f"user {name[:300]!r} has no SCRAM credentials"
        )
    return DescribeUserReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        user=UserDescription(name, credentials),
        age_ms=view.age_ms,
    )


def _shown(image: MetadataImage, key: CredentialKey) -> ScramCredential:
    return ScramCredential(mechanism_name(key[1]), image.scram.credentials[key].iterations)


def _key_of(text: str) -> CredentialKey:
    try:
        key: CredentialKey = msgspec.json.decode(text, type=CredentialKey)
    except msgspec.MsgspecError:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "continuation: not a token; use the one of the page before"
        ) from None
    return key
