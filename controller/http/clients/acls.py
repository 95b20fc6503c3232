"""Answers the routes of access control entries."""

from typing import Final

from controller.access.guard import is_broker_s_own
from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_of
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.clients.acls import checked_filter, code_of, describe_acl
from metadata.acl_rules import WILDCARD, AclPolicy, Action, Verdict, authorize
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    AclFilter,
    CheckAclReply,
    CreateAclsReply,
    DeleteAclsReply,
    ListAclsReply,
)
from metadata.messages.parts import LongMessage
from metadata.records import AclOperation, AclResourceType

_NAME_MAX: Final = 1_000


def create_acls(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/acls`."""
    message = asked.message
    return RequestedChange.of(
        message,
        "CreateAcls",
        CreateAclsReply,
        lambda image: leader.clients.acls.create(image, message),
    )


def delete_acls(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`DELETE /v1/acls`."""
    message = asked.message
    return RequestedChange.of(
        message,
        "DeleteAcls",
        DeleteAclsReply,
        lambda image: leader.clients.acls.delete(image, message),
    )


def list_acls(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/acls`. Raises LogbergError."""
    query, image = asked.request.query, view.image
    matches = checked_filter(
        "",
        AclFilter(
            resource_type=query.get("resourceType", "ANY"),
            resource_name=query.get("resourceName"),
            pattern_type=query.get("patternType", "ANY"),
            principal=query.get("principal"),
            host=query.get("host"),
            operation=query.get("operation", "ANY"),
            permission_type=query.get("permissionType", "ANY"),
        ),
    )
    ids, continuation = page_of(view, asked, context, "acls", image.acls.ids, bytes)
    entries = [image.acls.entries[uuid] for uuid in ids]
    found = [describe_acl(entry) for entry in entries if matches(entry)]
    head = ListAclsReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        acls=(),
        age_ms=view.age_ms,
        continuation=continuation,
    )
    return LongMessage(head, "acls", iter(found), len(found))


def check_acl(view: View, asked: Asked, context: ReadContext) -> CheckAclReply:
    """`GET /v1/acls/check`. Raises LogbergError."""
    query, config = asked.request.query, context.config
    for name in ("principal", "operation", "resourceType", "resourceName"):
        if not query.get(name):
            raise LogbergError(ErrorCode.INVALID_REQUEST, f"{name}: it is missing", {"field": name})
    if len(query["resourceName"]) > _NAME_MAX:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"resourceName: it has more than {_NAME_MAX} characters",
            {"field": "resourceName"},
        )
    for name in ("operation", "resourceType"):
        if query[name] == "ANY":
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"{name}: ANY is for filters; name one", {"field": name}
            )
    action = Action(
        query["principal"],
        query.get("host", WILDCARD),
        code_of(AclOperation, "operation", query["operation"]),
        code_of(AclResourceType, "resourceType", query["resourceType"]),
        query["resourceName"],
    )
    policy = AclPolicy(config.super_users, config.allow_if_no_acl)
    verdict = authorize(view.image.acls, action, policy)
    if not verdict.allowed and verdict.reason != "deny" and is_broker_s_own(action):
        verdict = Verdict(allowed=True, reason="own right")
    return CheckAclReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        allowed=verdict.allowed,
        reason=verdict.reason,
        acl=None if verdict.entry is None else describe_acl(verdict.entry),
        age_ms=view.age_ms,
    )
