"""The table of what each route needs: one entry for each route, by the route's name.

Rule: a route without an entry is refused (`guard`), and a test fails. An entry says to whom the
route is open:

- `PUBLIC`: to everybody.
- `KNOWN`: to whoever has shown credentials. What is behind the route checks the rest, such as the
  owner of a token.
- `EACH_CHANGE`: the request only carries changes, and each is checked as if it had come alone.
- `EACH_PART`: each part of the request is judged where it is answered.
- `BY_RIGHTS`: to whoever meets all needs. A list is also open to whoever has shown credentials, and
  has only what the asker may see (`listing`). The needs are Kafka's (ControllerApis), and for what
  Kafka doesn't have, of the same kind.

A topic's own right comes first in a need, and the cluster's after it.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from controller.access.listing import Listing
from controller.access.rights import (
    ALTER_BRIDGE,
    ALTER_CLUSTER,
    ALTER_CONFIGS,
    ALTER_PLACEMENT,
    ALTER_QUORUM,
    CLUSTER_ACTION,
    CREATE_ANY,
    DELETE_ANY,
    DESCRIBE_BRIDGE,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_QUORUM,
    READ_AUDIT,
    AnyOf,
    Right,
    on_cluster,
    on_topic,
)
from metadata.acl_names import SESSIONS, coordination_name
from metadata.image import MetadataImage
from metadata.internal_topics import INTERNAL_TOPICS
from metadata.messages import (
    AlterConfigsRequest,
    CommitRequest,
    CoordinationWatchRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    EndSessionRequest,
)
from metadata.records import AclOperation, AclResourceType
from metadata.uuids import UuidError, parse_uuid


class OpenTo(Enum):
    """To whom a route is open."""

    PUBLIC = auto()
    KNOWN = auto()
    EACH_CHANGE = auto()
    EACH_PART = auto()
    BY_RIGHTS = auto()


class RequestFacts(NamedTuple):
    """What a request says, as far as its needs depend on it."""

    asker: str
    """The principal for whom it asks."""
    arguments: Mapping[str, str]
    """What stands in the path at the places in braces."""
    query: Mapping[str, str]
    message: Any = None
    """The body, decoded; None if the route has none."""


Needs = Callable[[RequestFacts, MetadataImage], Iterator[AnyOf]]


class RouteAccess(NamedTuple):
    """What one route needs."""

    open_to: OpenTo
    needs: Needs = lambda _facts, _image: iter(())
    broker: Callable[[RequestFacts], int | None] | None = None
    """Of a route between brokers and controllers: the broker that the request says it comes from;
    None if it doesn't say. Such a broker's own credentials have CLUSTER_ACTION there."""
    by_image: bool = False
    """The needs depend on more of the image than its access control entries."""
    listing: Listing | None = None
    """Of a list: whoever is known may ask for it, and sees what these rights show."""


_Op = AclOperation
_WRITE_SESSIONS: Final = on_cluster(_Op.WRITE, SESSIONS)
_DESCRIBE_SESSIONS: Final = on_cluster(_Op.DESCRIBE, SESSIONS)


def _all_of(*needs: AnyOf) -> RouteAccess:
    return RouteAccess(OpenTo.BY_RIGHTS, lambda _facts, _image: iter(needs))


def _by(needs: Callable[[RequestFacts], Iterator[AnyOf]]) -> RouteAccess:
    return RouteAccess(OpenTo.BY_RIGHTS, lambda facts, _image: needs(facts))


def _of_broker(broker: Callable[[RequestFacts], int | None], *besides: Right) -> RouteAccess:
    need = (CLUSTER_ACTION, *besides)
    return RouteAccess(OpenTo.BY_RIGHTS, lambda _facts, _image: iter((need,)), broker)


# -- topics, partitions, configs ------------------------------------------------------------------


def _create_topics(facts: RequestFacts) -> Iterator[AnyOf]:
    """A broker of Kafka's creates Kafka's internal topics in its own name."""
    message: CreateTopicsRequest = facts.message
    for topic in message.topics:
        need = on_topic(_Op.CREATE, topic.name), CREATE_ANY
        yield (*need, CLUSTER_ACTION) if topic.name in INTERNAL_TOPICS else need


def _create_partitions(facts: RequestFacts) -> Iterator[AnyOf]:
    message: CreatePartitionsRequest = facts.message
    for topic in message.topics:
        yield on_topic(_Op.ALTER, topic.name), ALTER_CLUSTER


def _delete_topics(facts: RequestFacts, image: MetadataImage) -> Iterator[AnyOf]:
    """By names, and by ids. An id without a topic needs nothing: nothing can be deleted."""
    message: DeleteTopicsRequest = facts.message
    for name in message.names:
        yield on_topic(_Op.DELETE, name), DELETE_ANY
    for text in message.topic_ids:
        try:
            topic = image.topics.by_id.get(parse_uuid(text))
        except UuidError:
            continue
        if topic is not None:
            yield on_topic(_Op.DELETE, topic.name), DELETE_ANY


def _named_topic(operation: AclOperation, name: str, besides: Right) -> RouteAccess:
    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        yield on_topic(operation, facts.arguments[name]), besides

    return _by(needs)


def _list_of(
    operation: AclOperation,
    of_all: Right,
    needs: Callable[[RequestFacts], Iterator[AnyOf]] | None = None,
) -> RouteAccess:
    """A list. `needs` may ask for more than the right on all of it."""
    found = _all_of((of_all,)) if needs is None else _by(needs)
    return found._replace(listing=Listing(operation, of_all))


def _topic_of_query(facts: RequestFacts) -> Iterator[AnyOf]:
    """Of lists of partitions: of one topic, or of all."""
    topic = facts.query.get("topic")
    if topic:
        yield on_topic(_Op.DESCRIBE, topic), DESCRIBE_CLUSTER
    else:
        yield (DESCRIBE_CLUSTER,)


def _config(kind: str, name: str, operation: AclOperation, of_all: Right) -> AnyOf:
    """As in Kafka, configs of brokers and of client metrics are the cluster's."""
    if kind == "topic":
        return on_topic(operation, name), of_all
    if kind == "group":
        return Right(operation, AclResourceType.GROUP, name), of_all
    return (of_all,)


