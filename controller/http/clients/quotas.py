"""Answers the routes of client quotas."""

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_of
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.clients.quotas import alter_quotas, describe_entity, quota_filter
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    AlterQuotasReply,
    AppliedQuota,
    EntityQuotas,
    ListQuotasReply,
    ResolveQuotasReply,
)
from metadata.messages.parts import LongMessage
from metadata.quota_rules import resolve
from metadata.records import EntityKey


def alter(_leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/quotas`."""
    message = asked.message
    return RequestedChange.of(
        message, "AlterClientQuotas", AlterQuotasReply, lambda image: alter_quotas(image, message)
    )


def list_quotas(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/quotas`. Raises LogbergError."""
    query, quotas = asked.request.query, view.image.client_quotas
    wanted = quota_filter(query)
    keys, continuation = page_of(view, asked, context, "quotas", quotas.order, EntityKey)
    found = [
        EntityQuotas(describe_entity(key), dict(quotas.entities[key]))
        for key in keys
        if wanted.matches(key)
    ]
    head = ListQuotasReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        entries=(),
        age_ms=view.age_ms,
        continuation=continuation,
    )
    return LongMessage(head, "entries", iter(found), len(found))


def resolve_quotas(view: View, asked: Asked, _context: ReadContext) -> ResolveQuotasReply:
    """`GET /v1/quotas/resolve`. Raises LogbergError."""
    query = asked.request.query
    user, client_id, ip = query.get("user"), query.get("clientId"), query.get("ip")
    if user is None and client_id is None and ip is None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "give a user, a clientId or an ip", {"field": "user"}
        )
    applied = resolve(view.image.client_quotas, user, client_id, ip)
    return ResolveQuotasReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        quotas=tuple(
            AppliedQuota(key, found.value, describe_entity(found.entity))
            for key, found in sorted(applied.items())
        ),
        age_ms=view.age_ms,
    )
