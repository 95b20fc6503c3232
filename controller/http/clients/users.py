"""Answers the routes of users and their SCRAM credentials."""

from itertools import takewhile

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_of
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
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
    order = view.image.scram.order
    keys, continuation = page_of(view, asked, context, "users", order, CredentialKey)
    users: dict[str, list[ScramCredential]] = {}
    for key in keys:
        users.setdefault(key[0], []).append(_shown(view.image, key))
    found = [UserDescription(name, tuple(some)) for name, some in users.items()]
    head = ListUsersReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        users=(),
        age_ms=view.age_ms,
        continuation=continuation,
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