def _alter_configs(facts: RequestFacts) -> Iterator[AnyOf]:
    message: AlterConfigsRequest = facts.message
    for each in message.resources:
        yield _config(each.resource_type, each.resource_name, _Op.ALTER_CONFIGS, ALTER_CONFIGS)


def _alter_config(facts: RequestFacts) -> Iterator[AnyOf]:
    kind, name = facts.arguments["type"], facts.arguments["name"]
    yield _config(kind, name, _Op.ALTER_CONFIGS, ALTER_CONFIGS)


def _describe_config(facts: RequestFacts) -> Iterator[AnyOf]:
    kind, name = facts.arguments["type"], facts.arguments["name"]
    yield _config(kind, name, _Op.DESCRIBE_CONFIGS, DESCRIBE_CONFIGS)


def _watch_resource(facts: RequestFacts) -> Iterator[AnyOf]:
    """A topic may be watched by whoever may describe it; all else is the log's."""
    kind, _, name = facts.query.get("resource", "").partition(":")
    if kind == "partition":
        name = name.rpartition("-")[0]
    if kind in ("topic", "partition") and name:
        yield on_topic(_Op.DESCRIBE, name), READ_AUDIT
    else:
        yield (READ_AUDIT,)


# -- clients --------------------------------------------------------------------------------------


def _about_oneself(parameter: str) -> Callable[[RequestFacts], Iterator[AnyOf]]:
    """Everybody may ask about oneself; about others who may describe the cluster."""

    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        if facts.query.get(parameter) != facts.asker:
            yield (DESCRIBE_CLUSTER,)

    return needs


