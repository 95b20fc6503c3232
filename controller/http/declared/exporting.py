"""Answers `GET /v1/export`: the state as one declares it, page by page, from one image.

A page has entries of one kind after another, in the order of `DeclaredKind`. Rule: what an apply
makes of an export is the same state, except secrets: no answer has a sensitive value or a key of a
credential.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import key_of, page_limit
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.http.queries import yes_or_no
from controller.managers.clients.acls import describe_acl
from controller.managers.clients.quotas import describe_entity
from controller.managers.clients.scram import mechanism_name
from controller.managers.configs import shown_name
from controller.managers.declared.configs import KINDS
from controller.managers.declared.topics import targets_of
from metadata.configs.definitions import is_sensitive
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    AclDescription,
    DeclaredKind,
    EntityQuotas,
    ExportedConfigs,
    ExportedTopic,
    ExportReply,
    ScramCredential,
    UserDescription,
)
from metadata.messages.parts import LongMessage
from metadata.records import ConfigResourceType, EntityKey
from metadata.records.configs import config_kind

EXPORTED_MAX: Final = 250
"""The most entries of a page."""
_CREDENTIAL_KEY = tuple[str, int]
_CONFIG_KEY = tuple[int, str]


def export(view: View, asked: Asked, context: ReadContext) -> ExportReply | LongMessage:
    """`GET /v1/export`. Raises LogbergError."""
    query, image = asked.request.query, view.image
    assignments = yes_or_no(query, "assignments")
    limit = page_limit(asked, EXPORTED_MAX)
    kinds = _kinds(query)
    name = f"export of {','.join(kinds)}"
    start, last = _place_of(context.pages.last(query, name, str), kinds)
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    more, left = None, limit
    for kind in kinds[start:]:
        keys, describe, key_type = _SOURCES[kind]
        after = None if last is None else key_of(last, key_type)
        last = None
        for key in keys(image, after):
            if not left:
                break
            found[kind].append(describe(image, key))
            more, left = f"{kind}/{msgspec.json.encode(key).decode()}", left - 1
        if not left:
            break
    if DeclaredKind.USERS in found:
        found[DeclaredKind.USERS] = _by_user(found[DeclaredKind.USERS])
    reply = ExportReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        continuation=None if left or more is None else context.pages.token(image, name, more),
        **{str(kind): tuple(entries) for kind, entries in found.items()},
    )
    if not assignments:
        return reply
    head = msgspec.structs.replace(reply, topics=())
    topics = (LongMessage(t, "assignments", _rows(image, t), t.partitions) for t in reply.topics)
    return LongMessage(head, "topics", topics, len(reply.topics))


def _rows(image: MetadataImage, topic: ExportedTopic) -> Iterator[tuple[int, ...]]:
    """Yield the brokers of each partition. A topic may have very many: they are read when sent."""
    topic_id = image.topics.by_name[topic.name]
    return (targets_of(partition) for _, partition in image.topics.partitions_of(topic_id))


def _kinds(query: Mapping[str, str]) -> tuple[str, ...]:
    """Return the kinds that are asked for, in their order. Raises LogbergError."""
    every = tuple(kind.value for kind in DeclaredKind)
    if "kinds" not in query:
        return every
    asked = query["kinds"].split(",")
    unknown = [kind for kind in asked if kind not in every]
    if unknown:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"kinds: {unknown[0][:50]!r} is unknown; give some of {', '.join(every)}",
            {"field": "kinds"},
        )
    return tuple(kind for kind in every if kind in asked)


def _place_of(last: str | None, kinds: tuple[str, ...]) -> tuple[int, str | None]:
    """Return where to go on: the index of a kind, and its last key as text. Raises LogbergError."""
    if last is None:
        return 0, None
    kind, _, key = last.partition("/")
    if kind not in kinds:
        raise _not_a_token()
    return kinds.index(kind), key


def _not_a_token() -> LogbergError:
    return LogbergError(
        ErrorCode.INVALID_REQUEST, "continuation: not a token; use the one of the page before"
    )


def _topic_names(image: MetadataImage, after: str | None) -> Iterator[str]:
    names = image.topics.names
    return iter(names) if after is None else names.after(after)


def _topic(image: MetadataImage, name: str) -> ExportedTopic:
    topics, topic_id = image.topics, image.topics.by_name[name]
    numbers = topics.ids_of(topic_id)
    factor = len(targets_of(topics.partitions[topic_id, numbers[0]])) if numbers else 0
    configs = image.configs.of(ConfigResourceType.TOPIC, name)
    return ExportedTopic(name, len(numbers), factor, configs)


def _config_keys(image: MetadataImage, after: _CONFIG_KEY | None) -> Iterator[_CONFIG_KEY]:
    for kind in KINDS:
        if after is None or kind > after[0]:
            yield from ((int(kind), name) for name in image.configs.named(kind))
        elif kind == after[0]:
            yield from ((int(kind), name) for name in image.configs.named(kind, after[1]))


def _configs(image: MetadataImage, key: _CONFIG_KEY) -> ExportedConfigs:
    kind, name = key
    values = image.configs.of(kind, name)
    hidden = tuple(each for each in values if is_sensitive(kind, each))
    shown = {each: value for each, value in values.items() if each not in hidden}
    return ExportedConfigs(config_kind(kind), shown_name(kind, name), shown, hidden)


def _quota_keys(image: MetadataImage, after: EntityKey | None) -> Iterator[EntityKey]:
    order = image.client_quotas.order
    return iter(order) if after is None else order.after(after)


def _quotas(image: MetadataImage, key: EntityKey) -> EntityQuotas:
    return EntityQuotas(describe_entity(key), dict(image.client_quotas.entities[key]))


def _acl_ids(image: MetadataImage, after: str | None) -> Iterator[str]:
    ids = image.acls.ids
    found = iter(ids) if after is None else ids.after(_uuid_of(after))
    return (uuid.hex() for uuid in found)


def _uuid_of(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise _not_a_token() from None


def _acl(image: MetadataImage, uuid: str) -> AclDescription:
    return describe_acl(image.acls.entries[bytes.fromhex(uuid)])


def _credential_keys(
    image: MetadataImage, after: _CREDENTIAL_KEY | None
) -> Iterator[_CREDENTIAL_KEY]:
    order = image.scram.order
    return iter(order) if after is None else order.after(after)


def _credential(image: MetadataImage, key: _CREDENTIAL_KEY) -> UserDescription:
    found = image.scram.credentials[key]
    return UserDescription(key[0], (ScramCredential(mechanism_name(key[1]), found.iterations),))


def _by_user(credentials: list[UserDescription]) -> list[UserDescription]:
    """Join the credentials of each user."""
    users: dict[str, tuple[ScramCredential, ...]] = {}
    for each in credentials:
        users[each.name] = users.get(each.name, ()) + each.credentials
    return [UserDescription(name, some) for name, some in users.items()]


_Keys = Callable[[MetadataImage, Any], Iterator[Any]]
_Describe = Callable[[MetadataImage, Any], msgspec.Struct]
_SOURCES: Final[Mapping[str, tuple[_Keys, _Describe, Any]]] = {
    "topics": (_topic_names, _topic, str),
    "configs": (_config_keys, _configs, _CONFIG_KEY),
    "quotas": (_quota_keys, _quotas, EntityKey),
    "acls": (_acl_ids, _acl, str),
    "users": (_credential_keys, _credential, _CREDENTIAL_KEY),
}
"""By kind: the keys after a key, in order; what an entry says; the type of a key."""
