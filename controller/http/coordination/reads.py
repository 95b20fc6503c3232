"""The routes of coordination that read: functions from a view to a reply."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Final

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import key_of, page_limit, page_of
from controller.http.coordination.describing import (
    describe_entry,
    describe_key,
    describe_session,
    revision_of,
)
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.http.queries import yes_or_no
from controller.managers.coordination.entries import KINDS
from controller.managers.coordination.limits import check_name
from metadata.errors import ErrorCode, LogbergError
from metadata.image.coordination import (
    BYTES,
    ENTRIES,
    KEYS,
    SESSIONS,
    CoordinationImage,
    EntryKey,
)
from metadata.messages import (
    CoordinationLimitsReply,
    EntriesReply,
    GetKeyReply,
    ListKeysReply,
    ListSessionsReply,
)
from metadata.messages.parts import LongMessage
from metadata.records import KeyRecord
from metadata.uuids import parse_uuid_of

LISTED_MAX: Final = 1_000
BYTES_LISTED_MAX: Final = 1024 * 1024
"""A page of keys or entries ends with the value that goes beyond this."""


def list_sessions(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/coordination/sessions`. Raises LogbergError."""
    query, state = asked.request.query, view.image.coordination
    continuation = None
    if "sessionId" in query:
        wanted = parse_uuid_of("sessionId", query["sessionId"])
        ids = [wanted] if wanted in state.sessions else []
    else:
        ids, continuation = page_of(view, asked, context, "sessions", state.session_order, bytes)
    head = ListSessionsReply(**_place(view), sessions=(), continuation=continuation)
    found = (describe_session(state, state.sessions[session_id]) for session_id in ids)
    return LongMessage(head, "sessions", found, len(ids))


def list_entries(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/coordination/entries`. Raises LogbergError.

    Of one resource in the order of its queue, of one session, or of all resources of a kind.
    """
    query, state = asked.request.query, view.image.coordination
    if "sessionId" in query:
        session_id = parse_uuid_of("sessionId", query["sessionId"])
        return _entries(view, list(state.holdings.get(session_id, ())))
    kind = KINDS.get(query.get("kind", ""))
    if kind is None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"kind: give one of {', '.join(KINDS)}", {"field": "kind"}
        )
    if not query.get("name"):
        return _entries_of_kind(view, asked, context, int(kind))
    resource = (int(kind), query["name"])
    return _entries(view, [(*resource, id_) for _, id_ in state.queues.get(resource, ())])


def _entries_of_kind(view: View, asked: Asked, context: ReadContext, kind: int) -> LongMessage:
    """Return one page of the entries of all resources of a kind, by name and id."""
    state, of = view.image.coordination, f"entries {kind}"
    limit = page_limit(asked, LISTED_MAX)
    last = context.pages.last(asked.request.query, of, str)
    begin = (kind, "", "") if last is None else (kind, *key_of(last, tuple[str, str]))
    behind = takewhile(lambda key: key[0] == kind, state.entry_order.after(begin))
    found: list[EntryKey] = []
    size, continuation = 0, None
    for key in behind:
        if len(found) == limit or size > BYTES_LISTED_MAX:
            token = msgspec.json.encode(found[-1][1:]).decode()
            continuation = context.pages.token(view.image, of, token)
            break
        found.append(key)
        size += len(state.entries[key].data)
    return _entries(view, found, continuation)


def _entries(view: View, keys: list[EntryKey], continuation: str | None = None) -> LongMessage:
    state = view.image.coordination
    found = (describe_entry(state.entries[key]) for key in keys)
    head = EntriesReply(**_place(view), entries=(), continuation=continuation)
    return LongMessage(head, "entries", found, len(keys))


def get_key(view: View, asked: Asked, context: ReadContext) -> GetKeyReply:
    """`GET /v1/coordination/key`. Raises LogbergError."""
    key = asked.request.query.get("key", "")
    check_name("key", key, context.config.coordination.key_bytes)
    found = view.image.coordination.keys.get(key)
    return GetKeyReply(**_place(view), record=None if found is None else describe_key(found))


def list_keys(view: View, asked: Asked, context: ReadContext) -> LongMessage:
    """`GET /v1/coordination/keys`. Raises LogbergError."""
    query, state = asked.request.query, view.image.coordination
    prefix, with_values = query.get("prefix", ""), not yes_or_no(query, "keysOnly")
    limit, of = page_limit(asked, LISTED_MAX), f"keys {prefix}"
    last = context.pages.last(query, of, str)
    found: list[KeyRecord] = []
    size, continuation = 0, None
    for key in keys_of(state, prefix, None if last is None else key_of(last, str)):
        if len(found) == limit or size > BYTES_LISTED_MAX:
            continuation = context.pages.token(view.image, of, _as_token(found[-1].key))
            break
        found.append(state.keys[key])
        size += len(found[-1].value) if with_values else 0
    head = ListKeysReply(**_place(view), records=(), continuation=continuation)
    words = (describe_key(key, with_value=with_values) for key in found)
    return LongMessage(head, "records", words, len(found))


def coordination_limits(view: View, _asked: Asked, context: ReadContext) -> CoordinationLimitsReply:
    """`GET /v1/coordination/limits`."""
    limits, state = context.config.coordination, view.image.coordination
    return CoordinationLimitsReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        age_ms=view.age_ms,
        ttl_ms_min=limits.ttl_min_ms,
        ttl_ms_max=limits.ttl_max_ms,
        key_bytes_max=limits.key_bytes,
        value_bytes_max=limits.value_bytes,
        data_bytes_max=limits.data_bytes,
        name_bytes_max=limits.name_bytes,
        commit_operations_max=limits.commit_operations,
        commit_bytes_max=limits.commit_bytes,
        watch_scopes_max=limits.watch_scopes,
        bytes_max=limits.total_bytes,
        bytes_used=state.total(BYTES),
        keys_max=limits.keys,
        keys=state.total(KEYS),
        sessions_max=limits.sessions,
        sessions=state.total(SESSIONS),
        entries_max=limits.entries,
        entries=state.total(ENTRIES),
    )


def keys_of(state: CoordinationImage, prefix: str, after: str | None = None) -> Iterator[str]:
    """Yield the keys with a prefix, in order; `after`: only those behind this one."""
    if after is None and prefix in state.keys:
        yield prefix
    behind = state.key_order.after(prefix if after is None else after)
    yield from takewhile(lambda key: key.startswith(prefix), behind)


def _as_token(key: str) -> str:
    return msgspec.json.encode(key).decode()


def _place(view: View) -> dict[str, Any]:
    return {
        "offset": readable_offset(view.image),
        "epoch": view.image.epoch,
        "revision": revision_of(view.image),
        "age_ms": view.age_ms,
    }