def _make_access_token(facts: RequestFacts) -> Iterator[AnyOf]:
    """As for delegation tokens: CREATE_TOKENS on the user that is to own the token (KIP-373)."""
    yield _tokens_of(facts.message.principal)


def _change_access_token(facts: RequestFacts, image: MetadataImage) -> Iterator[AnyOf]:
    token = image.credentials.access_tokens.get(facts.arguments["id"])
    yield (ALTER_CLUSTER,) if token is None else _tokens_of(token.principal)


def _tokens_of(principal: str) -> AnyOf:
    kind, _, name = principal.partition(":")
    if kind != "User" or not name:
        return (ALTER_CLUSTER,)
    return Right(_Op.CREATE_TOKENS, AclResourceType.USER, principal), ALTER_CLUSTER


# -- coordination ---------------------------------------------------------------------------------


def _on_entry(operation: AclOperation) -> RouteAccess:
    """Of a request whose message names a group, an election or a lock."""

    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        name = coordination_name(facts.message.kind, facts.message.name)
        yield (on_cluster(operation, name),)

    return _by(needs)


def _end_session(facts: RequestFacts) -> Iterator[AnyOf]:
    message: EndSessionRequest = facts.message
    yield (on_cluster(_Op.ALTER, SESSIONS) if message.revoke else _WRITE_SESSIONS,)


def _list_entries(facts: RequestFacts) -> Iterator[AnyOf]:
    """A list of all of a kind needs the right on every name that begins so."""
    if "sessionId" in facts.query:
        yield (on_cluster(_Op.READ, SESSIONS),)
    else:
        name = facts.query.get("name", "")
        right = on_cluster(_Op.READ, coordination_name(facts.query.get("kind", ""), name))
        yield (right._replace(and_below=not name),)


def _key_of_query(parameter: str, *, and_below: bool = False) -> RouteAccess:
    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        right = on_cluster(_Op.READ, coordination_name("key", facts.query.get(parameter, "")))
        yield (right._replace(and_below=and_below),)

    return _by(needs)


def _commit_keys(facts: RequestFacts) -> Iterator[AnyOf]:
    message: CommitRequest = facts.message
    for operation in message.operations:
        yield (on_cluster(_Op.WRITE, coordination_name("key", operation.key)),)
    for check in message.checks:
        yield (on_cluster(_Op.DESCRIBE, coordination_name("key", check.key)),)
    for fence in message.fences:
        name = coordination_name(fence.kind, fence.name)
        yield (on_cluster(_Op.DESCRIBE, name),)
    if message.session_id is not None or not message.operations:
        yield (_WRITE_SESSIONS,)
    if message.tokens_above is not None:
        yield (on_cluster(_Op.ALTER, SESSIONS),)


def _watch_coordination(facts: RequestFacts) -> Iterator[AnyOf]:
    message: CoordinationWatchRequest = facts.message
    for scope in message.scopes:
        if scope.key is not None:
            name = coordination_name("key", scope.key)
        elif scope.prefix is not None:
            name = coordination_name("key", scope.prefix)
        else:
            name = coordination_name(scope.kind or "", scope.name or "")
        yield (on_cluster(_Op.READ, name)._replace(and_below=scope.prefix is not None),)


# -- brokers --------------------------------------------------------------------------------------


def _broker_of_message(facts: RequestFacts) -> int | None:
    found: int = facts.message.broker_id
    return found


def _broker_of_path(facts: RequestFacts) -> int | None:
    return _number(facts.arguments.get("id", ""))


def _broker_of_query(facts: RequestFacts) -> int | None:
    text = facts.query.get("brokerId")
    return None if text is None else _number(text)


def _number(text: str) -> int | None:
    """Return a number; -1, which is no broker's, for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1


_PUBLIC: Final = RouteAccess(OpenTo.PUBLIC)
_KNOWN: Final = RouteAccess(OpenTo.KNOWN)
_DESCRIBES: Final = _all_of((DESCRIBE_CLUSTER,))
_DESCRIBES_QUOTAS: Final = _all_of((DESCRIBE_CONFIGS,))
_DECLARES: Final = _all_of((CREATE_ANY,), (DELETE_ANY,), (ALTER_CLUSTER,), (ALTER_CONFIGS,))
_PLACES: Final = _all_of((ALTER_PLACEMENT, ALTER_CLUSTER))
_CHANGES_TOKEN: Final = RouteAccess(OpenTo.BY_RIGHTS, _change_access_token, by_image=True)
_CHANGES_QUORUM: Final = _all_of((ALTER_QUORUM, ALTER_CLUSTER))
_CHANGES_BRIDGE: Final = _all_of((ALTER_BRIDGE, ALTER_CLUSTER))

ROUTE_ACCESS: Final[Mapping[str, RouteAccess]] = MappingProxyType(
    {
        # The node.
        "live": _PUBLIC,
        "ready": _PUBLIC,
        "metrics": _PUBLIC,
        "openapi_document": _KNOWN,
        "status": _DESCRIBES,
        "describe_caller": _KNOWN,
        "describe_quorum": _all_of((DESCRIBE_QUORUM, DESCRIBE_CLUSTER)),
        "make_changes": RouteAccess(OpenTo.EACH_CHANGE),
        # Brokers and their agents.
        "metadata_fetch": _of_broker(_broker_of_message),
        "alter_partition": _of_broker(_broker_of_message),
        "allocate_producer_ids": _of_broker(_broker_of_message),
        "assign_replicas": _of_broker(_broker_of_path),
        "list_snapshots": _of_broker(lambda _facts: None, READ_AUDIT),
        "read_snapshot": _of_broker(_broker_of_query, READ_AUDIT),
        # The log.
        "list_segments": _all_of((READ_AUDIT,)),
        "read_segment": _all_of((READ_AUDIT,)),
        "read_log": _all_of((READ_AUDIT,)),
        "read_signed_head": _KNOWN,
        # Hashes only: brokers' agents compare heads by them.
        "read_tile": _KNOWN,
        "make_proof": _all_of((READ_AUDIT,)),
        "watch_resource": _by(_watch_resource),
        # Topics and partitions.
        "create_topics": _by(_create_topics)._replace(broker=lambda _facts: None),
        "create_partitions": _by(_create_partitions),
        "delete_topics": RouteAccess(OpenTo.BY_RIGHTS, _delete_topics, by_image=True),
        "delete_topic": _named_topic(_Op.DELETE, "name", DELETE_ANY),
        "list_topics": _list_of(_Op.DESCRIBE, DESCRIBE_CLUSTER),
        "describe_topic": _named_topic(_Op.DESCRIBE, "name", DESCRIBE_CLUSTER),
        "list_partitions": _list_of(_Op.DESCRIBE, DESCRIBE_CLUSTER, _topic_of_query),
        "describe_partition": _named_topic(_Op.DESCRIBE, "topic", DESCRIBE_CLUSTER),
        # Where replicas lie, and brokers.
        "elect_leaders": _PLACES,
        "alter_reassignments": _PLACES,
        "unregister_broker": _PLACES,
        "list_reassignments": _list_of(_Op.DESCRIBE, DESCRIBE_CLUSTER, _topic_of_query),
        "plan_reassignments": _DESCRIBES,
        "lose_brokers": _DESCRIBES,
        "list_brokers": _DESCRIBES,
        "describe_broker": _DESCRIBES,
        "explain_broker": _DESCRIBES,
        # Configs, features, quotas.
        "list_configs": _list_of(_Op.DESCRIBE_CONFIGS, DESCRIBE_CONFIGS),
        "describe_config": _by(_describe_config),
        "alter_configs": _by(_alter_configs),
        "alter_config": _by(_alter_config),
        "list_features": _DESCRIBES,
        "update_features": _all_of((ALTER_CLUSTER,)),
        "alter_quotas": _all_of((ALTER_CONFIGS,)),
        "list_quotas": _DESCRIBES_QUOTAS,
        "resolve_quotas": _DESCRIBES_QUOTAS,
        # Access and credentials.
        "create_acls": _all_of((ALTER_CLUSTER,)),
        "delete_acls": _all_of((ALTER_CLUSTER,)),
        "list_acls": _DESCRIBES,
        "check_acl": _by(_about_oneself("principal")),
        "alter_scram": _all_of((ALTER_CLUSTER,)),
        "erase_subject": _all_of((ALTER_CLUSTER,)),
        "describe_erasures": _DESCRIBES,
        # As the log in words: it shows names, too.
        "list_pseudonyms": _all_of((READ_AUDIT,)),
        "read_subject_keys": _of_broker(lambda _facts: None, ALTER_CLUSTER),
        "list_users": _DESCRIBES,
        "describe_user": _DESCRIBES,
        "create_token": _KNOWN,
        "renew_token": _KNOWN,
        "expire_token": _KNOWN,
        "list_tokens": _by(_about_oneself("owner")),
        "create_access_token": _by(_make_access_token),
        "rotate_access_token": _CHANGES_TOKEN,
        "revoke_access_token": _CHANGES_TOKEN,
        "list_access_tokens": _by(_about_oneself("principal")),
        "create_join_token": _all_of((ALTER_CLUSTER,)),
        "revoke_join_token": _all_of((ALTER_CLUSTER,)),
        "list_join_tokens": _DESCRIBES,
        "join": _KNOWN,
        "authority": _PUBLIC,
        "revoke_certificates": _all_of((ALTER_CLUSTER,)),
        "reinstate_certificates": _all_of((ALTER_CLUSTER,)),
        "list_revocations": _DESCRIBES,
        # The quorum.
        "change_voters": _CHANGES_QUORUM,
        "transfer_leadership": _CHANGES_QUORUM,
        "run_archive": _CHANGES_QUORUM,
        "list_head_keys": _all_of((DESCRIBE_QUORUM, DESCRIBE_CLUSTER)),
        "change_head_key": _CHANGES_QUORUM,
        "unregister_controller": _CHANGES_QUORUM,
        # The bridge, imports, declared state.
        "describe_bridge": _all_of((DESCRIBE_BRIDGE, DESCRIBE_CLUSTER)),
        "follow_source": _CHANGES_BRIDGE,
        "set_bridge_mode": _CHANGES_BRIDGE,
        "import_records": _DECLARES,
        "keep_import_part": _DECLARES,
        "apply": _DECLARES,
        "export": _all_of((DESCRIBE_CLUSTER,), (DESCRIBE_CONFIGS,)),
        # Coordination.
        "open_session": _all_of((_WRITE_SESSIONS,)),
        "renew_session": _all_of((_WRITE_SESSIONS,)),
        "end_session": _by(_end_session),
        "list_sessions": _all_of((_DESCRIBE_SESSIONS, DESCRIBE_CLUSTER)),
        "coordination_limits": _all_of((_DESCRIBE_SESSIONS, DESCRIBE_CLUSTER)),
        "enter": _on_entry(_Op.WRITE),
        "change_entry": _on_entry(_Op.WRITE),
        "leave": _on_entry(_Op.WRITE),
        "break_grant": _on_entry(_Op.ALTER),
        "list_entries": _by(_list_entries),
        "get_key": _key_of_query("key"),
        "list_keys": _key_of_query("prefix", and_below=True),
        "commit_keys": _by(_commit_keys),
        "watch_coordination": _by(_watch_coordination),
    }
)
"""By the name of the route in `controller.http.routes`."""
